/* thread.c - see thread.h. Ledgers are handed out from a lock-free list; a ledger's private mapping stays with it. */
#define _GNU_SOURCE
#include "core/thread.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/map.h"
#include "base/say.h"
#include "core/blockmap.h"
#include "core/hooks_of_runtime.h"
#include "region/writer.h"

__thread struct tly_thread tly_self
    __attribute__((tls_model("initial-exec"))) = {.generation = TLY_GENERATION_NONE, .known = TLY_GENERATION_NONE};

enum { LEDGERS_MOST = 1 << 16 };

/* A ledger's private mapping: segment directory and tag stack (address space, touched where used), path cache. */
struct block {
    struct tly_seg *segs[TLY_MAP_NODES >> TLY_SEG_SHIFT];
    struct tly_path_set paths[TLY_PATH_SETS];
    tly_tag_slot stack[TLY_TAG_LEVELS];
};
#define BLOCK_TOUCHED (sizeof(struct tly_path_set) * TLY_PATH_SETS + 2 * TLY_PAGE) /* estimate */

static struct block **blocks;         /* by ledger index */
static _Atomic uint32_t blocks_end;   /* all in use are below */
static struct tly_seg **shared_segs;  /* directory of the shared ledger */
static _Atomic uint64_t free_ledgers; /* head of the free list: change count << 32 | index + 1 */
static uint64_t pool_bytes;           /* private segments may use that much of SEGS */
static pthread_key_t exit_key;
static bool have_exit_key;

static void detach(void *unused);

int tly_threads_init(void) {
    shared_segs = tly_map_reserve(sizeof(struct tly_seg *) * (TLY_MAP_NODES >> TLY_SEG_SHIFT));
    blocks = tly_map_reserve(LEDGERS_MOST * sizeof *blocks);
    if (!shared_segs || !blocks) return -ENOMEM;
    have_exit_key = pthread_key_create(&exit_key, detach) == 0;
    tly_threads_after_fork();
    return 0;
}

void tly_threads_after_fork(void) {
    madvise(shared_segs, sizeof(struct tly_seg *) * (TLY_MAP_NODES >> TLY_SEG_SHIFT), MADV_DONTNEED);
    uint32_t most = atomic_load(&blocks_end);
    for (uint32_t i = 1; i < most; i++)
        if (blocks[i]) madvise(blocks[i]->segs, sizeof blocks[i]->segs, MADV_DONTNEED);
    atomic_store(&free_ledgers, 0);
    tly_writer_append(TLY_SEC_LEDGERS, sizeof(struct tly_ledger));
    struct tly_ledger *shared = tly_writer_ledger(TLY_LEDGER_SHARED);
    atomic_store_explicit(&shared->state, TLY_LEDGER_IS_SHARED, memory_order_release);
}

void tly_threads_set_pool(uint64_t bytes) { pool_bytes = bytes; }

/* ---- ledgers ------------------------------------------------------------------------------------------------------ */

static uint32_t take_recycled(void) {
    uint64_t head = atomic_load_explicit(&free_ledgers, memory_order_acquire);
    while ((uint32_t)head != 0) {
        uint32_t next = atomic_load_explicit(&tly_writer_ledger((uint32_t)head - 1)->next, memory_order_relaxed);
        uint64_t changed = ((head >> 32) + 1) << 32 | next;
        if (atomic_compare_exchange_weak_explicit(&free_ledgers, &head, changed, memory_order_acq_rel,
                                                  memory_order_acquire))
            return (uint32_t)head - 1;
    }
    return 0;
}

static void give_back(uint32_t index) {
    uint64_t head = atomic_load_explicit(&free_ledgers, memory_order_relaxed), changed;
    do {
        atomic_store_explicit(&tly_writer_ledger(index)->next, (uint32_t)head, memory_order_relaxed);
        changed = ((head >> 32) + 1) << 32 | (index + 1);
    } while (!atomic_compare_exchange_weak_explicit(&free_ledgers, &head, changed, memory_order_acq_rel,
                                                    memory_order_relaxed));
}

/* 0 (the shared one): none to be had. */
static uint32_t new_ledger(void) {
    uint64_t offset = tly_writer_append(TLY_SEC_LEDGERS, sizeof(struct tly_ledger));
    if (offset == UINT64_MAX || offset / sizeof(struct tly_ledger) >= LEDGERS_MOST) return 0;
    struct tly_ledger *ledger = (struct tly_ledger *)((char *)tly_writer_base(TLY_SEC_LEDGERS) + offset);
    atomic_store_explicit(&ledger->alloc_quota, TLY_FLUSH_BYTES, memory_order_relaxed);
    atomic_store_explicit(&ledger->free_quota, TLY_FLUSH_BYTES, memory_order_relaxed);
    atomic_store_explicit(&ledger->alloc_left, TLY_FLUSH_BYTES, memory_order_relaxed);
    atomic_store_explicit(&ledger->free_left, TLY_FLUSH_BYTES, memory_order_relaxed);
    return (uint32_t)(offset / sizeof(struct tly_ledger));
}

static uint32_t live_ledgers(void) {
    uint32_t live = 0, count = (uint32_t)(tly_region->section[TLY_SEC_LEDGERS].used_bytes / sizeof(struct tly_ledger));
    for (uint32_t i = 1; i < count; i++)
        live += atomic_load_explicit(&tly_writer_ledger(i)->state, memory_order_relaxed) == TLY_LEDGER_LIVE;
    return live;
}

static uint32_t levels_used(const struct tly_thread *thread) {
    return thread->depth < TLY_TAG_LEVELS ? thread->depth : TLY_TAG_LEVELS;
}

static bool attach(struct tly_thread *thread) {
    uint32_t index = take_recycled();
    if (index == 0) index = new_ledger();
    if (index == 0) {
        atomic_fetch_add_explicit(&tly_region->spills, 1, memory_order_relaxed);
        return false;
    }
    if (!blocks[index]) {
        blocks[index] = tly_map_reserve(sizeof(struct block));
        if (blocks[index]) {
            tly_map_count(TLY_OWN_THREADS, BLOCK_TOUCHED);
            uint32_t end = atomic_load(&blocks_end);
            while (end <= index && !atomic_compare_exchange_weak(&blocks_end, &end, index + 1)) {
            }
        }
    }
    struct block *block = blocks[index];
    if (!block) {
        give_back(index);
        atomic_fetch_add_explicit(&tly_region->spills, 1, memory_order_relaxed);
        return false;
    }
    struct tly_ledger *ledger = tly_writer_ledger(index);
    thread->ledger_index = index;
    thread->segs = block->segs;
    thread->paths = block->paths;
    if (thread->depth && thread->stack && thread->stack != block->stack) /* after a fork: in the old ledger's block */
        memmove(block->stack, thread->stack, levels_used(thread) * sizeof *thread->stack);
    thread->stack = block->stack;
    thread->capacity = TLY_TAG_LEVELS;
    atomic_store_explicit(&ledger->busy, 0, memory_order_relaxed);
    atomic_store_explicit(&ledger->tid, (uint32_t)syscall(SYS_gettid), memory_order_relaxed);
    atomic_fetch_add_explicit(&ledger->threads, 1, memory_order_relaxed);
    atomic_store_explicit(&ledger->state, TLY_LEDGER_LIVE, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    thread->ledger = ledger;
    if (thread->off_radar)
        atomic_fetch_add_explicit(&tly_region->off_radar_allocs, thread->off_radar, memory_order_relaxed);
    thread->off_radar = 0;
    uint32_t live = live_ledgers(), most = atomic_load_explicit(&tly_region->peak_threads, memory_order_relaxed);
    while (live > most && !atomic_compare_exchange_weak(&tly_region->peak_threads, &most, live)) {
    }
    if (have_exit_key) pthread_setspecific(exit_key, thread);
    return true;
}

/* The thread's last destructor: what it still allocates and frees goes to the shared ledger. */
static void detach(void *unused) {
    (void)unused;
    struct tly_thread *thread = &tly_self;
    struct tly_ledger *ledger = thread->ledger;
    /* Other keys' destructors may come after this one, and push tags: wait for the last round. */
    if (++thread->end_rounds < PTHREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(exit_key, thread) == 0) return;
    thread->generation = thread->known = TLY_GENERATION_NONE;
    thread->exited = true;
    if (!ledger) return;
    thread->ledger = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load(&tly_gate_page.free) == 0) return; /* a forked child: the ledger is the parent's */
    thread->capacity = thread->depth = 0;              /* the stack is the next thread's now */
    atomic_signal_fence(memory_order_seq_cst);
    thread->stack = NULL;
    thread->tag_node = TLY_NODE_ROOT;
    atomic_store_explicit(&ledger->state, TLY_LEDGER_FREE, memory_order_release);
    give_back(thread->ledger_index);
}

/* What was pushed last at each depth is remembered by address, up to the deepest level ever used. (The end is found by a
 * run of untouched slots: a single one can be a NULL that was pushed.) */
static void forget_literals(struct tly_thread *thread) {
    for (uint32_t i = 0, untouched = 0; i < thread->capacity && untouched < 256; i++) {
        const tly_pair slot = tly_pair_load(&thread->stack[i]);
        untouched = slot[0] == 0 ? untouched + 1 : 0;
        if (untouched == 0)
            tly_pair_store(&thread->stack[i], TLY_NO_LITERAL, (uint32_t)slot[1], (uint32_t)(slot[1] >> 32));
    }
}

bool tly_thread_ready(struct tly_thread *thread) {
    uint32_t generation = atomic_load(&tly_gate_page.free);
    if (generation != 0 && generation == thread->known) return true;
    if (thread->attaching || thread->exited) return false;
    int saved = errno;
    thread->attaching = true;
    atomic_signal_fence(memory_order_seq_cst);
    if (generation == 0) {
        thread->ledger = NULL;
        tly_hooks_of_runtime.forked();
        generation = atomic_load(&tly_gate_page.free);
    }
    bool ready = false;
    if (generation >= TLY_GENERATION_FIRST && (thread->ledger || attach(thread))) {
        /* what was cached under other rules is void */
        memset(thread->paths, 0, sizeof(struct tly_path_set) * TLY_PATH_SETS);
        forget_literals(thread);
        thread->auto_tags = atomic_load(&tly_gate_state.auto_tags);
        bool paused = thread->pause_depth > 0 || atomic_load(&tly_gate_state.paused_all) > 0;
        atomic_signal_fence(memory_order_seq_cst);
        thread->known = generation;
        thread->generation = paused ? TLY_GENERATION_NONE : generation;
        ready = true;
    }
    thread->attaching = false;
    errno = saved;
    return ready;
}

struct tly_ledger *tly_thread_ledger(void) {
    return tly_self.ledger ? tly_self.ledger : tly_writer_ledger(TLY_LEDGER_SHARED);
}

/* ---- segments ----------------------------------------------------------------------------------------------------- */

static struct tly_seg *new_seg(uint32_t ledger, uint32_t node) {
    int saved = errno;
    uint64_t used = tly_region->section[TLY_SEC_SEGS].used_bytes;
    uint64_t at = UINT64_MAX, ref = UINT64_MAX;
    if (ledger == TLY_LEDGER_SHARED || used < pool_bytes) {
        /* The two sections grow together; a segment whose entry is elsewhere would be unreadable. */
        at = tly_writer_append(TLY_SEC_SEGS, sizeof(struct tly_seg));
        if (at != UINT64_MAX) {
            uint32_t index = (uint32_t)(at / sizeof(struct tly_seg));
            uint64_t end = (uint64_t)(index + 1) * sizeof(struct tly_segref);
            if (tly_writer_commit(TLY_SEC_SEGDIR, end)) ref = end - sizeof(struct tly_segref);
            struct tly_section *directory = &tly_region->section[TLY_SEC_SEGDIR];
            uint64_t length = atomic_load(&directory->used_bytes);
            while (ref != UINT64_MAX && length < end &&
                   !atomic_compare_exchange_weak(&directory->used_bytes, &length, end)) {
            }
        }
    }
    errno = saved;
    if (ref == UINT64_MAX) return NULL;
    struct tly_segref *entry = (struct tly_segref *)((char *)tly_writer_base(TLY_SEC_SEGDIR) + ref);
    entry->first_node = node / TLY_SEG_NODES * TLY_SEG_NODES;
    atomic_store_explicit(&entry->ledger_plus_1, ledger + 1, memory_order_release);
    return (struct tly_seg *)((char *)tly_writer_base(TLY_SEC_SEGS) + at);
}

struct tly_cell *tly_thread_cell_slow(struct tly_thread *thread, uint32_t node) {
    struct tly_seg *seg = new_seg(thread->ledger_index, node);
    if (!seg) return NULL;
    thread->segs[node >> TLY_SEG_SHIFT] = seg;
    return &seg->cell[node % TLY_SEG_NODES];
}

struct tly_cell *tly_shared_cell(uint32_t node) {
    struct tly_seg **place = &shared_segs[node >> TLY_SEG_SHIFT];
    struct tly_seg *seg = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!seg) {
        struct tly_seg *made = new_seg(TLY_LEDGER_SHARED, node);
        if (!made) return NULL;
        if (__atomic_compare_exchange_n(place, &seg, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) seg = made;
    }
    return &seg->cell[node % TLY_SEG_NODES];
}
