/*
 * map.h - the only way the runtime gets memory: mapped, counted by kind, never from malloc.
 *
 * Thread-safe, async-signal-safe, errno kept. Every byte is counted in the kind's sum, which snapshots report.
 */
#ifndef TLY_MAP_H
#define TLY_MAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Memory of the runtime itself, by kind; everything it maps is counted in one of these, in bytes. */
enum tly_own_memory {
    TLY_OWN_REGION,    /* committed parts of the region */
    TLY_OWN_BLOCK_MAP, /* resident pages of the block map, when they were last measured */
    TLY_OWN_THREADS,   /* per-thread caches, tag stacks, segment directories */
    TLY_OWN_OTHER,     /* trees handed to callers and the like */
    TLY_OWN_COUNT
};

/* Before anything else: keeps huge pages away from our own static tables. */
void tly_map_init(void);
/* Address space, zeroed, not backed until touched. NULL when there is none. `kind` is enum tly_own_memory. */
void *tly_map_reserve(size_t bytes);

/* Adds to a kind's count what was touched of a reservation (may be negative). */
void tly_map_count(enum tly_own_memory kind, int64_t bytes);
uint64_t tly_map_bytes(enum tly_own_memory kind);
void tly_map_set(enum tly_own_memory kind, uint64_t bytes);
/* Where the counts are shown to others: TLY_OWN_COUNT words, kept up to date from now on. */
void tly_map_mirror(_Atomic uint64_t *words);

#endif
