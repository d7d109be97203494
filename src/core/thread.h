/*
 * thread.h - what one thread knows: its ledger, its place in the tag tree, its caches.
 *
 * The record in thread-local storage is small and initial-exec. Everything bigger (segment directory, path cache, tag
 * stack) is one private mapping per ledger, handed from thread to thread together with it. A thread that cannot have a
 * ledger (no memory, already past its last destructor, a signal inside the attaching) uses the shared ledger: slower,
 * with atomic adds, but just as exact.
 */
#ifndef TLY_THREAD_H
#define TLY_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/gate.h"
#include "region/region.h"

#define TLY_PATH_SETS 1024u /* sets of two slots each: 32 KiB a thread */

/* Two words that are read by one instruction and written by one: a signal handler on the same thread finds the old ones
 * or the new ones, never a mixture. (Plain 16-byte loads and stores: no other thread looks at them.) */
typedef uint64_t tly_pair __attribute__((vector_size(16), may_alias));
static inline tly_pair tly_pair_load(const tly_pair *from) { return *(const volatile tly_pair *)from; }
static inline void tly_pair_store(tly_pair *to, uint64_t word, uint32_t low, uint32_t high) {
    *(volatile tly_pair *)to = (tly_pair){word, (uint64_t)high << 32 | low};
}

/* (node, caller) -> the node that is billed, or (node, name's address) -> the node of the pushed tag: address; node and,
 * in the upper half, the result. */
struct tly_path_set {
    tly_pair slot[2];
};

/* One level of the tag stack: the address of the pushed literal (TLY_NO_LITERAL: of anything else); the node below which
 * it was pushed, to which the pop leads back, and in the upper half its node. It stays as it is after the pop: the next push
 * at this depth is mostly the same. */
typedef tly_pair tly_tag_slot;
#define TLY_NO_LITERAL ((uintptr_t)1)
/* Deeper tags are counted (index_overflow) and billed to the node of this level. Only what is used is ever touched. */
#define TLY_TAG_LEVELS 65536u

struct tly_thread {
    uint32_t generation; /* equal to the gate's: the fast path may be used (not while paused) */
    uint32_t known;      /* the generation whose rules the fields below follow */
    uint32_t auto_tags;
    bool attaching, exited;
    bool forks_inside; /* noted before a fork: a hook of this thread is under way */
    struct tly_ledger *ledger;
    struct tly_seg **segs; /* [node >> TLY_SEG_SHIFT], NULL: not yet */
    struct tly_path_set *paths;
    uint32_t tag_node, depth, capacity; /* the tag stack; tag_node is the node of its top; capacity 0: no stack */
    uint32_t pause_depth, pause_all_held;
    tly_tag_slot *stack;
    uint32_t ledger_index;
    uint32_t off_radar;     /* allocations seen while off, not yet passed on */
    uint32_t paused_allocs; /* counted for the sake of looking at requests now and then */
    uint32_t end_rounds;    /* of destructors of thread-specific data */
    uint64_t serial;        /* names the thread in tally_stack; 0: not given out yet */
};

extern __thread struct tly_thread tly_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Once per process; the second in a forked child, where all ledgers are new. */
int tly_threads_init(void);
void tly_threads_after_fork(void);
/* How much of SEGS private ledgers may use; beyond it threads share. */
void tly_threads_set_pool(uint64_t bytes);

/* Makes the calling thread's fast path usable for the gate's current generation: attaches it if need be. False: use the
 * shared ledger this time. */
bool tly_thread_ready(struct tly_thread *thread);

/* The thread's cell of `node`, made if need be; NULL if there is no memory for it. */
struct tly_cell *tly_thread_cell_slow(struct tly_thread *thread, uint32_t node);
struct tly_cell *tly_shared_cell(uint32_t node);

static inline struct tly_cell *tly_thread_cell(struct tly_thread *thread, uint32_t node) {
    struct tly_seg *seg = thread->segs[node >> TLY_SEG_SHIFT];
    if (__builtin_expect(seg != NULL, 1)) return &seg->cell[node % TLY_SEG_NODES];
    return tly_thread_cell_slow(thread, node);
}

/* The counters that errors and oddities of this thread go to: its ledger, or the shared one. */
struct tly_ledger *tly_thread_ledger(void);

/* Bytes a thread may allocate, or free, before it passes its change on. */
#define TLY_FLUSH_BYTES 16384

/* Keep these adds single instructions: a signal handler on the same thread may add in between. */
static inline void tly_add(_Atomic uint64_t *word, uint64_t value) {
#if defined(__x86_64__)
    __asm__("addq %1, %0" : "+m"(*word) : "er"(value) : "cc");
#else
    atomic_fetch_add_explicit(word, value, memory_order_release);
#endif
}
/* Subtracts; true if the result is negative. */
static inline bool tly_sub_is_negative(_Atomic int64_t *word, int64_t value) {
#if defined(__x86_64__)
    bool negative;
    __asm__("subq %2, %0" : "+m"(*word), "=@ccs"(negative) : "er"(value) : "cc");
    return negative;
#else
    return atomic_fetch_sub_explicit(word, value, memory_order_relaxed) - value < 0;
#endif
}

#endif
