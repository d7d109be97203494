/* reroute.c - see reroute.h. */
#define _GNU_SOURCE
#include "preload/reroute.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/hooks.h"
#include "preload/real.h"

#if defined(__x86_64__)
#define RELOCATION_SLOT R_X86_64_JUMP_SLOT
#define RELOCATION_GOT R_X86_64_GLOB_DAT
#define RELOCATION_DATA R_X86_64_64
#elif defined(__aarch64__)
#define RELOCATION_SLOT R_AARCH64_JUMP_SLOT
#define RELOCATION_GOT R_AARCH64_GLOB_DAT
#define RELOCATION_DATA R_AARCH64_ABS64
#endif

static const struct {
    const char *name;
    void *hook;
} hooks[] = {
#define ROW_C(NAME, RET, PARAMS) {#NAME, (void *)tly_hook_##NAME},
    TLY_C_HOOKS(ROW_C)
#undef ROW_C
#define ROW_CXX(NAME, SYMBOL, RET, PARAMS) {#SYMBOL, (void *)tly_hook_##SYMBOL},
        TLY_CXX_HOOKS(ROW_CXX)
#undef ROW_CXX
};
enum { HOOKS = sizeof hooks / sizeof *hooks };

struct reroute {
    const void *allocator_file, *our_file;
    void *theirs[HOOKS]; /* what programs were bound to; NULL: not the allocator's */
    size_t changed;
    bool failed;
};

/* Where a file's table is: in the shared objects glibc relocates d_ptr itself, except in the vdso and some others. */
static uintptr_t table(const struct dl_phdr_info *info, uintptr_t address) {
    return address < info->dlpi_addr ? info->dlpi_addr + address : address;
}

static void write_slot(struct reroute *state, const struct dl_phdr_info *info, void **slot, void *value) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)slot & ~(page - 1);
    bool read_only = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_GNU_RELRO && (uintptr_t)slot >= from && (uintptr_t)slot < from + segment->p_memsz)
            read_only = true;
    }
    if (read_only && mprotect((void *)start, page, PROT_READ | PROT_WRITE) != 0) {
        state->failed = true;
        return;
    }
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (read_only) mprotect((void *)start, page, PROT_READ);
    state->changed++;
}

static void reroute_table(struct reroute *state, const struct dl_phdr_info *info, const ElfW(Rela) * rela, size_t count,
                          const ElfW(Sym) * symbols, const char *strings) {
    for (size_t i = 0; i < count; i++) {
        uint32_t type = (uint32_t)ELF64_R_TYPE(rela[i].r_info), symbol = (uint32_t)ELF64_R_SYM(rela[i].r_info);
        if (symbol == 0 || (type != RELOCATION_SLOT && type != RELOCATION_GOT && type != RELOCATION_DATA)) continue;
        const char *name = strings + symbols[symbol].st_name;
        for (size_t h = 0; h < HOOKS; h++) {
            if (!state->theirs[h] || strcmp(name, hooks[h].name) != 0) continue;
            void **slot = (void **)(info->dlpi_addr + rela[i].r_offset);
            bool unbound =
                type == RELOCATION_SLOT && tly_real_file_of(*slot) != state->allocator_file && *slot != hooks[h].hook;
            if (*slot == state->theirs[h] || unbound) write_slot(state, info, slot, hooks[h].hook);
        }
    }
}

static int reroute_file(struct dl_phdr_info *info, size_t bytes, void *context) {
    (void)bytes;
    struct reroute *state = context;
    const ElfW(Dyn) *dynamic = NULL;
    const void *first = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        if (info->dlpi_phdr[i].p_type == PT_LOAD && !first)
            first = (const void *)((info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) & ~(uintptr_t)4095);
    }
    if (!dynamic || first == state->allocator_file || first == state->our_file) return 0;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const ElfW(Rela) *rela = NULL, *slots = NULL;
    size_t rela_bytes = 0, slots_bytes = 0;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols = (const void *)table(info, entry->d_un.d_ptr); break;
        case DT_STRTAB: strings = (const void *)table(info, entry->d_un.d_ptr); break;
        case DT_RELA: rela = (const void *)table(info, entry->d_un.d_ptr); break;
        case DT_RELASZ: rela_bytes = entry->d_un.d_val; break;
        case DT_JMPREL: slots = (const void *)table(info, entry->d_un.d_ptr); break;
        case DT_PLTRELSZ: slots_bytes = entry->d_un.d_val; break;
        default: break;
        }
    }
    if (!symbols || !strings) return 0;
    if (rela) reroute_table(state, info, rela, rela_bytes / sizeof *rela, symbols, strings);
    if (slots) reroute_table(state, info, slots, slots_bytes / sizeof *slots, symbols, strings);
    return 0;
}

const char *tly_reroute(const void *allocator_file) {
    struct reroute state = {.allocator_file = allocator_file, .our_file = tly_real_file_of((void *)tly_hook_malloc)};
    for (size_t h = 0; h < HOOKS; h++) {
        void *bound = tly_real_first(hooks[h].name);
        if (bound && tly_real_file_of(bound) == allocator_file) state.theirs[h] = bound;
    }
    dl_iterate_phdr(reroute_file, &state);
    if (state.failed) return "another allocator stands before Tally, and a file's import table could not be changed";
    if (state.changed == 0) return "another allocator stands before Tally in the search order; put libtally.so first";
    return NULL;
}
