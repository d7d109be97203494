/* account.c - see account.h: everything that is not the fast path. */
#define _GNU_SOURCE
#include "core/account.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/say.h"
#include "core/hooks_of_runtime.h"
#include "core/module.h"
#include "core/tag.h"
#include "region/view.h"
#include "region/writer.h"

static void count(_Atomic uint64_t *word) { atomic_fetch_add_explicit(word, 1, memory_order_relaxed); }

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void raise_peak(int64_t total) {
    int64_t peak = atomic_load_explicit(&tly_region->peak_bytes, memory_order_relaxed);
    while (total > peak) {
        if (!atomic_compare_exchange_weak_explicit(&tly_region->peak_bytes, &peak, total, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        struct timespec now;
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
        uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        atomic_store_explicit(&tly_region->peak_ns, now_ns, memory_order_relaxed);
        return;
    }
}

/* Takes what was counted down since the last time: adding it back in one instruction loses nothing to a signal. */
static int64_t take_change(_Atomic int64_t *left, const _Atomic int64_t *quota) {
    int64_t change =
        atomic_load_explicit(quota, memory_order_relaxed) - atomic_load_explicit(left, memory_order_relaxed);
    tly_add((_Atomic uint64_t *)left, (uint64_t)change);
    return change;
}

static void pass_on(struct tly_ledger *ledger) {
    int64_t change = take_change(&ledger->alloc_left, &ledger->alloc_quota);
    change -= take_change(&ledger->free_left, &ledger->free_quota);
    int64_t total = atomic_fetch_add_explicit(&tly_region->total_bytes, change, memory_order_relaxed) + change;
    if (change > 0) raise_peak(total);
    tly_add(&ledger->events, 1);
}

/* `block` is handed back for the sake of the hooks' tail calls. */
void *tly_account_event(void *block) {
    int saved = errno;
    struct tly_ledger *ledger = tly_self.ledger;
    if (ledger) {
        tly_busy_begin(ledger);
        if (atomic_load(&tly_gate_page.free) == tly_self.known) {
            pass_on(ledger);
            if (block) tly_map_note((uintptr_t)block);
        }
        tly_busy_end(ledger);
    }
    tly_hooks_of_runtime.poll();
    errno = saved;
    return block;
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

static uint32_t thread_site(void) {
    char name[17] = {0};
    syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0); /* the function is one of our hooks */
    return tly_site_of_name(TLY_SITE_THREAD, name, (uint32_t)strlen(name));
}

static uint32_t compose(uint32_t node, uintptr_t caller, uint32_t auto_tags) {
    if (node == TLY_NODE_PAUSED) return node;
    if (auto_tags & TLY_AUTO_THREAD) node = tly_node_child(node, thread_site());
    if (auto_tags & (TLY_AUTO_MODULE | TLY_AUTO_CALLER)) {
        uint64_t bias;
        uint32_t module = tly_module_of(caller - 1, &bias);
        if (auto_tags & TLY_AUTO_MODULE) node = tly_node_child(node, tly_site_of_code(TLY_SITE_MODULE, module, 0));
        if (auto_tags & TLY_AUTO_CALLER)
            node = tly_node_child(node, tly_site_of_code(TLY_SITE_CALLER, module, caller - bias));
    }
    return node;
}

void tly_path_remember(struct tly_thread *thread, uint32_t node, uintptr_t address, uint32_t result) {
    struct tly_path_set *set = tly_path_set_of(thread, node, address);
    const tly_pair first = tly_pair_load(&set->slot[0]);
    tly_pair_store(&set->slot[1], first[0], (uint32_t)first[1], (uint32_t)(first[1] >> 32));
    tly_pair_store(&set->slot[0], address, node, result);
}

static bool is_paused(const struct tly_thread *thread) {
    return thread->pause_depth > 0 || atomic_load_explicit(&tly_gate_state.paused_all, memory_order_relaxed) > 0;
}

static uint32_t billed_node(struct tly_thread *thread, void *caller) {
    if (is_paused(thread)) return TLY_NODE_PAUSED;
    uint32_t node = thread->tag_node;
    if (!thread->auto_tags) return node;
    uint32_t result = tly_path_find(thread, node, (uintptr_t)caller);
    if (result != TLY_PATH_UNKNOWN) return result;
    result = compose(node, (uintptr_t)caller, thread->auto_tags);
    tly_path_remember(thread, node, (uintptr_t)caller, result);
    return result;
}

/* ---- the shared ledger: for threads that have none of their own -------------------------------------------------- */

static struct tly_ledger *shared_ledger(void) { return tly_writer_ledger(TLY_LEDGER_SHARED); }

/* In: the shared ledger is busy. False: the gate has closed meanwhile, or this is a forked child without a region. */
static bool shared_begin(const _Atomic uint32_t *gate) {
    uint32_t generation = atomic_load(gate);
    if (generation < TLY_GENERATION_FIRST) return false;
    atomic_fetch_add(&shared_ledger()->busy, 1);
    if (atomic_load(gate) >= TLY_GENERATION_FIRST) return true;
    atomic_fetch_sub(&shared_ledger()->busy, 1);
    return false;
}
static void shared_end(void) { atomic_fetch_sub(&shared_ledger()->busy, 1); }

static void shared_change(int64_t change) {
    int64_t total = atomic_fetch_add_explicit(&tly_region->total_bytes, change, memory_order_relaxed) + change;
    if (change > 0) raise_peak(total);
    count(&shared_ledger()->events);
}

static void untracked(void) {
    static _Atomic bool said;
    count(&tly_thread_ledger()->untracked_allocs);
    if (!atomic_exchange(&said, true))
        tly_say("some allocations cannot be recorded: no more memory or address space for the account "
                "(see ulimit -v and -d); reports say how many",
                NULL);
}

static void shared_bill(uint32_t node, uint64_t bytes) {
    struct tly_cell *cell = tly_shared_cell(node);
    atomic_fetch_add_explicit(&cell->alloc_bytes, bytes, memory_order_release);
    atomic_fetch_add_explicit(&cell->alloc_blocks, 1, memory_order_release);
    if (node != TLY_NODE_PAUSED) shared_change((int64_t)bytes);
}

static void shared_close(uint32_t node, uint64_t bytes) {
    struct tly_cell *cell = tly_shared_cell(node);
    if (!cell) { /* memory has run out since it was billed in another ledger: it stays billed, and that is counted */
        untracked();
        return;
    }
    atomic_fetch_add_explicit(&cell->free_bytes, bytes, memory_order_release);
    atomic_fetch_add_explicit(&cell->free_blocks, 1, memory_order_release);
    if (node != TLY_NODE_PAUSED) shared_change(-(int64_t)bytes);
}

static uint32_t node_of_shared(struct tly_thread *thread, void *caller) {
    uint32_t auto_tags = atomic_load_explicit(&tly_gate_state.auto_tags, memory_order_relaxed);
    return compose(is_paused(thread) ? TLY_NODE_PAUSED : thread->tag_node, (uintptr_t)caller, auto_tags);
}

/* ---- the general case: with the thread's own ledger or the shared one, any size, any node ------------------------- */

/* The entry was not empty: closes the old block, whose free was never seen. */
static void replaced(uint32_t *entry, size_t index) {
    uint64_t size;
    uint32_t node;
    uint32_t *owner = tly_map_owner(entry, index);
    if (owner && tly_map_take(owner, &size, &node)) {
        shared_close(node, size);
        count(&tly_thread_ledger()->missed_frees);
    }
    *entry = 0;
}

/* Which ledger a passage goes through; opened by `enter`, closed by `leave`. */
struct passage {
    struct tly_thread *own; /* NULL: the shared ledger */
    bool open, event;
    void *block; /* just billed */
};

static struct passage enter(const _Atomic uint32_t *gate) {
    struct passage passage = {NULL, false, false, NULL};
    struct tly_thread *thread = &tly_self;
    while (tly_thread_ready(thread)) {
        tly_busy_begin(thread->ledger);
        uint32_t now = atomic_load(gate);
        if (now == thread->known) {
            passage.own = thread;
            passage.open = true;
            return passage;
        }
        tly_busy_end(thread->ledger);
        if (now == TLY_GENERATION_OFF) return passage;
        /* The rules changed in between: once more under the new ones. */
    }
    passage.open = shared_begin(gate);
    return passage;
}

static void leave(struct passage *passage) {
    if (!passage->own) {
        shared_end();
        tly_hooks_of_runtime.poll();
        return;
    }
    tly_busy_end(passage->own->ledger);
    if (passage->event) tly_account_event(passage->block);
}

static void bill(struct passage *passage, uint32_t node, uint64_t size) {
    struct tly_cell *cell = passage->own ? tly_thread_cell(passage->own, node) : NULL;
    if (!cell) {
        shared_bill(node, size);
        return;
    }
    tly_add(&cell->alloc_bytes, size);
    tly_add(&cell->alloc_blocks, 1);
    if (node == TLY_NODE_PAUSED) { /* in no total, so no quota runs out: look for a resume now and then */
        passage->event |= ++passage->own->paused_allocs % TLY_OFF_RADAR_BATCH == 0;
        return;
    }
    passage->event |= tly_sub_is_negative(&passage->own->ledger->alloc_left, (int64_t)size);
}

static void close_block(struct passage *passage, uint32_t node, uint64_t size) {
    struct tly_cell *cell = passage->own ? tly_thread_cell(passage->own, node) : NULL;
    if (!cell) {
        shared_close(node, size);
        return;
    }
    tly_add(&cell->free_bytes, size);
    tly_add(&cell->free_blocks, 1);
    if (node == TLY_NODE_PAUSED) return;
    passage->event |= tly_sub_is_negative(&passage->own->ledger->free_left, (int64_t)size);
}

static void unmatched(const struct passage *passage) {
    if (passage->own)
        tly_add(&passage->own->ledger->unmatched_frees, 1);
    else
        count(&shared_ledger()->unmatched_frees);
}

static struct tly_taken take(void *block) {
    struct tly_taken taken = {0, 0, 0, 0, false};
    uint32_t *piece = tly_map_piece((uintptr_t)block);
    if (piece) taken.found = tly_map_take(piece + tly_map_index((uintptr_t)block), &taken.size, &taken.node);
    return taken;
}

/* Paused blocks are written wide, so that the fast path of free does not meet them. */
static bool write_entry(uint32_t *entry, uint64_t size, uint32_t node) {
    return node == TLY_NODE_PAUSED ? tly_map_write_wide(entry, size, node) : tly_map_write(entry, size, node);
}

/* Bills a new block inside an open passage. */
static void insert(struct passage *passage, void *block, size_t size, void *caller) {
    struct tly_thread *thread = &tly_self;
    uint32_t node = passage->own ? billed_node(thread, caller) : node_of_shared(thread, caller);
    uint32_t *entry = tly_map_entry_for((uintptr_t)block);
    bool room = entry != NULL && ((passage->own && tly_thread_cell(thread, node)) || tly_shared_cell(node));
    for (uint32_t i = 0; room && i <= tly_map_continuations(size, node); i++)
        if (entry[i] != 0) replaced(entry + i, tly_map_index((uintptr_t)block) + i);
    if (room && write_entry(entry, size, node))
        bill(passage, node, size);
    else
        untracked();
    passage->block = block;
}

void *tly_account_alloc(void *block, size_t size, void *caller) {
    int saved = errno;
    if (atomic_load(&tly_gate_page.alloc) == TLY_GENERATION_OFF) {
        tly_hooks_of_runtime.while_off();
        errno = saved;
        return block;
    }
    struct passage passage = enter(&tly_gate_page.alloc);
    if (passage.open) {
        insert(&passage, block, size, caller);
        leave(&passage);
    }
    errno = saved;
    return block;
}

void tly_account_free(void *block) {
    if (atomic_load(&tly_gate_page.free) == TLY_GENERATION_OFF) return;
    int saved = errno;
    struct passage passage = enter(&tly_gate_page.free);
    if (passage.open) {
        struct tly_taken taken = take(block);
        if (taken.found)
            close_block(&passage, taken.node, taken.size);
        else
            unmatched(&passage);
        leave(&passage);
    }
    errno = saved;
}

bool tly_account_knows(const void *block) {
    const uint32_t *piece = tly_map_piece((uintptr_t)block);
    return piece && piece[tly_map_index((uintptr_t)block)] != 0;
}

/* ---- realloc ----------------------------------------------------------------------------------------------------- */

struct tly_taken tly_account_realloc_begin(void *block) {
    struct tly_taken taken = {0, 0, 0, 0, false};
    if (atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed) == TLY_GENERATION_OFF) return taken;
    int saved = errno;
    struct passage passage = enter(&tly_gate_page.free);
    if (passage.open) {
        taken = take(block);
        taken.epoch = atomic_load_explicit(&tly_region->epoch, memory_order_relaxed);
        if (!taken.found) unmatched(&passage);
        leave(&passage);
    }
    errno = saved;
    return taken;
}

void tly_account_realloc_end(struct tly_taken taken, void *block, void *result, size_t size, void *caller) {
    if (atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed) == TLY_GENERATION_OFF) {
        if (result) tly_account_alloc(result, size, caller); /* is counted as off the radar */
        return;
    }
    int saved = errno;
    bool kept = result == NULL && size != 0; /* realloc(p, 0) that returns NULL has freed the block */
    struct passage passage = enter(&tly_gate_page.free);
    if (passage.open) {
        if (taken.found && taken.epoch == atomic_load_explicit(&tly_region->epoch, memory_order_relaxed)) {
            uint32_t *entry = kept ? tly_map_entry_for((uintptr_t)block) : NULL;
            if (!kept)
                close_block(&passage, taken.node, taken.size);
            else if (entry)
                write_entry(entry, taken.size, taken.node);
        }
        if (result && atomic_load_explicit(&tly_gate_page.alloc, memory_order_relaxed) >= TLY_GENERATION_FIRST)
            insert(&passage, result, size, caller);
        leave(&passage);
    }
    errno = saved;
}

/* ---- from outside the hooks ------------------------------------------------------------------------------------- */

void tly_account_consolidate(void) {
    if (!shared_begin(&tly_gate_page.free)) return;
    struct tly_view view = {tly_region, tly_region->region_bytes, NULL};
    raise_peak(tly_view_live_bytes(&view));
    atomic_fetch_add_explicit(&tly_region->consolidations, 1, memory_order_relaxed);
    shared_end();
}

/* ---- inheritance ------------------------------------------------------------------------------------------------- */

static void inherit_block(void *context, uint64_t size, uint32_t node) {
    struct tly_cell *cell = tly_shared_cell(node);
    if (!cell) return;
    int64_t *total = context;
    cell->alloc_bytes += size;
    cell->alloc_blocks++;
    if (node == TLY_NODE_PAUSED) return;
    *total += (int64_t)size;
    tly_region->inherited_blocks++;
}

void tly_account_inherit(void) {
    int64_t total = 0;
    tly_map_walk(inherit_block, &total);
    tly_region->inherited_bytes = (uint64_t)total;
    shared_change(total);
}
