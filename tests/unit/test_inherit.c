/* test_inherit.c - what a forked child takes over, with the region in a file as under `tally run`. */
#define _GNU_SOURCE
#define TALLY_BUILDING
#include "core_world.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/account.h"
#include "core/tag.h"
#include "region/writer.h"
#include "runtime/process.h"
#include "tally/tally.h"

static char folder[] = "/dev/shm/tally-test-inherit-XXXXXX";

static void made(unsigned range, uint64_t i, uint64_t size) { tly_account_made(world_block(range, i * 2), size, NULL); }
static void gone(unsigned range, uint64_t i) { tly_account_gone(world_block(range, i * 2)); }

static int begin(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    setenv("TALLY_RUN_DIR", folder, 1);
    setenv("TALLY_CONF", "share:true,output:,consolidate_period_ms:0,quiet:true", 1);
    if (tally_start() != 0) return -1;
    return tly_region->flags & TLY_REGION_COLLECTED ? 0 : -1; /* it is in a file */
}
static int end(void **state) {
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    return rmdir(folder);
}
static int fresh(void **state) {
    (void)state;
    return tally_clear();
}

static uint64_t bytes_at(const char *name) {
    tally_tree *tree = tally_tree_get(0);
    struct tally_node_info info = {.struct_bytes = sizeof info};
    CHECK(tree != NULL);
    const tally_node *node = tally_tree_find(tree, &name, 1);
    uint64_t bytes = node && tally_node_get_info(node, &info) == 0 ? info.bytes : 0;
    tally_tree_free(tree);
    return bytes;
}

/* The child answers before it has allocated anything, and exactly. */
static void first_questions(void) {
    uint64_t bytes = tally_bytes();
    CHECK(bytes == 300 + 70000);
    CHECK(tally_active() == 1);
    CHECK(bytes_at("inherited") == 300 && bytes_at("big") == 70000);
    CHECK(tly_region->inherited_blocks == 4);
    gone(0, 1);
    CHECK(bytes_at("inherited") == 200);
}
static void first_pause(void) {
    tally_pause_all_begin();
    made(0, 10, 5);
    tally_pause_all_end();
    CHECK(tally_bytes() == 70300);
}
static void first_stop(void) {
    CHECK(tally_stop() == 0 && tally_active() == 0);
    made(0, 10, 5);
    gone(0, 0);
    CHECK(tally_bytes() == 70200);
    CHECK(tally_start() == 0);
    made(0, 11, 5);
    CHECK(tally_bytes() == 70205);
}
static void first_clear(void) {
    CHECK(tally_clear() == 0 && tally_bytes() == 0);
    gone(0, 0);
    made(0, 11, 5);
    CHECK(tally_bytes() == 5);
}
static void first_start(void) { CHECK(tally_start() == 0 && tally_bytes() == 70300); }
static void first_override(void) {
    tally_stack stack, mark;
    CHECK(tally_stack_get(&stack) == 0 && stack.depth == 1);
    tally_pop();
    CHECK(tally_override_begin(&stack, &mark) == 0);
    made(0, 12, 7);
    CHECK(tally_override_end(&mark) == 0);
    CHECK(bytes_at("on the stack") == 7);
}
static void first_pop_too_many(void) {
    tally_pop();
    tally_pop();
    tally_pop();
    tally_pause_thread_end();
    made(0, 12, 7);
    CHECK(tally_bytes() == 70307);
}

/* As after dlclose(), or the renaming of a thread. */
static void first_renewal(void) {
    tly_gate_renew();
    CHECK(tly_gate_page.free == 0);
    made(0, 12, 7);
    CHECK(tally_bytes() == 70307);
}

static void (*const firsts[])(void) = {first_renewal, first_questions, first_pause,    first_stop,
                                       first_clear,   first_start,     first_override, first_pop_too_many};

/* A fork that the C library knows nothing of. */
static void raw_child(void (*part)(void)) {
    fflush(NULL);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        part();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void whatever_comes_first(void **state) {
    (void)state;
    tally_push("inherited");
    for (uint64_t i = 0; i < 3; i++)
        made(0, i, 100);
    tally_pop();
    tally_push("big");
    made(0, 3, 70000);
    tally_pop();
    made(0, 4, 55);
    gone(0, 4);
    tally_push("on the stack");
    static char before[sizeof(struct tly_region)];
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        memcpy(before, tly_region, sizeof before);
        uint64_t errors = tly_self.ledger->pop_errors;
        world_in_child(firsts[i]);
        raw_child(firsts[i]);
        assert_memory_equal(before, tly_region, sizeof before); /* nobody wrote into the parent's */
        assert_int_equal(tly_self.ledger->pop_errors, errors);
    }
    tally_pop();
}

/* ---- a child that sleeps while its parent goes on ------------------------------------------------------------------ */

static void push_number(uint32_t number, uint32_t length) {
    char name[400];
    memset(name, 'x', length);
    snprintf(name + length, sizeof name - length, "%u", number);
    tally_push_copy(name);
    tally_pop();
}

static void late_child(uint32_t count, uint32_t length, bool backwards) {
    int go[2];
    assert_int_equal(pipe(go), 0);
    for (uint32_t i = 0; i < 3; i++)
        push_number(i, length);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        CHECK(read(go[0], &byte, 1) == 1);
        made(1, 0, 10);
        for (uint32_t i = 0; i < count; i++)
            push_number(backwards ? count - 1 - i : i, length);
        char name[400];
        memset(name, 'x', length);
        snprintf(name + length, sizeof name - length, "%u", count / 2);
        tally_push_copy(name);
        made(1, 1, 33);
        tally_pop();
        CHECK(bytes_at(name) == 33);
        CHECK(tally_bytes() == 43);
        _exit(0);
    }
    for (uint32_t i = 0; i < count; i++)
        push_number(i, length);
    assert_int_equal(write(go[1], "x", 1), 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(go[0]);
    close(go[1]);
}

static void late_children(void **state) {
    (void)state;
    late_child(20000, 1, false);
    late_child(20000, 2, true);
    late_child(400, 200, false);
    late_child(400, 201, true);
    late_child(4000, 300, true);
}

/* ---- fork while other threads are at it ---------------------------------------------------------------------------- */

enum { THREADS = 3, CHILDREN = 30 };
static _Atomic bool over;

static void *busy(void *number) {
    unsigned range = 10 + (unsigned)(size_t)number;
    uint64_t random = range * 7919 + 88172645463325252u;
    bool live[200] = {false};
    for (uint32_t k = 0; !over; k++) {
        uint64_t r = world_random(&random), i = r % 200;
        char name[40];
        snprintf(name, sizeof name, "busy %u", (unsigned)(r >> 20 & (k < 2000 ? 0xfff : 0xff)));
        tally_push_copy(name);
        if (live[i])
            gone(range, i);
        else
            made(range, i, (r >> 40) % 9000);
        live[i] = !live[i];
        tally_pop();
    }
    return NULL;
}

static void consistent(void) {
    tally_push("child's own");
    made(2, 0, 77);
    tally_pop();
    uint64_t inherited = tly_region->inherited_bytes;
    CHECK(tally_bytes() == inherited + 77);
    CHECK(bytes_at("child's own") == 77);
    /* every block in the map belongs to a node that is there */
    struct tly_view view = {tly_region, tly_region->region_bytes, NULL};
    uint32_t nodes = tly_view_count(&view, TLY_SEC_NODES);
    struct tly_balance *balances = calloc(nodes, sizeof *balances);
    CHECK(tly_view_balances(&view, balances, nodes) == 0);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        const struct tly_node *node = tly_view_record(&view, TLY_SEC_NODES, i);
        CHECK(balances[i].alloc_blocks == 0 || node->site_plus_1 != 0);
        sum += balances[i].alloc_bytes - balances[i].free_bytes;
    }
    CHECK(sum == inherited + 77);
    CHECK(tally_clear() == 0 && tally_bytes() == 0);
}

static void fork_under_load(void **state) {
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* it takes what the parent's other threads did for races with the child, where they do not exist */
#endif
    pthread_t threads[THREADS];
    over = false;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, busy, (void *)i), 0);
    for (int i = 0; i < CHILDREN; i++) {
        if (i % 2)
            raw_child(consistent);
        else
            world_in_child(consistent);
    }
    over = true;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    world_check();
}

/* Whoever else paused all threads is not there to end it. */
static void *pause_for_ever(void *unused) {
    tally_pause_all_begin();
    *(_Atomic bool *)unused = true;
    while (!over)
        usleep(1000);
    tally_pause_all_end();
    return NULL;
}
static void not_paused(void) {
    made(3, 0, 9);
    CHECK(tally_bytes() == 9);
}
static void paused_by_another(void **state) {
    (void)state;
    _Atomic bool paused = false;
    pthread_t thread;
    over = false;
    assert_int_equal(pthread_create(&thread, NULL, pause_for_ever, &paused), 0);
    while (!paused)
        usleep(100);
    world_in_child(not_paused);
    over = true;
    pthread_join(thread, NULL);
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup(NAME, fresh)
    const struct CMUnitTest tests[] = {TEST(whatever_comes_first), TEST(late_children), TEST(fork_under_load),
                                       TEST(paused_by_another)};
    return cmocka_run_group_tests(tests, begin, end);
}
