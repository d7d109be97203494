/*
 * tags.c - what tags mean, through the public API. Built twice: linked with the library, and with the header alone, to
 * be run under preload (there every call is an inline function over a weak symbol).
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

#include "tree_of.h"

static void *blocks[64];
static size_t used;
static void take(size_t size) { blocks[used++] = keep(malloc(size)); }
static void drop_all(void) {
    while (used)
        free(blocks[--used]);
}
static void fresh(void) {
    drop_all();
    CHECK_EQUAL(tally_clear(), 0);
    CHECK(tally_active());
}
static struct tally_perf_stats stats(void) {
    struct tally_perf_stats s = {.struct_bytes = sizeof s};
    CHECK_EQUAL(tally_perf_stats(&s), 0);
    return s;
}

/* ---- the reference example ---------------------------------------------------------------------------------------- */

static void example_b(void) {
    TALLY_TAG("B");
    take(100);
}
static void example_a(void) {
    TALLY_TAG("A");
    take(100);
    example_b();
}
static void reference_example(void) {
    {
        TALLY_TAG("Top");
        example_a();
        take(100);
        example_b();
    }
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 4);
    CHECK_EQUAL(tree_at(tree, "Top", NULL).bytes, 400);
    CHECK_EQUAL(tree_at(tree, "Top", NULL).bytes_direct, 100);
    CHECK_EQUAL(tree_at(tree, "Top", "A", NULL).bytes, 200);
    CHECK_EQUAL(tree_at(tree, "Top", "A", NULL).bytes_direct, 100);
    CHECK_EQUAL(tree_at(tree, "Top", "A", "B", NULL).bytes, 100);
    CHECK_EQUAL(tree_at(tree, "Top", "B", NULL).bytes, 100);
    CHECK(strcmp(tree_at(tree, NULL).name, "__root") == 0);
    CHECK_EQUAL(tree_at(tree, NULL).bytes, 400);
    CHECK_EQUAL(tree_at(tree, NULL).bytes_direct, 0);
    CHECK(tree_at(tree, "Top", "C", NULL).name == NULL);
    struct tally_site_info sites[8];
    CHECK_EQUAL(tally_tree_sites(tree, sites, 8), 3);
    CHECK(strcmp(sites[0].name, "B") == 0);
    CHECK_EQUAL(sites[0].bytes, 200);
    CHECK_EQUAL(sites[0].blocks, 2);
    CHECK_EQUAL(tally_tree_sites(tree, sites, 1), 3);
    CHECK_EQUAL(tally_bytes(), 400);
    tally_tree_free(tree);
}

static void repeated_sites(void) {
    const char *path[] = {"A", "B", "C", "B", "C"};
    for (int i = 0; i < 5; i++) {
        tally_push(path[i]);
        take(10u << i);
    }
    for (int i = 0; i < 5; i++)
        tally_pop();
    tally_tree *tree = tree_now(TALLY_TREE_SKIP_REPEATED);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 3);
    CHECK_EQUAL(tree_at(tree, "A", NULL).bytes_direct, 10);
    CHECK_EQUAL(tree_at(tree, "A", "B", NULL).bytes_direct, 20);
    CHECK_EQUAL(tree_at(tree, "A", "B", "C", NULL).bytes_direct, 40 + 80 + 160);
    tally_tree_free(tree);
    tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 5);
    CHECK_EQUAL(tree_at(tree, "A", "B", "C", "B", NULL).bytes_direct, 80);
    CHECK_EQUAL(tree_at(tree, "A", "B", "C", "B", "C", NULL).bytes_direct, 160);
    tally_tree_free(tree);
    errno = 0;
    CHECK(tally_tree_get(1u << 20) == NULL);
    CHECK_EQUAL(errno, EINVAL);
}

static void names(void) {
    static char longest[4097], too_long[5001];
    memset(longest, 'x', 4096);
    memset(too_long, 'x', 4096);
    memset(too_long + 4096, 'y', 904);
    const char *odd[] = {"a/b",
                         "line\nbreak",
                         "\"quo'ted\\\"",
                         "Gr\xc3\xb6\xc3\x9f"
                         "e",
                         " ",
                         "\x01\xff\x80",
                         "__root",
                         longest};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        static char buffer[5000];
        strcpy(buffer, odd[i]);
        tally_push_copy(buffer);
        memset(buffer, '#', strlen(buffer));
        take(100 + i);
        tally_pop();
    }
    uint64_t cut = stats().cut_names;
    tally_push_copy(too_long); /* the same as the longest when cut */
    take(1);
    tally_pop();
    CHECK_EQUAL(stats().cut_names, cut + 1);
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), sizeof odd / sizeof *odd);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct tally_node_info info = tree_at(tree, odd[i], NULL);
        CHECK(info.name && strcmp(info.name, odd[i]) == 0);
        CHECK_EQUAL(info.name_bytes, strlen(odd[i]));
        CHECK_EQUAL(info.kind, 1);
        CHECK_EQUAL(info.bytes, 100 + i + (odd[i] == longest));
    }
    tally_tree_free(tree);
}

/* One buffer that gets other names, and one name from several addresses. */
static void same_buffer(void) {
    char buffer[16], twin[] = "n1";
    for (int i = 0; i < 9; i++) {
        snprintf(buffer, sizeof buffer, "n%d", i % 3);
        TALLY_TAG_COPY(buffer);
        take(8);
    }
    tally_push(twin);
    take(8);
    tally_pop();
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 3);
    CHECK_EQUAL(tree_at(tree, "n0", NULL).blocks, 3);
    CHECK_EQUAL(tree_at(tree, "n1", NULL).blocks, 4);
    tally_tree_free(tree);
}

static void function_tag(void) {
    {
        TALLY_TAG_FUNC();
        take(7);
    }
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_at(tree, "function_tag", NULL).bytes, 7);
    tally_tree_free(tree);
}

static void nothing_pushed(void) {
    uint64_t errors = stats().pop_errors;
    tally_push("Real");
    tally_push("");
    tally_push(NULL);
    tally_push_copy("");
    tally_push_copy(NULL);
    take(5);
    for (int i = 0; i < 4; i++)
        tally_pop();
    take(6); /* still below Real */
    tally_pop();
    take(7);
    CHECK_EQUAL(stats().pop_errors, errors);
    tally_pop(); /* on an empty stack */
    tally_pop();
    CHECK_EQUAL(stats().pop_errors, errors + 2);
    {
        TALLY_TAG("Still");
        take(8);
    }
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 2);
    CHECK_EQUAL(tree_at(tree, "Real", NULL).bytes, 11);
    CHECK_EQUAL(tree_at(tree, NULL).bytes_direct, 7);
    CHECK_EQUAL(tree_at(tree, "Still", NULL).bytes, 8);
    tally_tree_free(tree);
}

static void deep(void) {
    enum { DEPTH = 10000 };
    for (int i = 0; i < DEPTH; i++)
        tally_push(i % 2 ? "odd" : "even");
    take(64);
    tally_stack stack;
    CHECK_EQUAL(tally_stack_get(&stack), 0);
    for (int i = 0; i < DEPTH; i++)
        tally_pop();
    take(1);
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), DEPTH);
    const tally_node *node = tally_tree_root(tree);
    for (int i = 0; i < DEPTH; i++)
        node = tally_node_first_child(node);
    struct tally_node_info info = {.struct_bytes = sizeof info};
    CHECK_EQUAL(tally_node_get_info(node, &info), 0);
    CHECK_EQUAL(info.bytes_direct, 64);
    CHECK(strcmp(info.name, "odd") == 0);
    CHECK_EQUAL(tree_at(tree, NULL).bytes_direct, 1);
    tally_tree_free(tree);
    tree = tree_now(TALLY_TREE_SKIP_REPEATED);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 2);
    CHECK_EQUAL(tree_at(tree, "even", "odd", NULL).bytes_direct, 64);
    tally_tree_free(tree);
}

/* ---- hand-over ------------------------------------------------------------------------------------------------------ */

static tally_stack given;
static void *other_thread(void *argument) {
    (void)argument;
    TALLY_TAG("Other");
    take(1);
    {
        TALLY_STACK_OVERRIDE(&given);
        take(2);
        tally_push("Below"); /* left pushed: the end of the scope takes it off */
        take(4);
        tally_stack empty = {0, 0, 0};
        {
            TALLY_STACK_OVERRIDE(&empty);
            take(8);
        }
        take(16);
    }
    take(32);
    return NULL;
}
static void hand_over(void) {
    {
        TALLY_TAG("Giver");
        TALLY_TAG("Job");
        CHECK_EQUAL(tally_stack_get(&given), 0);
    }
    pthread_t thread;
    TALLY_PAUSE_THREAD(); /* the thread's own memory; the pause is this thread's alone */
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    pthread_join(thread, NULL);
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_at(tree, "Other", NULL).bytes, 33);
    CHECK_EQUAL(tree_at(tree, "Giver", "Job", NULL).bytes_direct, 2);
    CHECK_EQUAL(tree_at(tree, "Giver", "Job", "Below", NULL).bytes, 20);
    CHECK_EQUAL(tree_at(tree, NULL).bytes_direct, 8);
    tally_tree_free(tree);
}

static void long_jump(void) {
    static jmp_buf back;
    tally_stack mark;
    tally_push("Outer");
    CHECK_EQUAL(tally_stack_get(&mark), 0);
    if (setjmp(back) == 0) {
        tally_push("Left");
        tally_push("Behind");
        longjmp(back, 1);
    }
    CHECK_EQUAL(tally_stack_rewind(&mark), 0);
    take(9);
    tally_pop();
    CHECK_EQUAL(tally_stack_rewind(&mark), -EINVAL); /* popped below it */
    CHECK(tally_error_text()[0] != 0);
    CHECK_EQUAL(tally_stack_rewind(&given), -EINVAL); /* of deeper, or of before */
    take(3);
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 1);
    CHECK_EQUAL(tree_at(tree, "Outer", NULL).bytes, 9);
    CHECK_EQUAL(tree_at(tree, NULL).bytes_direct, 3);
    tally_tree_free(tree);
}

/* ---- pause, clear, stop ----------------------------------------------------------------------------------------------- */

static void pauses(void) {
    TALLY_TAG("Seen");
    void *before = keep(malloc(100)), *inside, *grown;
    {
        TALLY_PAUSE_THREAD();
        inside = keep(malloc(1000));
        {
            TALLY_PAUSE_ALL();
            TALLY_PAUSE_THREAD();
            TALLY_TAG("Unseen");
            free(keep(malloc(10)));
            grown = keep(malloc(20));
        }
        CHECK_EQUAL(tally_bytes(), 100);
        take(30);     /* still paused */
        free(before); /* billed before: its free is matched */
        CHECK_EQUAL(tally_bytes(), 0);
    }
    take(5);
    free(inside); /* was paused: changes nothing */
    CHECK_EQUAL(tally_bytes(), 5);
    grown = keep(realloc(grown, 7)); /* billed now */
    CHECK_EQUAL(tally_bytes(), 12);
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 1);
    CHECK_EQUAL(tree_at(tree, "Seen", NULL).bytes, 12);
    CHECK_EQUAL(tree_at(tree, NULL).allocated_blocks, 3);
    tally_tree_free(tree);
    {
        TALLY_PAUSE_ALL();
        grown = keep(realloc(grown, 70));
        CHECK_EQUAL(tally_bytes(), 5);
    }
    free(grown);
    CHECK_EQUAL(tally_bytes(), 5);
    uint64_t errors = stats().pop_errors;
    tally_pause_thread_end();
    tally_pause_all_end();
    CHECK_EQUAL(stats().pop_errors, errors + 2);
    take(1);
    CHECK_EQUAL(tally_bytes(), 6);
    CHECK_EQUAL(stats().missed_frees, 0);
}

static void clear_and_stop(void) {
    TALLY_TAG("Kept");
    void *old = keep(malloc(50)), *old2 = keep(malloc(60)), *billed, *unseen;
    uint64_t unmatched = 0;
    CHECK_EQUAL(tally_bytes(), 110);
    CHECK_EQUAL(tally_clear(), 0);
    CHECK_EQUAL(tally_bytes(), 0);
    CHECK_EQUAL(tally_peak_bytes() <= stats().peak_error_bytes, 1);
    billed = keep(malloc(10)); /* the tag stack has survived */
    free(old);
    CHECK_EQUAL(tally_bytes(), 10);
    unmatched = stats().unmatched_frees;
    CHECK(unmatched >= 1);
    CHECK_EQUAL(tally_stop(), 0);
    CHECK_EQUAL(tally_stop(), 0);
    CHECK_EQUAL(tally_active(), 0);
    unseen = keep(malloc(1000));
    free(billed); /* still matched */
    CHECK_EQUAL(tally_bytes(), 0);
    CHECK_EQUAL(tally_start(), 0);
    CHECK_EQUAL(tally_start(), 0);
    CHECK_EQUAL(tally_active(), 1);
    free(unseen);
    free(old2);
    CHECK_EQUAL(tally_bytes(), 0);
    take(3);
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 1);
    CHECK_EQUAL(tree_at(tree, "Kept", NULL).bytes, 3);
    CHECK_EQUAL(tree_at(tree, "Kept", NULL).allocated_bytes, 13);
    tally_tree_free(tree);
    CHECK_EQUAL(stats().unmatched_frees, unmatched + 2);
}

/* Pushed while stopped, popped while on, and the other way round. */
static void tags_across_stop(void) {
    CHECK_EQUAL(tally_stop(), 0);
    uint64_t errors = stats().pop_errors;
    {
        TALLY_TAG("While stopped");
        CHECK_EQUAL(tally_start(), 0);
        TALLY_TAG("While on");
        take(4);
        CHECK_EQUAL(tally_stop(), 0);
    }
    CHECK_EQUAL(tally_start(), 0);
    take(2);
    CHECK_EQUAL(stats().pop_errors, errors);
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_at(tree, NULL).bytes_direct, 2);
    CHECK_EQUAL(tree_at(tree, NULL).bytes, 6);
    tally_tree_free(tree);
}

/* ---- figures ---------------------------------------------------------------------------------------------------------- */

static void peak(void) {
    enum { COUNT = 1000, SIZE = 1024 };
    static void *many[COUNT];
    for (int i = 0; i < COUNT; i++)
        many[i] = keep(malloc(SIZE));
    for (int i = 0; i < COUNT; i++)
        free(many[i]);
    uint64_t error = stats().peak_error_bytes, got = tally_peak_bytes();
    CHECK(error < COUNT * SIZE / 4);
    CHECK(got + error >= COUNT * SIZE && got <= COUNT * SIZE + error);
    CHECK_EQUAL(tally_bytes(), 0);
}

static void realloc_is_rebilled(void) {
    tally_push("First");
    void *block = keep(malloc(100));
    tally_pop();
    tally_push("Second");
    block = keep(realloc(block, 300));
    errno = 0;
    void *same = keep(block);
    CHECK(keep(realloc(same, (size_t)1 << 62)) == NULL);
    CHECK_EQUAL(errno, ENOMEM);
    tally_pop();
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_at(tree, "First", NULL).bytes, 0);
    CHECK_EQUAL(tree_at(tree, "First", NULL).allocated_bytes, 100);
    CHECK_EQUAL(tree_at(tree, "Second", NULL).bytes, 300);
    CHECK_EQUAL(tree_at(tree, "Second", NULL).allocated_bytes, 300);
    tally_tree_free(tree);
    free(block);
    CHECK_EQUAL(tally_bytes(), 0);
}

static void facts(void) {
    {
        TALLY_TAG("Something");
        take(10);
    }
    struct tally_perf_stats s = stats();
    CHECK(s.own_bytes > 0 && s.own_region_bytes > 0 && s.own_block_map_bytes > 0);
    CHECK_EQUAL(s.own_bytes, s.own_region_bytes + s.own_block_map_bytes + s.own_thread_bytes + s.own_other_bytes);
    CHECK(s.nodes > 0 && s.call_sites > 0 && s.ledgers_live >= 1);
    CHECK(s.table_load > 0 && s.table_load < 1);
    CHECK_EQUAL(s.dropped_events, 0);
    CHECK_EQUAL(tally_version(), TALLY_VERSION);
    struct tally_perf_stats small = {.struct_bytes = 16, .own_region_bytes = 42};
    (void)tally_perf_stats(&small); /* fills no more than it was told */
    CHECK_EQUAL(small.own_region_bytes, 42);
    struct tally_node_info tiny = {.struct_bytes = 8};
    tally_tree *tree = tree_now(0);
    CHECK_EQUAL(tally_node_get_info(tally_tree_root(tree), &tiny), -EINVAL);
    tally_tree_free(tree);
    tally_tree_free(NULL);
}

static void million_nodes(void) {
    char name[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "p%d", i);
        TALLY_TAG_COPY(name);
        for (int j = 0; j < 1000; j++) {
            snprintf(name, sizeof name, "c%d", j);
            TALLY_TAG_COPY(name);
            free(keep(malloc(1 + (size_t)(i + j) % 7)));
        }
    }
    tally_tree *tree = tree_now(TALLY_TREE_FULL);
    CHECK_EQUAL(tree_check(tally_tree_root(tree)), 1001000);
    CHECK_EQUAL(tree_at(tree, NULL).allocated_blocks, 1000000);
    CHECK_EQUAL(tree_at(tree, "p999", "c999", NULL).allocated_bytes, 1 + 1998 % 7);
    tally_tree_free(tree);
    CHECK_EQUAL(stats().dropped_events, 0);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
#define TEST(NAME) {#NAME, NAME}
        TEST(reference_example),   TEST(repeated_sites), TEST(names),          TEST(same_buffer),
        TEST(function_tag),        TEST(nothing_pushed), TEST(deep),           TEST(hand_over),
        TEST(long_jump),           TEST(pauses),         TEST(clear_and_stop), TEST(tags_across_stop),
        TEST(realloc_is_rebilled), TEST(peak),           TEST(facts),          TEST(million_nodes),
    };
    CHECK_EQUAL(tally_start(), 0);
    int ran = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc > 1 && strcmp(argv[1], tests[i].name) != 0) continue;
        say(1, "%s\n", tests[i].name);
        fresh();
        tests[i].run();
        errno = 0;
        ran++;
    }
    drop_all();
    CHECK(ran > 0);
    return 0;
}
