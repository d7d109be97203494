/* tagstack.c - see tagstack.h. Signal handlers that push and pop in balance may come at any point in here. */
#include "core/tagstack.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "core/account.h"
#include "core/tag.h"
#include "core/thread.h"
#include "region/writer.h"

/* Addresses of user space are below this, so sites can share the path cache with them. */
#define SITE_MARK ((uintptr_t)1 << 63)
#define ANY_NODE UINT32_MAX /* in the path cache: the result is a site */

static _Atomic uint64_t serials;

static void count_one(_Atomic uint64_t *word) { atomic_fetch_add_explicit(word, 1, memory_order_relaxed); }

static uint32_t name_bytes(const char *name) {
    size_t bytes = strnlen(name, TLY_NAME_MAX + 1);
    if (bytes <= TLY_NAME_MAX) return (uint32_t)bytes;
    count_one(&tly_thread_ledger()->cut_names);
    return TLY_NAME_MAX;
}

/* The site of a name that is not a literal: by its hash in the path cache, checked against the name itself. */
static uint32_t site_of_copy(struct tly_thread *thread, const char *name, bool ready) {
    uint32_t bytes = name_bytes(name);
    uint64_t hash = tly_hash_bytes(name, bytes);
    uintptr_t address = SITE_MARK | hash;
    uint32_t site = ready ? tly_path_find(thread, ANY_NODE, address) : TLY_PATH_UNKNOWN;
    if (site != TLY_PATH_UNKNOWN && tly_site_is_tag(site, name, bytes)) return site;
    site = tly_site_of_name(TLY_SITE_TAG, name, bytes);
    if (ready && site != TLY_NONE) tly_path_remember(thread, ANY_NODE, address, site);
    return site;
}

/* The node of `name` below the top of the stack, through the caches where the thread may use them. */
static uint32_t child_of_name(struct tly_thread *thread, const char *name, bool keep, bool ready) {
    uint32_t site = TLY_NONE;
    uintptr_t address = (uintptr_t)name;
    if (!keep) {
        site = site_of_copy(thread, name, ready);
        address = SITE_MARK | site;
    }
    uint32_t child = ready ? tly_path_find(thread, thread->tag_node, address) : TLY_PATH_UNKNOWN;
    if (child != TLY_PATH_UNKNOWN) return child;
    if (keep) site = tly_site_of_name(TLY_SITE_TAG, name, name_bytes(name));
    child = tly_node_child(thread->tag_node, site);
    if (ready && child != thread->tag_node) tly_path_remember(thread, thread->tag_node, address, child);
    return child;
}

static void push_node(struct tly_thread *thread, uintptr_t address, uint32_t node) {
    if (__builtin_expect(thread->depth >= thread->capacity, 0)) {
        /* Too deep, or a thread after its end: matched, and billed to where the stack ends. */
        count_one(&tly_region->index_overflow);
        node = thread->tag_node;
    } else {
        tly_pair_store(&thread->stack[thread->depth], address, thread->tag_node, node);
    }
    tly_tag_step_up(thread, node);
}

static uint32_t push(struct tly_thread *thread, const char *name, bool keep) {
    int saved = errno;
    bool ready =
        thread->known == atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed) || tly_thread_ready(thread);
    /* Without an account there is no stack either. */
    bool account = ready || (atomic_load(&tly_gate_state.ready) && atomic_load(&tly_gate_page.free) != 0);
    uint32_t pushed = 0, child = thread->tag_node, depth = thread->depth;
    if (account) {
        if (ready) tly_busy_begin(thread->ledger); /* names and nodes are written: see before_fork */
        if (name && name[0]) child = child_of_name(thread, name, keep, ready);
        if (ready) tly_busy_end(thread->ledger);
        push_node(thread, keep && name ? (uintptr_t)name : TLY_NO_LITERAL, child);
        pushed = depth + 1;
    }
    errno = saved;
    return pushed;
}

uint32_t tly_tag_push_slow(const char *name) { return push(&tly_self, name, true); }
uint32_t tly_tag_push_copy(const char *name) { return push(&tly_self, name, false); }

void tly_count_pop_error(void) {
    /* A forked child that has no region yet must not count in its parent's. */
    if (atomic_load(&tly_gate_state.ready) && atomic_load(&tly_gate_page.free) != 0)
        count_one(&tly_thread_ledger()->pop_errors);
}

bool tly_tag_pop_error(void) {
    tly_count_pop_error();
    return false;
}

void tly_tag_position(struct tly_position *out) {
    struct tly_thread *thread = &tly_self;
    if (thread->serial == 0) thread->serial = atomic_fetch_add(&serials, 1) + 1;
    *out = (struct tly_position){thread->tag_node, thread->depth, thread->serial};
}

int tly_tag_override(uint32_t node) {
    (void)tly_thread_ready(&tly_self); /* may be the first thing the thread does */
    if (!atomic_load(&tly_gate_state.ready)) return -ENOSYS;
    if (node == TLY_NODE_PAUSED || (node != TLY_NODE_ROOT && node >= tly_node_count() + TLY_NODE_FIRST)) return -EINVAL;
    push_node(&tly_self, TLY_NO_LITERAL, node);
    return 0;
}

int tly_tag_rewind(const struct tly_position *position) {
    struct tly_thread *thread = &tly_self;
    if (position->owner != thread->serial || thread->serial == 0 || position->depth > thread->depth) return -EINVAL;
    bool on_stack = position->depth < thread->depth && position->depth < thread->capacity;
    uint32_t there = on_stack ? (uint32_t)thread->stack[position->depth][1] : thread->tag_node;
    if (there != position->node) return -EINVAL;
    thread->tag_node = position->node;
    atomic_signal_fence(memory_order_seq_cst);
    thread->depth = position->depth;
    return 0;
}

void tly_tag_pause_thread(void) {
    struct tly_thread *thread = &tly_self;
    thread->pause_depth++;
    thread->generation = TLY_GENERATION_NONE;
}

void tly_tag_resume_thread(void) {
    struct tly_thread *thread = &tly_self;
    if (thread->pause_depth == 0) {
        tly_count_pop_error();
        return;
    }
    if (--thread->pause_depth == 0 && atomic_load(&tly_gate_state.paused_all) <= 0) {
        thread->generation = thread->known;
    }
}
