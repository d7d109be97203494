/*
 * account.h - what the hooks call: a block was made, a block goes away.
 *
 * The fast path handles what nearly always happens: the thread is attached, the size and node fit a narrow entry, all
 * tables are there. It calls nothing, so that the hooks need no stack frame for it; whatever else comes up goes to the
 * general function, in tail position. Budget beside the allocator's own work (x86-64, bench/instructions): about 35
 * instructions for an allocation, 15 more with automatic tags, 30 for a free; no lock and no locked instruction.
 *
 * A free is recorded before the real free, an allocation after the real one, so that an address is never in the map
 * twice. errno is kept.
 */
#ifndef TLY_ACCOUNT_H
#define TLY_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/blockmap.h"
#include "core/thread.h"
#include "region/writer.h"

/* What realloc takes out of the account before the call, to put it back if the call fails. */
struct tly_taken {
    uint64_t size;
    uint32_t node;
    uint32_t generation; /* of the gate at the fast take; 0: taken by the general function */
    uint32_t epoch;      /* a clear in between has forgotten the block */
    bool found;
};

/* While off, a thread looks at what outsiders ask for at every so many allocations. */
#define TLY_OFF_RADAR_BATCH 64

/* Bill a block, whatever the state of things. `block`, not NULL, is returned for the sake of tail calls. */
void *tly_account_alloc(void *block, size_t size, void *caller);
void tly_account_free(void *block);
/* Is the block in the map? */
bool tly_account_knows(const void *block);
/* A thread's quota is used up: passes its change on, looks at what outsiders ask for. */
void *tly_account_event(void *block);
/* Puts a result into the path cache. */
void tly_path_remember(struct tly_thread *thread, uint32_t node, uintptr_t address, uint32_t result);
static inline struct tly_path_set *tly_path_set_of(struct tly_thread *thread, uint32_t node, uintptr_t address) {
    uint64_t mixed = (address ^ (uint64_t)node << 40 ^ (uint64_t)node << 7) * 0x9e3779b97f4a7c15u;
    return &thread->paths[mixed >> 54];
}
_Static_assert(TLY_PATH_SETS == 1u << (64 - 54), "the shift in tly_path_set_of");

#define TLY_PATH_UNKNOWN UINT32_MAX
/* What the cache knows of (node, address). */
static inline uint32_t tly_path_find(struct tly_thread *thread, uint32_t node, uintptr_t address) {
    const struct tly_path_set *set = tly_path_set_of(thread, node, address);
    tly_pair slot = tly_pair_load(&set->slot[0]);
    if (__builtin_expect(slot[0] == address && (uint32_t)slot[1] == node, 1)) return (uint32_t)(slot[1] >> 32);
    slot = tly_pair_load(&set->slot[1]);
    return slot[0] == address && (uint32_t)slot[1] == node ? (uint32_t)(slot[1] >> 32) : TLY_PATH_UNKNOWN;
}

/* A passage in which the thread changes its account; clear waits for its end. A signal handler may nest one inside.
 * After the begin the gate has to be looked at again: either we see that it was closed, or we are seen busy. */
static inline void tly_busy_begin(struct tly_ledger *ledger) {
#if defined(__x86_64__)
    __asm__ volatile("incl %0" : "+m"(ledger->busy) : : "cc", "memory");
#else
    atomic_fetch_add_explicit(&ledger->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
#endif
}
static inline void tly_busy_end(struct tly_ledger *ledger) {
#if defined(__x86_64__)
    __asm__ volatile("decl %0" : "+m"(ledger->busy) : : "cc", "memory");
#else
    atomic_fetch_sub_explicit(&ledger->busy, 1, memory_order_release);
#endif
}

enum tly_fast {
    TLY_FAST_DONE,
    TLY_FAST_EVENT,   /* done, and the thread's quota is used up: tly_account_event is due */
    TLY_FAST_OFF,     /* nothing is accounted */
    TLY_FAST_GENERAL, /* nothing was done: the general function has to */
};

static inline __attribute__((always_inline)) enum tly_fast tly_fast_alloc(void *block, size_t size, void *caller) {
    struct tly_thread *thread = &tly_self;
    uint32_t generation = atomic_load_explicit(&tly_gate_page.alloc, memory_order_relaxed);
    if (__builtin_expect(generation != thread->generation, 0)) {
        if (generation == TLY_GENERATION_OFF && ++thread->off_radar < TLY_OFF_RADAR_BATCH) return TLY_FAST_DONE;
        return TLY_FAST_GENERAL;
    }
    uint32_t node = thread->tag_node;
    if (thread->auto_tags) {
        node = tly_path_find(thread, node, (uintptr_t)caller);
        if (__builtin_expect(node == TLY_PATH_UNKNOWN, 0)) return TLY_FAST_GENERAL;
    }
    uintptr_t address = (uintptr_t)block;
    uint32_t *piece = tly_map_even_piece(address);
    struct tly_seg *seg = thread->segs[node >> TLY_SEG_SHIFT];
    if (__builtin_expect(piece == NULL || seg == NULL || (address & 8) != 0, 0)) return TLY_FAST_GENERAL;
    uint32_t *entry = piece + tly_map_index(address);
    if (__builtin_expect(size > TLY_NARROW_SIZE_MAX || node >= TLY_NARROW_NODES || *entry != 0, 0))
        return TLY_FAST_GENERAL;
    struct tly_cell *cell = &seg->cell[node % TLY_SEG_NODES];
    struct tly_ledger *ledger = thread->ledger;
    tly_busy_begin(ledger);
    if (__builtin_expect(atomic_load_explicit(&tly_gate_page.alloc, memory_order_relaxed) != generation, 0)) {
        tly_busy_end(ledger);
        return TLY_FAST_GENERAL;
    }
    *entry = node << 12 | ((uint32_t)size + 1);
    tly_add(&cell->alloc_bytes, size);
    tly_add(&cell->alloc_blocks, 1);
    bool event = tly_sub_is_negative(&ledger->alloc_left, (int64_t)size);
    tly_busy_end(ledger);
    return __builtin_expect(event, 0) ? TLY_FAST_EVENT : TLY_FAST_DONE;
}

static inline __attribute__((always_inline)) enum tly_fast tly_fast_free(void *block) {
    struct tly_thread *thread = &tly_self;
    uint32_t generation = atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed);
    if (__builtin_expect(generation != thread->generation, 0))
        return generation == TLY_GENERATION_OFF ? TLY_FAST_OFF : TLY_FAST_GENERAL;
    uintptr_t address = (uintptr_t)block;
    uint32_t *piece = tly_map_even_piece(address);
    if (__builtin_expect(piece == NULL || (address & 8) != 0, 0)) return TLY_FAST_GENERAL;
    uint32_t *entry = piece + tly_map_index(address), word = *entry;
    if (__builtin_expect((int32_t)word <= 0, 0)) return TLY_FAST_GENERAL;
    uint32_t node = word >> 12, size = (word & 0xfff) - 1;
    struct tly_seg *seg = thread->segs[node >> TLY_SEG_SHIFT];
    if (__builtin_expect(seg == NULL, 0)) return TLY_FAST_GENERAL;
    struct tly_cell *cell = &seg->cell[node % TLY_SEG_NODES];
    struct tly_ledger *ledger = thread->ledger;
    tly_busy_begin(ledger);
    if (__builtin_expect(atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed) != generation, 0)) {
        tly_busy_end(ledger);
        return TLY_FAST_GENERAL;
    }
    *entry = 0;
    tly_add(&cell->free_bytes, size);
    tly_add(&cell->free_blocks, 1);
    bool event = tly_sub_is_negative(&ledger->free_left, size);
    tly_busy_end(ledger);
    return __builtin_expect(event, 0) ? TLY_FAST_EVENT : TLY_FAST_DONE;
}

/* What the hooks use. The calls are in tail position. */
static inline __attribute__((always_inline)) void *tly_account_made(void *block, size_t size, void *caller) {
    enum tly_fast how = tly_fast_alloc(block, size, caller);
    if (__builtin_expect(how == TLY_FAST_DONE, 1)) return block;
    return how == TLY_FAST_EVENT ? tly_account_event(block) : tly_account_alloc(block, size, caller);
}
static inline __attribute__((always_inline)) void tly_account_gone(void *block) {
    enum tly_fast how = tly_fast_free(block);
    if (how == TLY_FAST_EVENT) tly_account_event(NULL);
    if (how == TLY_FAST_GENERAL) tly_account_free(block);
}

/* realloc: `begin` before the real call takes the old block out; `end` after it bills the new one, or puts the old one
 * back when the call failed and the block is still there. */
struct tly_taken tly_account_realloc_begin(void *block);
static inline bool tly_fast_take(void *block, struct tly_taken *taken) {
    struct tly_thread *thread = &tly_self;
    uint32_t generation = atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed);
    uintptr_t address = (uintptr_t)block;
    uint32_t *piece = tly_map_even_piece(address);
    if (generation != thread->generation || piece == NULL || (address & 8) != 0) return false;
    uint32_t *entry = piece + tly_map_index(address), word = *entry;
    if ((int32_t)word <= 0) return false;
    tly_busy_begin(thread->ledger);
    bool open = atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed) == generation;
    uint32_t epoch = atomic_load_explicit(&tly_region->epoch, memory_order_relaxed);
    if (open) *entry = 0;
    tly_busy_end(thread->ledger);
    *taken = (struct tly_taken){(word & 0xfff) - 1, word >> 12, generation, epoch, open};
    return open;
}
/* After a realloc that gave a block, when nothing has changed since the take: closes the old block. */
static inline bool tly_fast_close(const struct tly_taken *taken) {
    struct tly_thread *thread = &tly_self;
    uint32_t generation = atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed);
    if (!taken->found || generation != taken->generation || generation != thread->generation) return false;
    struct tly_seg *seg = thread->segs[taken->node >> TLY_SEG_SHIFT];
    if (seg == NULL) return false;
    struct tly_cell *cell = &seg->cell[taken->node % TLY_SEG_NODES];
    tly_busy_begin(thread->ledger);
    bool open = atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed) == generation, event = false;
    if (open) {
        tly_add(&cell->free_bytes, taken->size);
        tly_add(&cell->free_blocks, 1);
        event = tly_sub_is_negative(&thread->ledger->free_left, (int64_t)taken->size);
    }
    tly_busy_end(thread->ledger);
    if (__builtin_expect(event, 0)) tly_account_event(NULL);
    return open;
}
void tly_account_realloc_end(struct tly_taken taken, void *block, void *result, size_t size, void *caller);

/* Looks at the balances of all threads together, for the peak. */
void tly_account_consolidate(void);

/* Sums of the blocks in the block map, billed as allocated to the shared ledger: a forked child's inheritance. */
void tly_account_inherit(void);

#endif
