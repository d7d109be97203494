/* real.c - see real.h. */
#define _GNU_SOURCE
#include "preload/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/tagstack.h"
#include "preload/bootstrap.h"
#include "preload/hooks.h"
#include "preload/notices.h"
#include "preload/reroute.h"
#include "runtime/process.h"

/* ---- before the resolution: resolve, or serve from the pool if that is under way ---------------------------------- */

static _Atomic bool resolving, resolved;
static bool behind, came_to_us;
static const void *allocator_file;

static bool ready(void) {
    if (!atomic_load(&resolved)) tly_real_resolve();
    return atomic_load(&resolved);
}
static void *boot_malloc(size_t size) {
    if (ready()) return tly_real.malloc(size);
    came_to_us = true;
    return tly_bootstrap_alloc(16, size);
}
static void boot_free(void *block) {
    if (ready()) tly_real.free(block); /* else: a block from before us, or of the pool; there is nobody to give it to */
}
static void *boot_calloc(size_t count, size_t size) {
    if (ready()) return tly_real.calloc(count, size);
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : tly_bootstrap_alloc(16, bytes);
}
static void *boot_realloc(void *block, size_t size) {
    if (ready()) return tly_real.realloc(block, size);
    return block ? NULL : tly_bootstrap_alloc(16, size);
}
static void *boot_reallocarray(void *block, size_t count, size_t size) {
    return ready() ? tly_real.reallocarray(block, count, size) : tly_derived_reallocarray(block, count, size);
}
static int boot_posix_memalign(void **out, size_t alignment, size_t size) {
    if (ready()) return tly_real.posix_memalign(out, alignment, size);
    *out = tly_bootstrap_alloc(alignment, size);
    return *out ? 0 : ENOMEM;
}
static void *boot_aligned(size_t alignment, size_t size) {
    return ready() ? tly_real.aligned_alloc(alignment, size) : tly_bootstrap_alloc(alignment, size);
}
static void *boot_memalign(size_t alignment, size_t size) {
    return ready() ? tly_real.memalign(alignment, size) : tly_bootstrap_alloc(alignment, size);
}
static void *boot_valloc(size_t size) { return ready() ? tly_real.valloc(size) : tly_bootstrap_alloc(4096, size); }
static void *boot_pvalloc(size_t size) { return ready() ? tly_real.pvalloc(size) : tly_bootstrap_alloc(4096, size); }
static size_t boot_usable(void *block) { return ready() ? tly_real.malloc_usable_size(block) : 0; }
static void boot_free_sized(void *block, size_t size) {
    if (ready()) tly_real.free_sized(block, size);
}
static void boot_free_aligned_sized(void *block, size_t alignment, size_t size) {
    if (ready()) tly_real.free_aligned_sized(block, alignment, size);
}

struct tly_real tly_real = {
    .malloc = boot_malloc,
    .free = boot_free,
    .calloc = boot_calloc,
    .realloc = boot_realloc,
    .reallocarray = boot_reallocarray,
    .posix_memalign = boot_posix_memalign,
    .aligned_alloc = boot_aligned,
    .memalign = boot_memalign,
    .valloc = boot_valloc,
    .pvalloc = boot_pvalloc,
    .malloc_usable_size = boot_usable,
    .free_sized = boot_free_sized,
    .free_aligned_sized = boot_free_aligned_sized,
};

/* ---- resolution ---------------------------------------------------------------------------------------------------- */

const void *tly_real_file_of(const void *address) {
    struct dl_find_object found; /* dladdr would walk the file's whole symbol table */
    return address && _dl_find_object((void *)address, &found) == 0 ? found.dlfo_map_start : NULL;
}

static const void *file_of_program(void) { return tly_real_file_of((const void *)getauxval(AT_PHDR)); }

/* In a program that is not position-independent, the address of a function can be a stub of its own, which leads to
 * whatever the symbol is bound to: perhaps to us. */
static bool is_import_stub(const void *address) {
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (tly_real_file_of(address) != file_of_program()) return false;
    return dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && symbol->st_shndx == SHN_UNDEF;
}

void *tly_real_first(const char *name) {
    void *first = dlsym(RTLD_DEFAULT, name);
    if (!first || !is_import_stub(first)) return first;
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
        if (!map->l_name[0]) continue; /* the program */
        void *handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
        void *function = handle ? dlsym(handle, name) : NULL;
        if (handle) dlclose(handle);
        struct dl_find_object found;
        if (function && _dl_find_object(function, &found) == 0 && found.dlfo_link_map == map) return function;
    }
    return NULL;
}

/* The next definition after ours. If another allocator stands before us in the search order, the first one at all. */
static void *find(const char *name, const void *ours) {
    void *first = behind ? tly_real_first(name) : NULL;
    return first && first != ours ? first : dlsym(RTLD_NEXT, name);
}

/* `found` if it is the allocator's own, else what we build. */
static void *own_or(void *found, void *derived) {
    return found && tly_real_file_of(found) == allocator_file ? found : derived;
}

/* ---- the operators of C++ ------------------------------------------------------------------------------------------ */

static const char *const operator_name[TLY_OP_COUNT] = {
#define NAME_OF(NAME, SYMBOL, RET, PARAMS) #SYMBOL,
    TLY_CXX_HOOKS(NAME_OF)
#undef NAME_OF
};
static void *const operator_hook[TLY_OP_COUNT] = {
#define HOOK_OF(NAME, SYMBOL, RET, PARAMS) (void *)tly_hook_##SYMBOL,
    TLY_CXX_HOOKS(HOOK_OF)
#undef HOOK_OF
};

bool tly_operators_on_malloc, tly_operators_of_allocator;
static void *operators[TLY_OP_COUNT];

/* Do the plain operators, to which the C++ library's others lead, still lead to us or to the allocator? */
static bool nothing_replaced(void) {
    const void *ours = tly_real_file_of((void *)tly_hook_malloc);
    const void *plain_new = tly_real_file_of(tly_real_first("_Znwm"));
    const void *plain_delete = tly_real_file_of(tly_real_first("_ZdlPv"));
    return (plain_new == ours || plain_new == allocator_file) &&
           (plain_delete == ours || plain_delete == allocator_file);
}

bool tly_real_operator_of_allocator(int index) {
    return operators[index] && tly_real_file_of(operators[index]) == allocator_file;
}

static void resolve_operators(void) {
    tly_operators_on_malloc = nothing_replaced();
    for (int i = 0; i < TLY_OP_COUNT; i++)
        operators[i] = find(operator_name[i], operator_hook[i]);
    tly_operators_of_allocator = tly_real_operator_of_allocator(TLY_OP_new_aligned);
}

/* Is the malloc before us only a wrapper that asks the next one, so us? Then it is a caller like others. */
static bool passes_on(void *first) {
    void *block = ((void *(*)(size_t))first)(64);
    void (*release)(void *) = (void (*)(void *))tly_real_first("free");
    if (block && !tly_bootstrap_owns(block) && release && tly_real_file_of((void *)release) == tly_real_file_of(first))
        release(block);
    return came_to_us;
}

void tly_real_resolve(void) {
    if (atomic_exchange(&resolving, true)) return;
    int saved = errno;
    uint32_t seen = tly_self.off_radar;
    tly_process_early();
    void *first = tly_real_first("malloc");
    behind = first != NULL && tly_real_file_of(first) != tly_real_file_of((void *)tly_hook_malloc) && !passes_on(first);
    void *allocator = behind ? first : dlsym(RTLD_NEXT, "malloc");
    allocator_file = tly_real_file_of(allocator);
    struct tly_real found;
#define OWN(NAME, RET, PARAMS) found.NAME = find(#NAME, (void *)tly_hook_##NAME);
    TLY_C_HOOKS(OWN)
#undef OWN
    found.malloc = allocator;
    /* libc's own thin ones call realloc and free in a way that comes through our hooks again. */
    bool is_libc = allocator_file == tly_real_file_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    found.reallocarray = own_or(is_libc ? NULL : (void *)found.reallocarray, tly_derived_reallocarray);
    found.free_sized = own_or(is_libc ? NULL : (void *)found.free_sized, tly_derived_free_sized);
    found.free_aligned_sized =
        own_or(is_libc ? NULL : (void *)found.free_aligned_sized, tly_derived_free_aligned_sized);
    found.posix_memalign = own_or(found.posix_memalign, tly_derived_posix_memalign);
    found.aligned_alloc = own_or(found.aligned_alloc, tly_derived_aligned_alloc);
    found.memalign = own_or(found.memalign, tly_derived_memalign);
    found.valloc = own_or(found.valloc, tly_derived_valloc);
    found.pvalloc = own_or(found.pvalloc, tly_derived_pvalloc);
    found.malloc_usable_size = own_or(found.malloc_usable_size, tly_derived_malloc_usable_size);
    resolve_operators();
    tly_notices_resolve();
    tly_real = found;
    atomic_store(&resolved, true);
    if (behind)
        tly_process_unreachable(allocator_file == file_of_program() ? "the program has an allocator linked in"
                                                                    : tly_reroute(allocator_file));
    tly_self.off_radar = seen; /* what the loader allocated for us does not count */
    tly_process_init();
    errno = saved;
}

/* A C++ runtime that came later, perhaps with a plugin and outside the global scope. */
static void *find_in_private_runtime(const char *name) {
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
        void *handle = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!handle) continue;
        void *function = dlsym(handle, name);
        dlclose(handle);
        if (function) return function;
    }
    return NULL;
}

/* The loader is asked only for a library that was not there at the start, and then only when memory has run out. */
void *tly_real_operator(int index) {
    if (!operators[index]) {
        int saved = errno;
        tly_tag_pause_thread(); /* what the loader allocates for us is in no bill */
        operators[index] = find(operator_name[index], operator_hook[index]);
        if (!operators[index]) operators[index] = find_in_private_runtime(operator_name[index]);
        tly_tag_resume_thread();
        errno = saved;
    }
    return operators[index];
}

/* Before all other constructors (the library is linked with -z initfirst), so that even those of an allocator or a C++
 * library that stands before us in the search order find our hooks in place. libc's own comes later, too, and with it
 * `environ`. */
__attribute__((constructor(101))) static void on_load(int argc, char **argv, char **environment) {
    (void)argc;
    (void)argv;
    if (!environ) environ = environment;
    tly_real_resolve();
    tly_process_init();
}
