/* test_module.c - which file an address belongs to. */
#define _GNU_SOURCE
#include "core_world.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/module.h"
#include "region/writer.h"

static const struct tly_module *module(uint32_t index) {
    return (const struct tly_module *)tly_writer_base(TLY_SEC_MODULES) + index;
}
static void path_of(uint32_t index, char *path) {
    memcpy(path, (char *)tly_writer_base(TLY_SEC_NAMES) + module(index)->name_offset, module(index)->name_bytes);
    path[module(index)->name_bytes] = 0;
}

static void check(const void *address) {
    uint64_t bias, again;
    errno = 77;
    uint32_t index = tly_module_of((uintptr_t)address, &bias);
    assert_int_equal(errno, 77);
    assert_int_not_equal(index, TLY_MODULE_UNKNOWN);
    assert_int_equal(tly_module_of((uintptr_t)address, &again), index);
    assert_int_equal(again, bias);
    const struct tly_module *m = module(index);
    assert_int_equal(m->state, 1);
    assert_true((uintptr_t)address >= m->start && (uintptr_t)address < m->end && m->bias == bias);
    Dl_info info;
    struct link_map *map = NULL;
    assert_int_not_equal(dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP), 0);
    assert_int_equal(bias, map->l_addr);
    assert_int_equal(m->start, (uintptr_t)info.dli_fbase);
    char path[5000], expected[5000];
    path_of(index, path);
    assert_int_equal(path[0], '/');
    assert_non_null(realpath(map->l_name[0] ? map->l_name : "/proc/self/exe", expected));
    char real[5000];
    assert_non_null(realpath(path, real));
    assert_string_equal(real, expected);
}

static void known(void **state) {
    (void)state;
    check((const void *)(uintptr_t)known);              /* the program */
    check((const void *)dlsym(RTLD_DEFAULT, "malloc")); /* a library */
    uint64_t bias;
    assert_int_not_equal(tly_module_of((uintptr_t)known, &bias),
                         tly_module_of((uintptr_t)dlsym(RTLD_DEFAULT, "getpid"), &bias));
}

static void unknown(void **state) {
    (void)state;
    uint64_t bias = 5;
    int local;
    assert_int_equal(tly_module_of((uintptr_t)&local, &bias), TLY_MODULE_UNKNOWN);
    assert_int_equal(bias, 0);
    assert_int_equal(tly_module_of(0, &bias), TLY_MODULE_UNKNOWN);
    assert_int_equal(tly_module_of(UINTPTR_MAX, &bias), TLY_MODULE_UNKNOWN);
}

struct build_id {
    uintptr_t start;
    uint8_t bytes[TLY_BUILD_ID_MAX];
    uint32_t count;
};
/* What the loader says, independently. */
static int find_build_id(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct build_id *id = context;
    if (info->dlpi_addr != id->start) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
        const char *at = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                   *end = at + info->dlpi_phdr[i].p_memsz;
        while (end - at > (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note, *value = name + (note->n_namesz + 3u) / 4 * 4;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
                id->count = note->n_descsz;
                memcpy(id->bytes, value, note->n_descsz);
                return 1;
            }
            at = value + (note->n_descsz + 3u) / 4 * 4;
        }
    }
    return 1;
}

static void build_ids(void **state) {
    (void)state;
    uint64_t bias;
    uint32_t index = tly_module_of((uintptr_t)dlsym(RTLD_DEFAULT, "getpid"), &bias); /* libc: Debian's has one */
    struct build_id id = {.start = bias};
    dl_iterate_phdr(find_build_id, &id);
    assert_true(id.count > 0);
    assert_int_equal(module(index)->build_id_bytes, id.count);
    assert_memory_equal(module(index)->build_id, id.bytes, id.count);
}

/* The same place, another file: another module. */
static void not_there_any_more(void **state) {
    (void)state;
    uint64_t bias;
    uint32_t index = tly_module_of((uintptr_t)known, &bias);
    struct tly_module *m = (struct tly_module *)module(index);
    m->build_id[0] ^= 1; /* as if an earlier file had been loaded here */
    m->build_id_bytes = m->build_id_bytes ? m->build_id_bytes : 1;
    uint32_t now = tly_module_of((uintptr_t)known, &bias);
    assert_int_not_equal(now, index);
    assert_int_equal(tly_module_of((uintptr_t)known, &bias), now);
}

/* Threads whose first allocations in a file come at once register it once. */
enum { THREADS = 8 };
static pthread_barrier_t start;
static const void *addresses[3];
static uint32_t seen[THREADS][3];
static void *first_allocations(void *number) {
    pthread_barrier_wait(&start);
    uint64_t bias;
    for (int i = 0; i < 3; i++) {
        seen[(size_t)number][i] = tly_module_of((uintptr_t)addresses[i], &bias);
        pthread_barrier_wait(&start);
    }
    return NULL;
}

static void each_once(void **state) {
    (void)state;
    addresses[0] = (const void *)(uintptr_t)each_once;
    addresses[1] = dlsym(RTLD_DEFAULT, "getpid");
    addresses[2] = dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests");
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, first_allocations, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        assert_memory_equal(seen[i], seen[0], sizeof seen[0]);
    uint32_t valid = 0;
    for (uint32_t i = 0; i < tly_region->section[TLY_SEC_MODULES].used_bytes / sizeof(struct tly_module); i++)
        valid += module(i)->state == 1;
    assert_int_equal(valid, 3);
}

int main(void) {
    tly_module_init();
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_once), cmocka_unit_test(known), cmocka_unit_test(unknown),
                                       cmocka_unit_test(build_ids), cmocka_unit_test(not_there_any_more)};
    return cmocka_run_group_tests(tests, world_setup, NULL);
}
