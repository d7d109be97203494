/* debug_file.c - see debug_file.h. Looks where gdb looks; fetches nothing from the network. */
#define _GNU_SOURCE
#include "offline/debug_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

const char *tly_debug_directory = "/usr/lib/debug";

static void close_elf(struct tly_elf_file *file) {
    if (file->elf) elf_end(file->elf);
    if (file->fd >= 0) close(file->fd);
    *file = (struct tly_elf_file){-1, NULL};
}

/* Larger files are mapped. The others are read: a mapped file that somebody cuts short ends us with SIGBUS. */
#define READ_BYTES ((off_t)256 << 20)

static bool open_elf(const char *path, struct tly_elf_file *out) {
    struct stat status;
    elf_version(EV_CURRENT);
    out->elf = NULL;
    out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (out->fd >= 0 && fstat(out->fd, &status) == 0 && S_ISREG(status.st_mode))
        out->elf = elf_begin(out->fd, status.st_size > READ_BYTES ? ELF_C_READ_MMAP : ELF_C_READ, NULL);
    if (out->elf && elf_kind(out->elf) == ELF_K_ELF) return true;
    close_elf(out);
    return false;
}

static bool has_section(Elf *elf, const char *wanted) {
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0) return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS) continue;
        const char *name = elf_strptr(elf, names, header.sh_name);
        if (name && strcmp(name, wanted) == 0) return true;
    }
    return false;
}

static bool has_debug_information(Elf *elf) {
    return has_section(elf, ".debug_info") || has_section(elf, ".zdebug_info");
}

/* Is this the very file that the process had loaded? Without build-ids only its date can tell. */
static bool same_build(const struct tly_elf_file *file, const struct tly_snapshot_module *module) {
    const void *id = NULL;
    ssize_t length = dwelf_elf_gnu_build_id(file->elf, &id);
    if (length > TLY_BUILD_ID_MAX) length = TLY_BUILD_ID_MAX;
    if (length > 0 || module->build_id_bytes > 0)
        return length == (ssize_t)module->build_id_bytes && memcmp(id, module->build_id, (size_t)length) == 0;
    struct stat status;
    if (fstat(file->fd, &status) != 0) return false;
    uint64_t changed_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
    return module->first_seen_ns == 0 || changed_ns <= module->first_seen_ns;
}

static bool crc_matches(int fd, uint32_t wanted) {
    unsigned char buffer[65536];
    uLong crc = 0;
    off_t at = 0;
    for (;;) {
        ssize_t length = pread(fd, buffer, sizeof buffer, at);
        if (length < 0) return false;
        if (length == 0) return crc == wanted;
        crc = crc32_z(crc, buffer, (size_t)length);
        at += length;
    }
}

/* Takes `path` if it is a debug file of the build: by build-id, or where there is none by the link's checksum. */
static bool try_separate(const char *path, const struct tly_snapshot_module *module, const uint32_t *crc,
                         struct tly_elf_file *out) {
    const void *id = NULL;
    if (!open_elf(path, out)) return false;
    bool right = has_debug_information(out->elf) || has_section(out->elf, ".symtab");
    ssize_t length = dwelf_elf_gnu_build_id(out->elf, &id);
    if (length > TLY_BUILD_ID_MAX) length = TLY_BUILD_ID_MAX;
    if (length > 0 && module->build_id_bytes > 0)
        right = right && length == (ssize_t)module->build_id_bytes && memcmp(id, module->build_id, (size_t)length) == 0;
    else
        right = right && crc && crc_matches(out->fd, *crc);
    if (!right) close_elf(out);
    return right;
}

static bool find_by_build_id(const struct tly_snapshot_module *module, struct tly_elf_file *out) {
    char path[PATH_MAX];
    if (module->build_id_bytes < 2) return false;
    int length = snprintf(path, sizeof path - 128, "%s/.build-id/%02x/", tly_debug_directory, module->build_id[0]);
    if (length < 0 || (size_t)length >= sizeof path - 128) return false;
    for (uint32_t i = 1; i < module->build_id_bytes; i++)
        length += snprintf(path + length, sizeof path - (size_t)length, "%02x", module->build_id[i]);
    snprintf(path + length, sizeof path - (size_t)length, ".debug");
    return try_separate(path, module, NULL, out);
}

static bool find_by_link(Elf *elf, const char *binary, const struct tly_snapshot_module *module,
                         struct tly_elf_file *out) {
    char path[PATH_MAX];
    GElf_Word crc = 0;
    const char *name = dwelf_elf_gnu_debuglink(elf, &crc);
    if (!name || strchr(name, '/')) return false;
    char *real = realpath(binary, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    bool found = false;
    static const char *const patterns[] = {"%s%.*s/%s", "%s%.*s/.debug/%s", "%s%.*s/%s"};
    for (int i = 0; slash && i < 3 && !found; i++) {
        int length = snprintf(path, sizeof path, patterns[i], i == 2 ? tly_debug_directory : "", (int)(slash - real),
                              real, name);
        found = length > 0 && (size_t)length < sizeof path && strcmp(path, real) != 0 &&
                try_separate(path, module, &crc, out);
    }
    free(real);
    return found;
}

int tly_debug_file_open(const struct tly_snapshot_module *module, struct tly_debug_file *out) {
    *out = (struct tly_debug_file){{-1, NULL}, {-1, NULL}, NULL};
    const char *path = module->path.bytes;
    if (path[0] != '/' || strlen(path) != module->path.length || !open_elf(path, &out->binary)) return -ENOENT;
    if (!same_build(&out->binary, module)) {
        close_elf(&out->binary);
        return -ESTALE;
    }
    Elf *source = out->binary.elf;
    if (!has_debug_information(source) &&
        (find_by_build_id(module, &out->separate) || find_by_link(source, path, module, &out->separate)))
        source = out->separate.elf;
    if (has_debug_information(source)) out->dwarf = dwarf_begin_elf(source, DWARF_C_READ, NULL);
    return 0;
}

void tly_debug_file_close(struct tly_debug_file *file) {
    if (file->dwarf) dwarf_end(file->dwarf);
    close_elf(&file->separate);
    close_elf(&file->binary);
    file->dwarf = NULL;
}
