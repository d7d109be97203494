/*
 * writer.h - the target's side of a region: making one, and appending to its sections.
 *
 * There is one region per process, always at the same address (a forked child's replaces the inherited one there), so
 * addresses inside it stay valid for ever. Appending is lock-free and async-signal-safe: room is handed out by an
 * atomic add, and memory is committed in steps with MADV_POPULATE_WRITE, which fails cleanly on a full file system
 * where a plain store would raise SIGBUS, and needs no file descriptor.
 */
#ifndef TLY_WRITER_H
#define TLY_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region/region.h"

extern struct tly_region *tly_region; /* NULL before tly_writer_create */

struct tly_writer_sizes {
    uint64_t ledger_pool_bytes; /* private cells; the shared ledger may go beyond */
    uint64_t node_index_bytes;  /* largest level of the node index */
};

/* Makes the process's region, in the file `path` (created anew, mode 0600) or, with NULL, in anonymous memory.
 * A second call, in a forked child, replaces the inherited one at the same address. 0 or -errno: then no region is
 * made and, if there was one, its place holds scratch memory that nobody reads. */
int tly_writer_create(const char *path, const struct tly_writer_sizes *sizes);

/* In a forked child: moves the parent's region out of harm's way and puts scratch memory in its place, so that nothing
 * this process does can reach it. Idempotent until the next create. */
void tly_writer_shield(void);
/* The parent's region, moved there by the shield, or NULL. */
const struct tly_region *tly_writer_parent(void);
void tly_writer_forget_parent(void);
/* How much of a section may be read there: what was committed at the fork. */
uint64_t tly_writer_parent_bytes(enum tly_section_id id);

/* Room for `bytes` in a section, aligned to 8, committed and zeroed. Returns the offset within the section, or
 * UINT64_MAX when the section or the memory is exhausted (the room stays unused). */
uint64_t tly_writer_append(enum tly_section_id id, uint64_t bytes);
/* Commits the first `bytes` of a section without handing them out. */
bool tly_writer_commit(enum tly_section_id id, uint64_t bytes);

/* Start of a section. */
static inline void *tly_writer_base(enum tly_section_id id) {
    return (char *)tly_region + tly_region->section[id].offset;
}
static inline struct tly_site *tly_writer_site(uint32_t index) {
    return (struct tly_site *)tly_writer_base(TLY_SEC_SITES) + index;
}
static inline struct tly_node *tly_writer_node(uint32_t index) {
    return (struct tly_node *)tly_writer_base(TLY_SEC_NODES) + index;
}
static inline struct tly_ledger *tly_writer_ledger(uint32_t index) {
    return (struct tly_ledger *)tly_writer_base(TLY_SEC_LEDGERS) + index;
}

/* Copies a name into the region. Returns its offset, UINT64_MAX on failure. */
uint64_t tly_writer_name(const char *bytes, uint32_t count);
/* Copies a text of the header (before the magic is written). */
void tly_writer_text(struct tly_text *text, const char *bytes, size_t count);

#endif
