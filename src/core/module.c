/* module.c - see module.h. Uses glibc's _dl_find_object (2.35), which is lock-free. */
#define _GNU_SOURCE
#include "core/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "region/writer.h"

/* The build-id from the notes of an ELF image in memory; 0 if it has none within the mapped range. */
static uint32_t read_build_id(uintptr_t start, uintptr_t end, uintptr_t bias, uint8_t *out) {
    const ElfW(Ehdr) *header = (const void *)start;
    if (end - start < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
    if (header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff > 4096 - sizeof(ElfW(Phdr))) return 0;
    const ElfW(Phdr) *segment = (const void *)(start + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        uintptr_t at = bias + segment[i].p_vaddr, stop = at + segment[i].p_memsz;
        if (segment[i].p_type != PT_NOTE || at < start || stop > end || stop < at) continue;
        while (stop - at >= sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            uintptr_t name = at + sizeof *note, value = name + (note->n_namesz + 3) / 4 * 4;
            if (value > stop || note->n_descsz > stop - value) break;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp((void *)name, "GNU", 4) == 0) {
                uint32_t bytes = note->n_descsz < TLY_BUILD_ID_MAX ? note->n_descsz : TLY_BUILD_ID_MAX;
                memcpy(out, (void *)value, bytes);
                return bytes;
            }
            at = value + (note->n_descsz + 3) / 4 * 4;
        }
    }
    return 0;
}

/* Of the executable, read once: later the process may have no /proc, or another root. */
static char program_path[PATH_MAX];

void tly_module_init(void) {
    ssize_t got = readlink("/proc/self/exe", program_path, sizeof program_path - 1);
    program_path[got > 0 ? got : 0] = 0;
}

/* The path of the file: absolute, also if the loader was given a relative one. */
static size_t file_path(const struct link_map *map, char *path, size_t bytes) {
    if (!map || !map->l_name || map->l_name[0] == 0) {
        size_t program_bytes = strlen(program_path);
        if (program_bytes == 0) return (size_t)(stpcpy(path, "main program") - path);
        memcpy(path, program_path, program_bytes < bytes ? program_bytes : bytes);
        return program_bytes < bytes ? program_bytes : bytes;
    }
    size_t count = strlen(map->l_name), start = 0;
    if (map->l_name[0] != '/' && strchr(map->l_name, '/') && getcwd(path, bytes / 2)) {
        start = strlen(path);
        path[start++] = '/';
    }
    if (count > bytes - start) count = bytes - start;
    memcpy(path + start, map->l_name, count);
    return start + count;
}

/* A loaded file, as looked for. */
struct key {
    uintptr_t start, end, bias;
    const char *path;
    uint32_t path_bytes, build_id_bytes;
    const uint8_t *build_id;
};

static bool same(uint32_t index, const struct key *key) {
    const struct tly_module *m = (struct tly_module *)tly_writer_base(TLY_SEC_MODULES) + index;
    return m->start == key->start && m->end == key->end && m->build_id_bytes == key->build_id_bytes &&
           memcmp(m->build_id, key->build_id, key->build_id_bytes) == 0 && m->name_bytes == key->path_bytes &&
           memcmp((char *)tly_writer_base(TLY_SEC_NAMES) + m->name_offset, key->path, key->path_bytes) == 0;
}

static uint32_t make(const struct key *key) {
    uint64_t name = tly_writer_name(key->path, key->path_bytes);
    uint64_t at = tly_writer_append(TLY_SEC_MODULES, sizeof(struct tly_module));
    if (name == UINT64_MAX || at == UINT64_MAX) return TLY_MODULE_UNKNOWN;
    struct tly_module *m = (struct tly_module *)((char *)tly_writer_base(TLY_SEC_MODULES) + at);
    m->name_offset = name;
    m->name_bytes = key->path_bytes;
    m->start = key->start;
    m->end = key->end;
    m->bias = key->bias;
    memcpy(m->build_id, key->build_id, key->build_id_bytes);
    m->build_id_bytes = key->build_id_bytes;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    m->first_seen_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    atomic_store_explicit(&m->state, 1, memory_order_release);
    return (uint32_t)(at / sizeof(struct tly_module));
}

/* Finds or registers it. The slots are private to the process, and a forked child's copy fits its copy of MODULES. A
 * record that lost the race for its slot is taken back, so no file is registered twice. */
static uint32_t find(const struct key *key) {
    enum { SLOTS = 8192 };
    static _Atomic uint32_t slots[SLOTS]; /* index + 1 */
    uint64_t hash = tly_hash_mix(key->start, tly_hash_bytes(key->path, key->path_bytes));
    uint32_t made = TLY_MODULE_UNKNOWN;
    for (uint32_t step = 0; step < SLOTS; step++) {
        _Atomic uint32_t *slot = &slots[(hash + step) % SLOTS];
        uint32_t word = atomic_load_explicit(slot, memory_order_acquire);
        if (word == 0) {
            if (made == TLY_MODULE_UNKNOWN) made = make(key);
            if (made == TLY_MODULE_UNKNOWN || atomic_compare_exchange_strong(slot, &word, made + 1)) return made;
        }
        if (!same(word - 1, key)) continue;
        if (made != TLY_MODULE_UNKNOWN)
            atomic_store(&((struct tly_module *)tly_writer_base(TLY_SEC_MODULES) + made)->state, 0);
        return word - 1;
    }
    return TLY_MODULE_UNKNOWN; /* thousands of files were loaded, one after the other */
}

uint32_t tly_module_of(uintptr_t address, uint64_t *bias) {
    struct dl_find_object found;
    *bias = 0;
    if (_dl_find_object((void *)address, &found) != 0) return TLY_MODULE_UNKNOWN;
    int saved = errno;
    char path[PATH_MAX + 256];
    uint8_t build_id[TLY_BUILD_ID_MAX] = {0};
    struct key key = {(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end, 0, path, 0, 0, build_id};
    if (found.dlfo_link_map) key.bias = found.dlfo_link_map->l_addr;
    key.build_id_bytes = read_build_id(key.start, key.end, key.bias, build_id);
    key.path_bytes = (uint32_t)file_path(found.dlfo_link_map, path, sizeof path);
    *bias = key.bias;
    uint32_t module = find(&key);
    errno = saved;
    return module;
}
