/*
 * index.h - a lock-free index of the records of a section by content.
 *
 * Slots are words (upper half of the hash | record id + 1) in lines of two cache lines each, in levels of growing size.
 * A key's probe sequence is fixed: its line in level 0, then its line in level 1, and so on; it lies in the first free
 * slot of that sequence. As slots are never emptied, a search ends at the first empty slot, two threads that insert the
 * same key meet in the same slot, and nothing ever has to be moved. Async-signal-safe.
 */
#ifndef TLY_INDEX_H
#define TLY_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "region/region.h"

#define TLY_INDEX_FULL UINT32_MAX /* no slot left in any level, or no memory for the level */

struct tly_index {
    enum tly_section_id section;
    uint64_t largest_level_bytes;
    /* Is record `id` the key that is looked for? */
    bool (*same)(uint32_t id, const void *key);
    /* Makes a record for the key; returns its id or UINT32_MAX. Called at most once per search. */
    uint32_t (*make)(const void *key, uint64_t hash);
    /* The record lost the race for its slot: takes it back. */
    void (*drop)(uint32_t id);
};

/* The id of the key's record, made if it was not there. UINT32_MAX when it could not be made; `*overflow` is set to
 * true when it was made, or is to be searched, outside the index. */
uint32_t tly_index_get(const struct tly_index *index, const void *key, uint64_t hash, bool *overflow);

/* Filled slots and slots in the levels begun so far. */
void tly_index_load(const struct tly_index *index, uint64_t *filled, uint64_t *slots);

#endif
