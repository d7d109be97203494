/* symbol_source.c - see symbol_source.h. */
#include "offline/symbol_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { KEPT_SOURCES = 16 };
/* Together they may be this large on disk; one alone may be larger, and is then the only one. */
#define KEPT_BYTES ((uint64_t)512 << 20)

struct kept {
    struct tly_symbol_source source; /* first: what callers get */
    char *path;
    uint32_t build_id_bytes; /* 0: not to be kept */
    uint8_t build_id[TLY_BUILD_ID_MAX];
    uint64_t file_bytes;
};

static struct kept *kept_sources[KEPT_SOURCES]; /* the one used last comes first */
static int kept_count;

static void close_source(struct kept *kept) {
    tly_chain_index_free(kept->source.chains);
    tly_symbol_table_free(&kept->source.symbols);
    tly_debug_file_close(&kept->source.file);
    free(kept->path);
    free(kept);
}

static uint64_t bytes_of(int fd) {
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static int open_source(const struct tly_snapshot_module *module, struct kept **out) {
    struct kept *kept = calloc(1, sizeof *kept);
    if (!kept) return -ENOMEM;
    int result = tly_debug_file_open(module, &kept->source.file);
    if (result != 0) {
        free(kept);
        return result;
    }
    struct tly_symbol_source *source = &kept->source;
    kept->path = strdup(module->path.bytes);
    kept->build_id_bytes = module->build_id_bytes;
    memcpy(kept->build_id, module->build_id, module->build_id_bytes);
    kept->file_bytes = bytes_of(source->file.binary.fd) + bytes_of(source->file.separate.fd);
    result = kept->path ? 0 : -ENOMEM;
    if (result == 0)
        result = tly_symbol_table_make(source->file.binary.elf, source->file.separate.elf, &source->symbols);
    if (result == 0 && source->file.dwarf) {
        source->chains = tly_chain_index_new(source->file.dwarf);
        if (!source->chains) result = -ENOMEM;
    }
    if (result != 0)
        close_source(kept);
    else
        *out = kept;
    return result;
}

static bool is_of(const struct kept *kept, const struct tly_snapshot_module *module) {
    return kept->build_id_bytes == module->build_id_bytes &&
           memcmp(kept->build_id, module->build_id, module->build_id_bytes) == 0 &&
           strcmp(kept->path, module->path.bytes) == 0;
}

/* Takes source `i` out of those that are kept. */
static struct kept *take_out(int i) {
    struct kept *kept = kept_sources[i];
    kept_count--;
    memmove(&kept_sources[i], &kept_sources[i + 1], (size_t)(kept_count - i) * sizeof(struct kept *));
    return kept;
}

int tly_symbol_source_get(const struct tly_snapshot_module *module, struct tly_symbol_source **out) {
    struct kept *kept;
    for (int i = 0; i < kept_count && module->build_id_bytes != 0; i++) {
        if (!is_of(kept_sources[i], module)) continue;
        *out = &take_out(i)->source;
        return 0;
    }
    int result = open_source(module, &kept);
    if (result == 0) *out = &kept->source;
    return result;
}

void tly_symbol_source_release(struct tly_symbol_source *source) {
    struct kept *kept = (struct kept *)source;
    if (kept->build_id_bytes == 0) {
        close_source(kept);
        return;
    }
    uint64_t sum = kept->file_bytes;
    for (int i = 0; i < kept_count; i++)
        sum += kept_sources[i]->file_bytes;
    while (kept_count > 0 && (kept_count == KEPT_SOURCES || sum > KEPT_BYTES)) {
        struct kept *oldest = take_out(kept_count - 1);
        sum -= oldest->file_bytes;
        close_source(oldest);
    }
    memmove(&kept_sources[1], &kept_sources[0], (size_t)kept_count * sizeof(struct kept *));
    kept_sources[0] = kept;
    kept_count++;
}

void tly_symbol_source_forget(void) {
    while (kept_count > 0)
        close_source(take_out(kept_count - 1));
}
