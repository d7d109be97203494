/* test_process.c - the life of an account, through the public functions and the control words; blocks are addresses. */
#define _GNU_SOURCE
#define TALLY_BUILDING
#include "core_world.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/account.h"
#include "core/gate.h"
#include "region/writer.h"
#include "runtime/process.h"
#include "tally/tally.h"

extern volatile struct tally_gate tally_gate;

static int before_the_start(void) {
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    tally_push("early");
    tally_pop();
    return tally_active() == 0 && tally_bytes() == 0 && tally_peak_bytes() == 0 && tally_stop() == 0 &&
                   tally_clear() == 0 && tally_perf_stats(&stats) == 0 && stats.own_bytes == 0 &&
                   tally_snapshot_write("/tmp/x") == -ENOSYS
               ? 0
               : -1;
}
static int begin(void **state) {
    (void)state;
    setenv("TALLY_CONF", "output:,consolidate_period_ms:0,quiet:true", 1);
    tly_process_early(); /* as the constructor of the library does */
    return before_the_start() == 0 ? tally_start() : -1;
}
static int fresh(void **state) {
    (void)state;
    if (tally_start() != 0 || tally_clear() != 0) return -1;
    return tally_bytes() == 0 && tally_active() ? 0 : -1;
}

static void made(unsigned range, uint64_t i, uint64_t size) { tly_account_made(world_block(range, i * 2), size, NULL); }
static void gone(unsigned range, uint64_t i) { tly_account_gone(world_block(range, i * 2)); }
static uint64_t unmatched(void) {
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    assert_int_equal(tally_perf_stats(&stats), 0);
    return stats.unmatched_frees;
}

static void start_and_stop(void **state) {
    (void)state;
    assert_int_equal(tally_start(), 0); /* already on */
    made(0, 0, 100);
    made(0, 1, 10);
    assert_int_equal(tally_bytes(), 110);
    assert_int_equal(tally_stop(), 0);
    assert_int_equal(tally_active(), 0);
    assert_int_equal(tally_gate.active, 0);
    made(0, 2, 1000);
    assert_int_equal(tally_bytes(), 110);
    gone(0, 0); /* still matched */
    assert_int_equal(tally_bytes(), 10);
    assert_int_equal(tally_stop(), 0);
    assert_int_equal(tally_start(), 0);
    assert_int_equal(tally_gate.active, 1);
    made(0, 3, 1);
    assert_int_equal(tally_bytes(), 11);
    gone(0, 2); /* allocated while stopped */
    assert_int_equal(tally_bytes(), 11);
    assert_int_equal(unmatched(), 1);
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    assert_int_equal(tally_perf_stats(&stats), 0);
    assert_true(tally_peak_bytes() + stats.peak_error_bytes >= 110 && tally_peak_bytes() <= 110);
    made(0, 4, 1ul << 20);
    gone(0, 4);
    assert_int_equal(tally_peak_bytes(), (1ul << 20) + 11); /* passed on at once */
    world_check();
}

static void clear(void **state) {
    (void)state;
    tally_push("kept on the stack");
    made(1, 0, 70000);
    made(1, 1, 1ul << 31);
    uint32_t epoch = tly_region->epoch;
    assert_int_equal(tally_clear(), 0);
    assert_int_equal(tly_region->epoch, epoch + 2);
    assert_int_equal(tally_bytes() | tally_peak_bytes() | unmatched(), 0);
    assert_int_equal(tally_active(), 1);
    gone(1, 0); /* before the clear: changes nothing */
    gone(1, 1);
    assert_int_equal(tally_bytes(), 0);
    made(1, 2, 5);
    assert_int_equal(tally_bytes(), 5);
    tally_tree *tree = tally_tree_get(0);
    struct tally_node_info info = {.struct_bytes = sizeof info};
    assert_int_equal(tally_node_get_info(tally_tree_find(tree, (const char *[]){"kept on the stack"}, 1), &info), 0);
    assert_int_equal(info.allocated_bytes, 5);
    tally_tree_free(tree);
    tally_pop();
    /* stopped and cleared: nothing is looked at any more */
    tally_stop();
    assert_int_equal(tally_clear(), 0);
    assert_int_equal(tly_region->state, TLY_STATE_OFF);
    gone(1, 2);
    assert_int_equal(unmatched(), 0);
    tally_start();
    world_check();
    /* from a handler that interrupted a hook it must not wait for itself */
    made(1, 3, 7);
    tly_busy_begin(tly_self.ledger);
    assert_int_equal(tally_clear(), -EBUSY);
    assert_true(tally_error_text()[0]);
    tly_busy_end(tly_self.ledger);
    assert_int_equal(tally_bytes(), 7);
    assert_int_equal(tally_clear(), 0);
}

static void pause_everybody(void **state) {
    (void)state;
    made(2, 0, 10);
    tally_pause_all_begin();
    tally_pause_all_begin();
    made(2, 1, 100);
    tally_pause_all_end();
    made(2, 2, 100);
    gone(2, 0);
    assert_int_equal(tally_bytes(), 0);
    assert_int_equal(tly_region->paused_all, 1);
    tally_pause_all_end();
    made(2, 3, 1);
    gone(2, 1);
    assert_int_equal(tally_bytes(), 1);
    assert_int_equal(unmatched(), 0);
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    tally_pause_all_end();
    tally_perf_stats(&stats);
    assert_int_equal(stats.pop_errors, 1);
    assert_int_equal(tly_region->paused_all, 0);
    world_check();
}

static void ask(enum tly_request request, int expected) {
    tly_region->control.request = request;
    uint32_t seq = ++tly_region->control.seq;
    /* heard when a quota is used up, or while off with one of the next allocations */
    for (uint64_t i = 0; i < 200 && tly_region->control.done_seq != seq; i++) {
        made(3, 0, 40000);
        gone(3, 0);
    }
    assert_int_equal(tly_region->control.done_seq, seq);
    assert_int_equal(tly_region->control.result, expected);
}

static void requests(void **state) {
    (void)state;
    ask(TLY_REQ_STOP, 0);
    assert_int_equal(tally_active(), 0);
    ask(TLY_REQ_START, 0);
    assert_int_equal(tally_active(), 1);
    made(3, 10, 33);
    ask(TLY_REQ_CLEAR, 0);
    assert_int_equal(tally_bytes(), 0);
    ask(TLY_REQ_PAUSE, 0);
    made(3, 20, 44);
    assert_int_equal(tally_bytes(), 0);
    tally_start();
    tly_process_poll();
    tly_region->control.request = TLY_REQ_RESUME;
    tly_region->control.seq++;
    tly_process_poll();
    assert_int_equal(tly_region->control.result, 0);
    assert_int_equal(tly_region->paused_all, 0);
    ask(TLY_REQ_RESUME, -EALREADY);
    ask((enum tly_request)99, -EINVAL);
}

static void stats(void **state) {
    (void)state;
    struct tally_perf_stats whole = {.struct_bytes = sizeof whole};
    made(4, 0, 1);
    assert_int_equal(tally_perf_stats(&whole), 0);
    assert_int_equal(whole.own_bytes, whole.own_region_bytes + whole.own_block_map_bytes + whole.own_thread_bytes +
                                          whole.own_other_bytes);
    assert_true(whole.own_region_bytes > 0 && whole.own_thread_bytes > 0 && whole.block_map_pages > 0);
    assert_int_equal(whole.peak_error_bytes % TLY_FLUSH_BYTES, 0);
    assert_true(whole.ledgers_live >= 1 && whole.nodes > 0 && whole.call_sites > 0);
    assert_true(whole.table_load > 0 && whole.table_load < 1);
    struct {
        size_t struct_bytes;
        uint64_t own_bytes, behind;
    } shorter = {16, 0, 77};
    assert_int_equal(tally_perf_stats((struct tally_perf_stats *)&shorter), 0);
    assert_int_equal(shorter.struct_bytes, 16);
    assert_true(shorter.own_bytes > 0 && shorter.behind == 77);
    shorter.struct_bytes = 8;
    assert_int_equal(tally_perf_stats((struct tally_perf_stats *)&shorter), -EINVAL);
    assert_int_equal(tally_perf_stats(NULL), -EINVAL);
    uint64_t sites = whole.call_sites, nodes = whole.nodes;
    tally_push("a site of its own");
    tally_push("a site of its own");
    tally_pop();
    tally_pop();
    tally_perf_stats(&whole);
    assert_int_equal(whole.call_sites, sites + 1);
    assert_int_equal(whole.nodes, nodes + 2);
}

static void written(void **state) {
    (void)state;
    char path[] = "/tmp/tally-test-process-XXXXXX";
    close(mkstemp(path));
    made(5, 0, 123);
    made(5, 1, 1);
    gone(5, 1);
    assert_int_equal(tally_snapshot_write(path), 0);
    struct tly_view view;
    const char *why;
    assert_int_equal(tly_view_open(path, &view, &why), 0);
    assert_true(view.region->flags & TLY_REGION_WRITTEN);
    assert_int_equal(view.region->pid, getpid());
    assert_int_equal(tly_view_live_bytes(&view), 123);
    struct tly_balance root;
    assert_int_equal(tly_view_balances(&view, &root, 1), 0);
    assert_int_equal(root.alloc_bytes, 124);
    assert_int_equal(root.free_blocks, 1);
    tly_view_close(&view);
    unlink(path);
    assert_int_equal(tally_snapshot_write("/nonexistent/file"), -ENOENT);
    assert_int_equal(tally_snapshot_write(""), -EINVAL);
    assert_int_equal(tally_snapshot_write(NULL), -EINVAL);
}

/* ---- a forked child ---------------------------------------------------------------------------------------------- */

static void child_part(void) {
    struct tly_region *place = tly_region;
    made(6, 5, 1000); /* the first allocation makes its own account */
    CHECK(tly_region == place);
    CHECK(tly_region->pid == (uint32_t)getpid() && tly_region->forked_from == (uint32_t)getppid());
    CHECK(tly_region->flags & TLY_REGION_INHERITED);
    CHECK(tly_region->inherited_bytes == 60 && tly_region->inherited_blocks == 3);
    CHECK(tally_bytes() == 1060);
    gone(6, 0);
    CHECK(tally_bytes() == 1050);
    tally_tree *tree = tally_tree_get(0);
    struct tally_node_info info = {.struct_bytes = sizeof info};
    CHECK(tally_node_get_info(tally_tree_find(tree, (const char *[]){"parent's"}, 1), &info) == 0);
    CHECK(info.bytes == 1050);
    tally_tree_free(tree);
    tally_push("child's");
    made(6, 6, 5);
    tally_pop();
    tally_pop(); /* pushed in the parent */
    made(6, 7, 7);
    tree = tally_tree_get(0);
    CHECK(tally_node_get_info(tally_tree_find(tree, (const char *[]){"parent's", "child's"}, 2), &info) == 0 &&
          info.bytes == 5);
    CHECK(tally_node_get_info(tally_tree_root(tree), &info) == 0 && info.bytes_direct == 7);
    tally_tree_free(tree);
    CHECK(tally_clear() == 0 && tally_bytes() == 0 && tly_region->inherited_bytes == 0);
    /* and its own child */
    made(6, 8, 9);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        made(6, 9, 1);
        CHECK(tally_bytes() == 10 && tly_region->forked_from == (uint32_t)getppid());
        _exit(0);
    }
    int status;
    CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
    CHECK(tally_bytes() == 9);
}

static void child(void **state) {
    (void)state;
    tally_push("parent's");
    for (uint64_t i = 0; i < 3; i++)
        made(6, i, 10 * (i + 1));
    world_in_child(child_part);
    assert_int_equal(tally_bytes(), 60);
    tally_pop();
    tally_tree *tree = tally_tree_get(0);
    assert_null(tally_tree_find(tree, (const char *[]){"parent's", "child's"}, 2));
    tally_tree_free(tree);
    world_check();
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 6, BLOCKS = 64, MAILBOXES = 16 };
static pthread_mutex_t mail_lock[MAILBOXES];
static uint64_t mail[MAILBOXES]; /* a block that somebody else will free: 1 + its number */
static _Atomic bool done;

static void *exchange_blocks(void *number) {
    uint64_t random = (size_t)number * 7919 + 88172645463325252u;
    for (int round = 0; round < 8000; round++) {
        uint64_t r = world_random(&random);
        unsigned box = r % MAILBOXES;
        char name[20];
        snprintf(name, sizeof name, "tag %d", (int)(r >> 8 & 31));
        tally_push_copy(name);
        pthread_mutex_lock(&mail_lock[box]);
        /* each box has blocks of its own: made and freed under the box's lock, by whoever comes */
        if (mail[box]) {
            gone(10 + box, mail[box]);
            mail[box] = 0;
        } else {
            mail[box] = 1 + (r >> 16) % BLOCKS;
            made(10 + box, mail[box], r >> 30 & 0xfff);
        }
        pthread_mutex_unlock(&mail_lock[box]);
        tally_pop();
    }
    return NULL;
}

static void *start_threads(void *unused) {
    for (int round = 0; round < 4; round++) {
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, exchange_blocks, (void *)(i + 1 + (size_t)round * 10));
        for (size_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    done = true;
    return unused;
}

static void check_tree(const tally_node *node) {
    struct tally_node_info info = {.struct_bytes = sizeof info}, child_info = {.struct_bytes = sizeof info};
    assert_int_equal(tally_node_get_info(node, &info), 0);
    uint64_t bytes = info.bytes_direct, blocks = info.blocks_direct;
    assert_true(info.bytes < 1ul << 40 && info.bytes_direct < 1ul << 40 && info.blocks < 1ul << 30);
    for (const tally_node *child = tally_node_first_child(node); child; child = tally_node_next_sibling(child)) {
        check_tree(child);
        tally_node_get_info(child, &child_info);
        bytes += child_info.bytes;
        blocks += child_info.blocks;
    }
    assert_int_equal(info.bytes, bytes);
    assert_int_equal(info.blocks, blocks);
    assert_true(info.allocated_bytes >= info.bytes && info.allocated_blocks >= info.blocks);
}

static void read_while_they_run(void **state) {
    (void)state;
    pthread_t starter;
    int pictures = 0;
    done = false;
    for (int i = 0; i < MAILBOXES; i++)
        pthread_mutex_init(&mail_lock[i], NULL);
    assert_int_equal(pthread_create(&starter, NULL, start_threads, NULL), 0);
    while (!done) {
        tally_tree *tree = tally_tree_get(pictures % 2 ? TALLY_TREE_SKIP_REPEATED : 0);
        assert_non_null(tree);
        check_tree(tally_tree_root(tree));
        tally_tree_free(tree);
        pictures++;
    }
    pthread_join(starter, NULL);
    assert_true(pictures > 20);
    for (unsigned box = 0; box < MAILBOXES; box++)
        if (mail[box]) gone(10 + box, mail[box]);
    assert_int_equal(tally_bytes(), 0);
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    tally_perf_stats(&stats);
    assert_int_equal(stats.unmatched_frees | stats.missed_frees | stats.dropped_events, 0);
    assert_true(stats.ledgers_live + stats.ledgers_recycled <= THREADS + 2); /* handed on, not piled up */
    world_check();
}

/* The rules change all the time (files are unloaded, threads renamed, all paused): no block is lost over it. */
static void *change_rules(void *number) {
    while (!done) {
        if (number) {
            tally_pause_all_begin();
            tally_pause_all_end();
        } else {
            tly_gate_renew();
        }
    }
    return NULL;
}
static void *make_and_free(void *number) {
    unsigned range = 40 + (unsigned)(size_t)number;
    for (uint64_t k = 0; k < 200000; k++) {
        made(range, k % 100, k % 300);
        if (k % 100 == 99)
            for (uint64_t i = 0; i < 100; i++)
                gone(range, i);
    }
    return NULL;
}

static void changing_rules(void **state) {
    (void)state;
    pthread_t changers[2], workers[2];
    done = false;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&changers[i], NULL, change_rules, (void *)i), 0);
        assert_int_equal(pthread_create(&workers[i], NULL, make_and_free, (void *)i), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    done = true;
    for (int i = 0; i < 2; i++)
        pthread_join(changers[i], NULL);
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    tally_perf_stats(&stats);
    assert_int_equal(stats.unmatched_frees | stats.missed_frees | stats.dropped_events, 0);
    assert_int_equal(tally_bytes(), 0);
    world_check();
    made(40, 500, 11); /* and it goes on */
    assert_int_equal(tally_bytes(), 11);
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup(NAME, fresh)
    const struct CMUnitTest tests[] = {
        TEST(start_and_stop), TEST(clear), TEST(pause_everybody),     TEST(requests),       TEST(stats),
        TEST(written),        TEST(child), TEST(read_while_they_run), TEST(changing_rules),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
