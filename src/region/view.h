/*
 * view.h - reading a region: of a live process, of a dead one, or from a file that may be damaged.
 *
 * A view is a read-only mapping plus bounds that were checked against it, so every accessor here is safe on hostile
 * bytes: what does not fit is reported as absent. No malloc, no stdio: the same code serves the C API inside the target
 * and the command line outside. Views are not locked; several threads may read one.
 */
#ifndef TLY_VIEW_H
#define TLY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region/region.h"

struct tly_view {
    const struct tly_region *region;
    uint64_t bytes; /* of the mapping */
    void *mapping;  /* what close unmaps; NULL if the memory is somebody else's */
};

/* What was billed to one node, or all of them: everything since start or clear. Live is alloc minus free. */
struct tly_balance {
    uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks;
};

/* Maps the region file at `path`. 0; -errno of the system; -EBADMSG: not a region, damaged, or another version, with
 * `*why` (a constant text; may be NULL) saying what. */
int tly_view_open(const char *path, struct tly_view *out, const char **why);

/* The same over memory that stays the caller's: `bytes` at `base`. */
int tly_view_over(const void *base, uint64_t bytes, struct tly_view *out, const char **why);

void tly_view_close(struct tly_view *view);

/* Records of a section that may be read now. For SEGDIR and SEGS, NODES, ... this grows while the process lives. */
uint32_t tly_view_count(const struct tly_view *view, enum tly_section_id section);

/* Record `index` of a section, or NULL when there is none. The record may still be unpublished (see region.h). */
const void *tly_view_record(const struct tly_view *view, enum tly_section_id section, uint32_t index);

/* Bytes of a name; NULL if they do not lie inside NAMES. Not terminated. */
const char *tly_view_name(const struct tly_view *view, uint64_t offset, uint32_t bytes);

/* The balance of each of the first `nodes` nodes: frees are read before allocations everywhere, so none is negative.
 * Begins anew (a bounded number of times) when a clear falls in between. 0, or -EAGAIN when it never got a quiet one.
 * Nodes that come up in segments after `nodes` are left out. */
int tly_view_balances(const struct tly_view *view, struct tly_balance *out, uint32_t nodes);

/* Live bytes that no segment walk is needed for: the running total and what threads have not yet passed on. Exact at
 * quiescence. */
int64_t tly_view_live_bytes(const struct tly_view *view);

#endif
