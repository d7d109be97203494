/* module.c - see module.h. Uses glibc's _dl_find_object (2.35), which is lock-free. */
#define _GNU_SOURCE
#include "core/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* The path of the file: absolute, also if the loader was given a relative one. */
static size_t file_path(const struct link_map *map, char *path, size_t bytes) {
    if (!map || !map->l_name || map->l_name[0] == 0) {
        ssize_t got = readlink("/proc/self/exe", path, bytes);
        if (got > 0) return (size_t)got;
        memcpy(path, "main program", 12);
        return 12;
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

uint32_t tly_module_of(uintptr_t address, uint64_t *bias) {
    struct dl_find_object found;
    *bias = 0;
    if (_dl_find_object((void *)address, &found) != 0) return TLY_MODULE_UNKNOWN;
    int saved = errno;
    uintptr_t start = (uintptr_t)found.dlfo_map_start, end = (uintptr_t)found.dlfo_map_end;
    uint64_t offset = found.dlfo_link_map ? found.dlfo_link_map->l_addr : 0;
    uint8_t build_id[TLY_BUILD_ID_MAX] = {0};
    uint32_t build_id_bytes = read_build_id(start, end, offset, build_id);
    char path[PATH_MAX + 256];
    size_t path_bytes = file_path(found.dlfo_link_map, path, sizeof path);
    *bias = offset;

    struct tly_module *modules = tly_writer_base(TLY_SEC_MODULES);
    char *names = tly_writer_base(TLY_SEC_NAMES);
    uint32_t count = (uint32_t)(tly_region->section[TLY_SEC_MODULES].used_bytes / sizeof *modules);
    for (uint32_t i = count; i-- > 0;) {
        const struct tly_module *m = &modules[i];
        if (atomic_load_explicit(&m->state, memory_order_acquire) == 1 && m->start == start && m->end == end &&
            m->build_id_bytes == build_id_bytes && memcmp(m->build_id, build_id, build_id_bytes) == 0 &&
            m->name_bytes == path_bytes && memcmp(names + m->name_offset, path, path_bytes) == 0) {
            errno = saved;
            return i;
        }
    }
    uint64_t name = tly_writer_name(path, (uint32_t)path_bytes);
    uint64_t at = tly_writer_append(TLY_SEC_MODULES, sizeof *modules);
    errno = saved;
    if (name == UINT64_MAX || at == UINT64_MAX) return TLY_MODULE_UNKNOWN;
    struct tly_module *m = (struct tly_module *)((char *)modules + at);
    m->name_offset = name;
    m->name_bytes = (uint32_t)path_bytes;
    m->start = start;
    m->end = end;
    m->bias = offset;
    memcpy(m->build_id, build_id, sizeof m->build_id);
    m->build_id_bytes = build_id_bytes;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    m->first_seen_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    atomic_store_explicit(&m->state, 1, memory_order_release);
    return (uint32_t)(at / sizeof *modules);
}
