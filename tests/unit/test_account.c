/* test_account.c - billing: the fast path, the general one and the shared ledger against a plain model. */
#define _GNU_SOURCE
#include "core_world.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/account.h"
#include "core/gate.h"
#include "core/tag.h"
#include "core/tagstack.h"
#include "region/writer.h"

static struct tly_balance minus(struct tly_balance a, struct tly_balance b) {
    return (struct tly_balance){a.alloc_bytes - b.alloc_bytes, a.alloc_blocks - b.alloc_blocks,
                                a.free_bytes - b.free_bytes, a.free_blocks - b.free_blocks};
}
static void expect(uint32_t node, struct tly_balance before, uint64_t alloc_bytes, uint64_t alloc_blocks,
                   uint64_t free_bytes, uint64_t free_blocks) {
    struct tly_balance change = minus(world_balance(node), before);
    assert_int_equal(change.alloc_bytes, alloc_bytes);
    assert_int_equal(change.alloc_blocks, alloc_blocks);
    assert_int_equal(change.free_bytes, free_bytes);
    assert_int_equal(change.free_blocks, free_blocks);
    world_check();
}
static uint64_t sum_of(size_t offset) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < tly_region->section[TLY_SEC_LEDGERS].used_bytes / sizeof(struct tly_ledger); i++)
        sum += *(uint64_t *)((char *)tly_writer_ledger(i) + offset);
    return sum;
}
#define COUNTED(FIELD) sum_of(offsetof(struct tly_ledger, FIELD))

/* Puts the thread on a new node of this name. */
static uint32_t on_node(const char *name) {
    assert_true(tly_thread_ready(&tly_self));
    if (tly_self.depth) tly_tag_pop_to(0);
    tly_tag_push_copy(name);
    return tly_self.tag_node;
}

/* ---- random work, three ways ------------------------------------------------------------------------------------- */

enum { BLOCKS = 500, NODES = 40, STEPS = 60000, RESULTS = 3 };
enum how { FAST, GENERAL, SHARED };
struct work {
    unsigned range;
    enum how how;
    uint64_t seed;
    struct tly_balance model[NODES];
    uint32_t node[NODES];
};

static uint64_t some_size(uint64_t r) {
    switch (r % 16) {
    case 0: return r >> 8 & 0xffffff;
    case 1: return (r >> 8 & 0xffff) + (1ul << 29);
    case 2: return 0;
    case 3: return TLY_NARROW_SIZE_MAX - 1 + (r >> 8 & 3);
    default: return r >> 8 & 511;
    }
}

static void *random_work(void *context) {
    struct work *work = context;
    static __thread struct {
        uint64_t size;
        uint32_t node;
        bool live;
    } blocks[BLOCKS];
    memset(blocks, 0, sizeof blocks);
    CHECK(tly_thread_ready(&tly_self));
    if (work->how == SHARED) { /* as if past its last destructor: no ledger of its own (but still its tags) */
        tly_self.exited = true;
        tly_self.generation = tly_self.known = TLY_GENERATION_NONE;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        char name[40];
        snprintf(name, sizeof name, "work %u.%u", work->range, i);
        work->node[i] = world_node(TLY_NODE_ROOT, name);
    }
    uint64_t random = work->seed;
    for (int step = 0; step < STEPS; step++) {
        uint64_t r = world_random(&random);
        uint32_t i = (uint32_t)(r % BLOCKS), n = (uint32_t)(r >> 20) % NODES;
        /* every 7th is only 8-aligned; far enough apart for any continuation */
        void *block = (char *)world_block(work->range, i * 8) + (i % 7 == 0 ? 8 : 0);
        uint64_t size = some_size(world_random(&random));
        errno = 77;
        if (!blocks[i].live) {
            CHECK(tly_tag_override(work->node[n]) == 0);
            void *same =
                work->how == GENERAL ? tly_account_alloc(block, size, NULL) : tly_account_made(block, size, NULL);
            CHECK(same == block);
            tly_tag_pop_to(tly_self.depth - 1);
            work->model[n].alloc_bytes += size;
            work->model[n].alloc_blocks++;
            blocks[i].size = size;
            blocks[i].node = n;
            blocks[i].live = true;
        } else if (r >> 40 & 3) {
            if (work->how == GENERAL)
                tly_account_free(block);
            else
                tly_account_gone(block);
            work->model[blocks[i].node].free_bytes += blocks[i].size;
            work->model[blocks[i].node].free_blocks++;
            blocks[i].live = false;
        } else { /* realloc; one of four fails */
            CHECK(tly_tag_override(work->node[n]) == 0);
            struct tly_taken taken = tly_account_realloc_begin(block);
            CHECK(taken.found && taken.size == blocks[i].size && taken.node == work->node[blocks[i].node]);
            if (size == 0) size = 1;
            bool fails = (r >> 42 & 3) == 0;
            tly_account_realloc_end(taken, block, fails ? NULL : block, size, NULL);
            tly_tag_pop_to(tly_self.depth - 1);
            if (!fails) {
                work->model[blocks[i].node].free_bytes += blocks[i].size;
                work->model[blocks[i].node].free_blocks++;
                work->model[n].alloc_bytes += size;
                work->model[n].alloc_blocks++;
                blocks[i].size = size;
                blocks[i].node = n;
            }
        }
        CHECK(errno == 77);
    }
    return NULL;
}

static void three_ways(void **state) {
    (void)state;
    static struct work work[RESULTS];
    uint64_t seed = world_seed();
    for (int i = 0; i < RESULTS; i++) {
        work[i].range = (unsigned)i;
        work[i].how = (enum how)i;
        work[i].seed = seed;
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, random_work, &work[i]), 0);
        pthread_join(thread, NULL);
        world_check();
        for (int n = 0; n < NODES; n++) {
            struct tly_balance got = world_balance(work[i].node[n]);
            assert_memory_equal(&got, &work[i].model[n], sizeof got);
        }
        assert_memory_equal(work[i].model, work[0].model, sizeof work[0].model);
    }
    assert_int_equal(COUNTED(missed_frees), 0);
    assert_int_equal(COUNTED(unmatched_frees), 0);
    assert_int_equal(COUNTED(untracked_allocs), 0);
}

/* The same in six threads, all at once. */
static void side_by_side(void **state) {
    (void)state;
    enum { THREADS = 6 };
    static struct work work[THREADS];
    pthread_t threads[THREADS];
    uint64_t seed = world_seed();
    for (unsigned i = 0; i < THREADS; i++) {
        work[i].range = 8 + i;
        work[i].how = (enum how)(i % 3);
        work[i].seed = seed + i;
        assert_int_equal(pthread_create(&threads[i], NULL, random_work, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    world_check();
    for (int i = 0; i < THREADS; i++)
        for (int n = 0; n < NODES; n++) {
            struct tly_balance got = world_balance(work[i].node[n]);
            assert_memory_equal(&got, &work[i].model[n], sizeof got);
        }
}

/* Nodes beyond what a narrow entry can hold. */
static void high_nodes(void **state) {
    (void)state;
    on_node("high nodes");
    uint32_t parent = tly_self.tag_node, node = parent, count = tly_node_count() + TLY_NODE_FIRST;
    uint64_t at = tly_writer_append(TLY_SEC_NODES, (uint64_t)(TLY_NARROW_NODES - count) * sizeof(struct tly_node));
    assert_true(at != UINT64_MAX);
    node = on_node("a high node");
    assert_true(node >= TLY_NARROW_NODES);
    struct tly_balance before = world_balance(node);
    tly_account_made(world_block(20, 0), 8, NULL);
    tly_account_made(world_block(20, 10), 100, NULL);
    tly_account_made(world_block(20, 20), 1ul << 30, NULL);
    expect(node, before, 108 + (1ul << 30), 3, 0, 0);
    for (int i = 0; i < 3; i++)
        tly_account_gone(world_block(20, (uint64_t)i * 10));
    expect(node, before, 108 + (1ul << 30), 3, 108 + (1ul << 30), 3);
}

/* ---- oddities ---------------------------------------------------------------------------------------------------- */

static void unmatched(void **state) {
    (void)state;
    uint32_t node = on_node("unmatched");
    struct tly_balance before = world_balance(node), root = world_balance(TLY_NODE_ROOT);
    uint64_t count = COUNTED(unmatched_frees);
    tly_account_gone(world_block(21, 0));
    tly_account_gone((char *)world_block(21, 0) + 8);
    tly_account_free(world_block(63, 0));
    tly_account_made(world_block(21, 10), 5000, NULL);
    tly_account_gone(world_block(21, 11)); /* inside a block */
    assert_int_equal(COUNTED(unmatched_frees), count + 4);
    struct tly_taken taken = tly_account_realloc_begin(world_block(21, 2));
    assert_false(taken.found);
    tly_account_realloc_end(taken, world_block(21, 2), world_block(21, 3), 50, NULL);
    assert_int_equal(COUNTED(unmatched_frees), count + 5);
    expect(node, before, 5050, 2, 0, 0);
    tly_account_gone(world_block(21, 10));
    tly_account_gone(world_block(21, 3));
    tly_account_gone(world_block(21, 3)); /* twice */
    assert_int_equal(COUNTED(unmatched_frees), count + 6);
    expect(node, before, 5050, 2, 5050, 2);
    expect(TLY_NODE_ROOT, root, 0, 0, 0, 0);
}

static void missed(void **state) {
    (void)state;
    uint32_t node = on_node("missed, old"), newer;
    struct tly_balance before = world_balance(node);
    uint64_t count = COUNTED(missed_frees);
    const uint64_t sizes[] = {10, 5000, 1ul << 30};
    for (uint64_t i = 0; i < 3; i++)
        tly_account_made(world_block(22, i * 100 + 100), sizes[i], NULL);
    newer = on_node("missed, new");
    struct tly_balance newer_before = world_balance(newer);
    /* the same addresses again, or addresses inside the old ones */
    for (uint64_t i = 0; i < 3; i++)
        tly_account_made(world_block(22, i * 100 + 100 + i), 20, NULL);
    assert_int_equal(COUNTED(missed_frees), count + 3);
    expect(node, before, 5010 + (1ul << 30), 3, 5010 + (1ul << 30), 3);
    expect(newer, newer_before, 60, 3, 0, 0);
    for (uint64_t i = 0; i < 3; i++)
        tly_account_gone(world_block(22, i * 100 + 100 + i));
    expect(newer, newer_before, 60, 3, 60, 3);
    expect(node, before, 5010 + (1ul << 30), 3, 5010 + (1ul << 30), 3);
}

static void reallocs(void **state) {
    (void)state;
    uint32_t old = on_node("realloc, old");
    struct tly_balance old_before = world_balance(old);
    tly_account_made(world_block(23, 0), 100, NULL);
    uint32_t node = on_node("realloc, new");
    struct tly_balance before = world_balance(node);
    /* moved: the old address is free for others before the new one is billed */
    struct tly_taken taken = tly_account_realloc_begin(world_block(23, 0));
    assert_true(taken.found);
    tly_account_made(world_block(23, 0), 7, NULL);
    tly_account_realloc_end(taken, world_block(23, 0), world_block(23, 50), 200, NULL);
    expect(old, old_before, 100, 1, 100, 1);
    expect(node, before, 207, 2, 0, 0);
    tly_account_gone(world_block(23, 0));
    /* failed: as it was, to the entry */
    taken = tly_account_realloc_begin(world_block(23, 50));
    tly_account_realloc_end(taken, world_block(23, 50), NULL, 1ul << 60, NULL);
    expect(node, before, 207, 2, 7, 1);
    /* realloc(p, 0) that gives NULL has freed it */
    taken = tly_account_realloc_begin(world_block(23, 50));
    tly_account_realloc_end(taken, world_block(23, 50), NULL, 0, NULL);
    expect(node, before, 207, 2, 207, 2);
    /* one that gives a block */
    tly_account_made(world_block(23, 60), 30, NULL);
    taken = tly_account_realloc_begin(world_block(23, 60));
    tly_account_realloc_end(taken, world_block(23, 60), world_block(23, 61), 0, NULL);
    expect(node, before, 237, 4, 237, 3);
    tly_account_gone(world_block(23, 61));
    expect(node, before, 237, 4, 237, 4);
    /* a clear between begin and end has forgotten the block: neither closed nor put back */
    tly_account_made(world_block(23, 70), 11, NULL);
    tly_account_made(world_block(23, 80), 22, NULL);
    before = world_balance(node);
    struct tly_taken moved = tly_account_realloc_begin(world_block(23, 70)),
                     failed = tly_account_realloc_begin(world_block(23, 80));
    tly_region->epoch += 2;
    tly_account_realloc_end(moved, world_block(23, 70), world_block(23, 71), 33, NULL);
    tly_account_realloc_end(failed, world_block(23, 80), NULL, 44, NULL);
    expect(node, before, 33, 1, 0, 0);
    uint64_t unmatched_before = COUNTED(unmatched_frees);
    tly_account_gone(world_block(23, 80));
    assert_int_equal(COUNTED(unmatched_frees), unmatched_before + 1);
}

static void paused(void **state) {
    (void)state;
    uint32_t node = on_node("paused");
    struct tly_balance before = world_balance(node), hidden = world_balance(TLY_NODE_PAUSED);
    int64_t live = world_live_bytes();
    uint64_t unmatched_before = COUNTED(unmatched_frees);
    tly_account_made(world_block(24, 0), 10, NULL);
    tly_tag_pause_thread();
    const uint64_t sizes[] = {0, 20, 500, 5000, 1ul << 30};
    for (uint64_t i = 0; i < 5; i++)
        tly_account_made(world_block(24, i * 50 + 50), sizes[i], NULL);
    tly_account_gone(world_block(24, 0)); /* billed before: taken off, paused or not */
    expect(node, before, 10, 1, 10, 1);
    struct tly_taken taken = tly_account_realloc_begin(world_block(24, 50));
    tly_account_realloc_end(taken, world_block(24, 50), NULL, 9, NULL);
    tly_tag_resume_thread();
    expect(TLY_NODE_PAUSED, hidden, 5520 + (1ul << 30), 5, 0, 0);
    assert_int_equal(world_live_bytes(), live);
    for (uint64_t i = 0; i < 5; i++)
        tly_account_gone(world_block(24, i * 50 + 50));
    expect(TLY_NODE_PAUSED, hidden, 5520 + (1ul << 30), 5, 5520 + (1ul << 30), 5);
    assert_int_equal(COUNTED(unmatched_frees), unmatched_before);
    tly_account_made(world_block(24, 0), 1, NULL);
    expect(node, before, 11, 2, 10, 1);
}

static void stopped_and_off(void **state) {
    (void)state;
    uint32_t node = on_node("stopped");
    struct tly_balance before = world_balance(node);
    tly_account_made(world_block(25, 0), 10, NULL);
    tly_account_made(world_block(25, 1), 10, NULL);
    world_state(TLY_STATE_STOPPED);
    int offs = world_offs;
    uint64_t unmatched_before = COUNTED(unmatched_frees);
    for (uint64_t i = 0; i < 2 * TLY_OFF_RADAR_BATCH; i++)
        tly_account_made(world_block(25, 100 + i), 7, NULL);
    assert_true(world_offs > offs && world_offs <= offs + 3);
    expect(node, before, 20, 2, 0, 0);
    tly_account_gone(world_block(25, 0));
    expect(node, before, 20, 2, 10, 1);
    tly_account_gone(world_block(25, 100));
    assert_int_equal(COUNTED(unmatched_frees), unmatched_before + 1);
    world_state(TLY_STATE_OFF);
    tly_account_gone(world_block(25, 1)); /* nothing is looked at */
    tly_account_gone(world_block(25, 101));
    struct tly_taken taken = tly_account_realloc_begin(world_block(25, 1));
    assert_false(taken.found);
    assert_int_equal(COUNTED(unmatched_frees), unmatched_before + 1);
    world_state(TLY_STATE_ON);
    tly_account_made(world_block(25, 2), 5, NULL);
    expect(node, before, 25, 3, 10, 1);
}

/* A thread's change is passed on when its quota is used up, and outsiders are listened to then. */
static void quota(void **state) {
    (void)state;
    on_node("quota");
    tly_account_event(NULL); /* from a clean slate */
    tly_region->peak_bytes = tly_region->total_bytes;
    int64_t total = tly_region->total_bytes;
    int polls = world_polls;
    tly_account_made(world_block(26, 0), TLY_FLUSH_BYTES - 100, NULL);
    tly_account_made(world_block(26, 2000), 100, NULL);
    assert_int_equal(tly_region->total_bytes, total);
    assert_int_equal(world_polls, polls);
    tly_account_made(world_block(26, 2100), 1, NULL);
    assert_int_equal(tly_region->total_bytes, total + TLY_FLUSH_BYTES + 1);
    assert_int_equal(world_polls, polls + 1);
    assert_true(tly_region->peak_bytes >= total + TLY_FLUSH_BYTES + 1);
    int64_t peak = tly_region->peak_bytes;
    tly_account_gone(world_block(26, 0));
    tly_account_gone(world_block(26, 2000));
    assert_int_equal(world_polls, polls + 1);
    tly_account_gone(world_block(26, 2100));
    assert_int_equal(world_polls, polls + 2);
    assert_int_equal(tly_region->total_bytes, total);
    assert_int_equal(tly_region->peak_bytes, peak);
    /* one big block is passed on at once */
    tly_account_made(world_block(26, 0), 1ul << 33, NULL);
    assert_int_equal(tly_region->total_bytes, total + (1l << 33));
    assert_int_equal(tly_region->peak_bytes, total + (1l << 33));
    tly_account_gone(world_block(26, 0));
}

/* The rules change between a thread's look at them and its passage: it looks again, and loses nothing. */
bool __real_tly_thread_ready(struct tly_thread *thread);
bool __wrap_tly_thread_ready(struct tly_thread *thread);
static int changes;
bool __wrap_tly_thread_ready(struct tly_thread *thread) {
    bool ready = __real_tly_thread_ready(thread);
    if (changes > 0) {
        changes--;
        tly_gate_renew();
    }
    return ready;
}

static void changed_meanwhile(void **state) {
    (void)state;
    uint32_t node = on_node("changed meanwhile");
    struct tly_balance before = world_balance(node);
    uint64_t unmatched_before = COUNTED(unmatched_frees);
    changes = 3;
    tly_account_alloc(world_block(28, 0), 50, NULL);
    expect(node, before, 50, 1, 0, 0);
    assert_int_equal(changes, 0);
    changes = 1;
    struct tly_taken taken = tly_account_realloc_begin(world_block(28, 0));
    assert_true(taken.found);
    changes = 1;
    tly_account_realloc_end(taken, world_block(28, 0), world_block(28, 9), 70, NULL);
    expect(node, before, 120, 2, 50, 1);
    changes = 2;
    tly_account_free(world_block(28, 9));
    expect(node, before, 120, 2, 120, 2);
    assert_int_equal(changes, 0);
    assert_int_equal(COUNTED(unmatched_frees), unmatched_before);
}

/* ---- automatic tags ---------------------------------------------------------------------------------------------- */

static void automatic(void **state) {
    (void)state;
    on_node("automatic");
    uint32_t base = tly_self.tag_node;
    tly_gate_state.auto_tags = TLY_AUTO_MODULE | TLY_AUTO_CALLER;
    tly_gate_renew();
    char *const code = (char *)(uintptr_t)automatic;
    for (int round = 0; round < 2; round++)
        for (uint64_t i = 0; i < 6; i++)
            tly_account_made(world_block(27, i * 4), 10 + i, code + i % 3 * 4);
    tly_gate_state.auto_tags = 0;
    tly_gate_renew();
    tly_account_made(world_block(27, 900), 1, code); /* billed to `base` itself */
    struct tly_balance root = world_balance(base);
    assert_int_equal(root.alloc_blocks, 1);
    uint32_t end = tly_node_count() + TLY_NODE_FIRST, module = 0, callers = 0;
    for (uint32_t i = base + 1; i < end; i++) {
        const struct tly_node *node = tly_writer_node(i);
        if (node->parent == base) {
            assert_int_equal(tly_writer_site(node->site_plus_1 - 1)->kind, TLY_SITE_MODULE);
            assert_int_equal(module, 0);
            module = i;
            assert_int_equal(world_balance(i).alloc_blocks, 0);
        } else if (node->parent == module && module) {
            assert_int_equal(tly_writer_site(node->site_plus_1 - 1)->kind, TLY_SITE_CALLER);
            struct tly_balance balance = world_balance(i);
            assert_int_equal(balance.alloc_blocks, 4);
            assert_int_equal(balance.free_blocks, 2); /* the second round missed the frees of the first */
            callers++;
        }
    }
    assert_int_equal(callers, 3);
    for (uint64_t i = 0; i < 6; i++)
        tly_account_gone(world_block(27, i * 4));
    world_check();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_ways),      cmocka_unit_test(side_by_side),
        cmocka_unit_test(unmatched),       cmocka_unit_test(missed),
        cmocka_unit_test(reallocs),        cmocka_unit_test(paused),
        cmocka_unit_test(stopped_and_off), cmocka_unit_test(quota),
        cmocka_unit_test(automatic),       cmocka_unit_test(changed_meanwhile),
        cmocka_unit_test(high_nodes),
    };
    return cmocka_run_group_tests(tests, world_setup, NULL);
}
