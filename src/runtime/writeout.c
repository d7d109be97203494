/* writeout.c - see writeout.h. */
#define _GNU_SOURCE
#include "runtime/writeout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h> /* rename */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hold.h"
#include "base/map.h"
#include "base/say.h"
#include "region/view.h"
#include "region/writer.h"
#include "runtime/facts.h"

struct output {
    int fd;
    int error;
    uint64_t at;
};

static void put(struct output *out, const void *bytes, uint64_t count) {
    const char *from = bytes;
    while (count > 0 && out->error == 0) {
        size_t piece = count < (1u << 30) ? (size_t)count : 1u << 30;
        ssize_t written = pwrite(out->fd, from, piece, (off_t)out->at);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            out->error = written < 0 ? errno : ENOSPC;
            return;
        }
        from += written;
        out->at += (uint64_t)written;
        count -= (uint64_t)written;
    }
}

static void align(struct output *out) {
    static const char zeros[64];
    put(out, zeros, (64 - out->at % 64) % 64);
}

static void close_section(struct tly_section *section, uint64_t bytes) {
    section->capacity_bytes = bytes;
    section->used_bytes = bytes;
    section->committed_bytes = bytes;
}

/* The balances as cells of one ledger; segments without any are left out. */
static void put_cells(struct output *out, struct tly_section *sections, const struct tly_balance *balance,
                      uint32_t nodes) {
    uint32_t blocks = (nodes + TLY_SEG_NODES - 1) / TLY_SEG_NODES;
    struct tly_section *refs = &sections[TLY_SEC_SEGDIR], *segs = &sections[TLY_SEC_SEGS];
    for (int pass = 0; pass < 2; pass++) {
        align(out);
        struct tly_section *section = pass == 0 ? refs : segs;
        section->offset = out->at;
        for (uint32_t b = 0; b < blocks; b++) {
            struct tly_seg seg;
            memset(&seg, 0, sizeof seg);
            uint64_t any = 0;
            for (uint32_t k = 0; k < TLY_SEG_NODES && b * TLY_SEG_NODES + k < nodes; k++) {
                const struct tly_balance *from = &balance[b * TLY_SEG_NODES + k];
                seg.cell[k].alloc_bytes = from->alloc_bytes;
                seg.cell[k].alloc_blocks = from->alloc_blocks;
                seg.cell[k].free_bytes = from->free_bytes;
                seg.cell[k].free_blocks = from->free_blocks;
                any |= from->alloc_blocks | from->free_blocks;
            }
            if (!any) continue;
            struct tly_segref ref = {.ledger_plus_1 = 1, .first_node = b * TLY_SEG_NODES};
            if (pass == 0)
                put(out, &ref, sizeof ref);
            else
                put(out, &seg, sizeof seg);
        }
        close_section(section, out->at - section->offset);
    }
}

static void put_region(struct output *out, const struct tly_view *view, const struct tly_balance *balance,
                       uint32_t nodes) {
    static const enum tly_section_id plain[] = {TLY_SEC_MODULES, TLY_SEC_LEDGERS, TLY_SEC_NODES, TLY_SEC_SITES,
                                                TLY_SEC_NAMES};
    struct tly_region header;
    memcpy(&header, view->region, sizeof header);
    header.flags |= TLY_REGION_WRITTEN;
    header.section[TLY_SEC_HEADER].capacity_bytes = sizeof header;
    out->at = sizeof header;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        /* Nodes before sites before names: what a copied record refers to is copied after it. */
        enum tly_section_id id = plain[i];
        struct tly_section *section = &header.section[id];
        uint32_t count = id == TLY_SEC_NODES ? nodes : tly_view_count(view, id);
        uint64_t bytes = (uint64_t)count * view->region->section[id].record_bytes;
        align(out);
        section->offset = out->at;
        close_section(section, bytes);
        put(out, (const char *)view->region + view->region->section[id].offset, bytes);
    }
    put_cells(out, header.section, balance, nodes);
    for (int id = TLY_SEC_SITEIDX; id <= TLY_SEC_NODEIDX; id++) {
        header.section[id].offset = out->at;
        close_section(&header.section[id], 0);
    }
    align(out);
    header.region_bytes = out->at;
    out->at = 0;
    put(out, &header, sizeof header);
}

/* Beside the file, under a name that no other thread or process has. */
static int open_temporary(const char *path, char *temporary, size_t bytes) {
    struct tly_text_builder name;
    tly_text_begin(&name, temporary, bytes);
    tly_text_add(&name, path);
    tly_text_add(&name, ".tmp.");
    tly_text_add_hex(&name, tly_facts_random(), 16);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return fd >= 0 ? fd : -errno;
}

static int write_file(const char *path, const struct tly_view *view, const struct tly_balance *balance,
                      uint32_t nodes) {
    char temporary[PATH_MAX + 32];
    struct output out = {.fd = open_temporary(path, temporary, sizeof temporary)};
    if (out.fd < 0) return out.fd;
    struct tly_hold hold;
    tly_hold_begin(&hold);
    put_region(&out, view, balance, nodes);
    tly_hold_end(&hold);
    if (close(out.fd) != 0 && out.error == 0) out.error = errno;
    if (out.error == 0 && rename(temporary, path) != 0) out.error = errno;
    if (out.error != 0) unlink(temporary);
    return -out.error;
}

int tly_writeout(const char *path) {
    struct tly_view view;
    int result = tly_view_over(tly_region, tly_region->region_bytes, &view, NULL);
    if (result != 0) return result;
    uint32_t nodes = tly_view_count(&view, TLY_SEC_NODES);
    size_t scratch_bytes = nodes * sizeof(struct tly_balance);
    struct tly_balance *balance = tly_map_reserve(scratch_bytes);
    if (!balance) return -ENOMEM;
    result = tly_view_balances(&view, balance, nodes);
    if (result == 0) result = write_file(path, &view, balance, nodes);
    munmap(balance, scratch_bytes);
    return result;
}

void tly_writeout_path(const char *pattern, char *path, size_t bytes) {
    struct tly_text_builder text;
    const char *names = tly_writer_base(TLY_SEC_NAMES);
    tly_text_begin(&text, path, bytes);
    if (pattern[0] != '/') {
        tly_text_add_bytes(&text, names + tly_region->directory.offset, tly_region->directory.bytes);
        tly_text_add(&text, "/");
    }
    for (const char *at = pattern; *at; at++) {
        if (*at != '%') {
            tly_text_add_bytes(&text, at, 1);
            continue;
        }
        switch (*++at) {
        case 'p': tly_text_add_number(&text, tly_region->pid); break;
        case 'n': tly_text_add_bytes(&text, names + tly_region->program.offset, tly_region->program.bytes); break;
        case 'h': tly_text_add_bytes(&text, names + tly_region->host.offset, tly_region->host.bytes); break;
        case '%': tly_text_add(&text, "%"); break;
        default: /* not one of ours: as it is */
            tly_text_add(&text, "%");
            if (*at == 0) return;
            tly_text_add_bytes(&text, at, 1);
        }
    }
}
