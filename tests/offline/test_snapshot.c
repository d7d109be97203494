/* test_snapshot.c - pictures of whole regions, of damaged ones, and of large ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "offline/snapshot.h"
#include "region_maker.h"
#include "snapshot_laws.h"

/* A picture of what the maker holds; the maker is used up. */
static int take(struct region_maker *maker, struct tly_snapshot **out) {
    struct tly_view view;
    char error[256] = "";
    size_t bytes;
    void *image = region_maker_image(maker, &bytes);
    assert_int_equal(tly_view_over(image, bytes, &view, NULL), 0);
    int result = tly_snapshot_from_view(&view, out, error, sizeof error);
    if (result != 0) assert_true(strlen(error) > 10);
    free(image);
    region_maker_free(maker);
    if (result == 0) assert_null(snapshot_broken_law(*out));
    return result;
}

static void test_reference(void **state) {
    (void)state;
    struct tly_snapshot *snapshot;
    assert_int_equal(take(region_maker_reference(), &snapshot), 0);
    assert_int_equal(snapshot->node_count, 5);
    assert_int_equal(snapshot->site_count, 3);
    assert_int_equal(snapshot->totals.sum.alloc_bytes, 450);
    assert_int_equal(snapshot->totals.sum.alloc_blocks, 5);
    assert_int_equal(snapshot->totals.sum.free_bytes, 50);
    assert_int_equal(snapshot->totals.sum.free_blocks, 1);
    assert_int_equal(snapshot->totals.peak_bytes, 500);
    assert_int_equal(snapshot->totals.peak_error_bytes, 1024);
    assert_int_equal(snapshot->process.pid, 1234);
    assert_string_equal(snapshot->process.program.bytes, "reference");
    assert_string_equal(snapshot->process.host.bytes, "box");
    assert_int_equal(snapshot->process.command_line.length, 28);
    assert_int_equal(snapshot->process.wall_ns, 2500000000);
    assert_int_equal(snapshot->counters.unmatched_frees, 3);
    assert_int_equal(snapshot->counters.own_bytes[TLY_OWN_REGION], 65536);
    assert_true(snapshot->exact);
    assert_int_equal(snapshot->process.end_kind, TLY_END_UNKNOWN);
    tly_snapshot_set_end(snapshot, TLY_END_RUNNING, 0);
    assert_false(snapshot->exact);
    tly_snapshot_set_end(snapshot, TLY_END_EXITED, 3);
    assert_true(snapshot->exact);
    tly_snapshot_free(snapshot);
}

static void test_empty(void **state) {
    (void)state;
    struct tly_snapshot *snapshot;
    assert_int_equal(take(region_maker_new(), &snapshot), 0);
    assert_int_equal(snapshot->node_count, 1);
    assert_int_equal(snapshot->totals.sum.alloc_blocks, 0);
    tly_snapshot_free(snapshot);
}

static void test_paused_and_unused_are_left_out(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    struct tly_snapshot *snapshot;
    uint32_t a = region_maker_tag(maker, "A"), b = region_maker_tag(maker, "B");
    region_maker_bill(maker, 1, TLY_NODE_PAUSED, 7, 1, 0, 0);
    uint32_t paused = region_maker_node(maker, TLY_NODE_PAUSED, a);
    region_maker_bill(maker, 1, region_maker_node(maker, paused, b), 70, 1, 0, 0);
    region_maker_node(maker, region_maker_node(maker, 0, b), a); /* nothing was ever allocated there */
    uint32_t freed = region_maker_node(maker, 0, a);
    region_maker_bill(maker, 1, freed, 5, 1, 5, 1); /* all freed is not the same as nothing */
    region_maker_bill(maker, 1, region_maker_node(maker, freed, b), 0, 1, 0, 0); /* malloc(0) */
    region_maker_bill(maker, 1, TLY_NODE_ROOT, 3, 1, 0, 0);
    assert_int_equal(take(maker, &snapshot), 0);
    assert_int_equal(snapshot->node_count, 3);
    assert_int_equal(snapshot->totals.sum.alloc_bytes, 8);
    assert_int_equal(snapshot->totals.sum.alloc_blocks, 3);
    assert_true(snapshot->exact);
    tly_snapshot_free(snapshot);
}

static void test_unpublished_records(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    struct tly_snapshot *snapshot;
    uint32_t a = region_maker_tag(maker, "A");
    region_maker_node(maker, 0, UINT32_MAX); /* site_plus_1 is 0: not yet in use; nothing is billed to it */
    region_maker_site(maker, TLY_SITE_NONE, "x", 1, 0, 0);
    region_maker_bill(maker, 1, region_maker_node(maker, 0, a), 5, 1, 0, 0);
    assert_int_equal(take(maker, &snapshot), 0);
    assert_int_equal(snapshot->node_count, 2);
    assert_int_equal(snapshot->damaged_records, 0);
    assert_true(snapshot->exact);
    tly_snapshot_free(snapshot);
}

static void test_damaged_nodes(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    struct tly_snapshot *snapshot;
    uint32_t a = region_maker_tag(maker, "A"), none = region_maker_site(maker, TLY_SITE_NONE, "x", 1, 0, 0);
    uint32_t strange = region_maker_site(maker, 99, "x", 1, 0, 0);
    region_maker_bill(maker, 1, region_maker_node(maker, 0, a), 5, 1, 0, 0);
    uint32_t self = region_maker_node(maker, 3, a); /* is its own parent */
    assert_int_equal(self, 3);
    region_maker_bill(maker, 1, self, 10, 1, 0, 0);
    region_maker_bill(maker, 1, region_maker_node(maker, 100, a), 20, 1, 0, 0);
    region_maker_bill(maker, 1, region_maker_node(maker, 0, none), 40, 1, 0, 0);
    region_maker_bill(maker, 1, region_maker_node(maker, 0, strange), 80, 1, 0, 0);
    region_maker_bill(maker, 1, region_maker_node(maker, 0, 1000), 160, 1, 0, 0);
    assert_int_equal(take(maker, &snapshot), 0);
    assert_int_equal(snapshot->totals.sum.alloc_bytes, 5);
    assert_int_equal(snapshot->damaged_records, 5);
    assert_false(snapshot->exact);
    tly_snapshot_set_end(snapshot, TLY_END_EXITED, 0);
    assert_false(snapshot->exact);
    tly_snapshot_free(snapshot);
}

static void test_damaged_counters(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    struct tly_snapshot *snapshot;
    uint32_t a = region_maker_node(maker, 0, region_maker_tag(maker, "A"));
    region_maker_bill(maker, 1, a, 5, 1, 6, 2); /* freed more than was allocated */
    assert_int_equal(take(maker, &snapshot), 0);
    assert_int_equal(snapshot->totals.sum.free_bytes, 5);
    assert_int_equal(snapshot->totals.sum.free_blocks, 1);
    assert_int_equal(snapshot->damaged_records, 1);
    tly_snapshot_free(snapshot);
    maker = region_maker_new();
    a = region_maker_node(maker, 0, region_maker_tag(maker, "A"));
    region_maker_bill(maker, 1, a, INT64_MAX, 1, 0, 0);
    region_maker_bill(maker, 1, TLY_NODE_ROOT, 1, 1, 0, 0);
    assert_int_equal(take(maker, &snapshot), -EBADMSG);
    assert_null(snapshot);
}

static void test_damaged_names(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    struct tly_snapshot *snapshot;
    struct tly_view view;
    size_t bytes;
    uint32_t a = region_maker_node(maker, 0, region_maker_tag(maker, "A"));
    region_maker_bill(maker, 1, a, 5, 1, 0, 0);
    unsigned char *image = region_maker_image(maker, &bytes);
    struct tly_region *head = (struct tly_region *)(void *)image;
    struct tly_site *site = (struct tly_site *)(void *)(image + head->section[TLY_SEC_SITES].offset);
    site->name_offset = 1 << 20;
    assert_int_equal(tly_view_over(image, bytes, &view, NULL), 0);
    assert_int_equal(tly_snapshot_from_view(&view, &snapshot, NULL, 0), 0);
    assert_null(snapshot_broken_law(snapshot));
    assert_int_equal(snapshot->damaged_records, 1);
    assert_int_equal(snapshot->totals.sum.alloc_bytes, 5); /* the bytes are still there */
    assert_string_equal(snapshot->sites[0].name.bytes, "?");
    tly_snapshot_free(snapshot);
    free(image);
    region_maker_free(maker);
}

/* A library that was closed and loaded again at another place is one library, and its callers are the same callers. */
static void test_reloaded_module(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    struct tly_snapshot *snapshot;
    uint32_t first = region_maker_module(maker, "/usr/lib/plugin.so", "abcdefgh", 8);
    uint32_t again = region_maker_module(maker, "/usr/lib/plugin.so", "abcdefgh", 8);
    uint32_t other = region_maker_module(maker, "/usr/lib/plugin.so", "ABCDEFGH", 8); /* rebuilt meanwhile */
    uint32_t modules[] = {first, again, other};
    for (int i = 0; i < 3; i++) {
        uint32_t node = region_maker_node(maker, 0, region_maker_site(maker, TLY_SITE_MODULE, "", 0, 0, modules[i]));
        region_maker_bill(maker, 1, region_maker_node(maker, node, region_maker_caller(maker, modules[i], 0x100)),
                          (uint64_t)1 << (4 * i), 1, 0, 0);
    }
    assert_int_equal(take(maker, &snapshot), 0);
    assert_int_equal(snapshot->module_count, 2);
    assert_int_equal(snapshot->site_count, 4);
    assert_int_equal(snapshot->node_count, 5);
    assert_int_equal(snapshot->nodes[2].direct.alloc_bytes, 0x11);
    assert_int_equal(snapshot->nodes[4].direct.alloc_bytes, 0x100);
    tly_snapshot_free(snapshot);
}

/* It was killed in the middle of a clear: what is there is shown, and not called exact. */
static void test_unfinished_clear(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_reference();
    struct tly_snapshot *snapshot;
    region_maker_head(maker)->epoch = 3;
    assert_int_equal(take(maker, &snapshot), 0);
    assert_int_equal(snapshot->totals.sum.alloc_bytes, 450);
    assert_false(snapshot->exact);
    assert_non_null(strstr(snapshot->note.bytes, "clear"));
    tly_snapshot_free(snapshot);
}

static void test_flipped_bytes(void **state) {
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srand(seed);
    struct region_maker *maker = region_maker_reference();
    uint32_t module = region_maker_module(maker, "/usr/lib/lib.so", "abcdefgh", 8);
    region_maker_bill(maker, 2, region_maker_node(maker, 2, region_maker_caller(maker, module, 0x99)), 9, 1, 0, 0);
    size_t bytes;
    unsigned char *whole = region_maker_image(maker, &bytes), *image = malloc(bytes);
    assert_non_null(image);
    int pictures = 0;
    for (int round = 0; round < 5000; round++) {
        struct tly_view view;
        struct tly_snapshot *snapshot;
        memcpy(image, whole, bytes);
        for (int i = rand() % 8; i >= 0; i--)
            image[(size_t)rand() % bytes] ^= (unsigned char)(1 << rand() % 8);
        struct tly_region *head = (struct tly_region *)(void *)image;
        head->epoch &= ~1u; /* else each round waits for the end of a clear */
        if (tly_view_over(image, bytes, &view, NULL) != 0) continue;
        if (tly_snapshot_from_view(&view, &snapshot, NULL, 0) != 0) continue;
        assert_null(snapshot_broken_law(snapshot));
        tly_snapshot_free(snapshot);
        pictures++;
    }
    assert_true(pictures > 100);
    free(image);
    free(whole);
    region_maker_free(maker);
}

/* A million nodes, and how long that takes (told, not judged). */
static void test_million_nodes(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    struct tly_snapshot *snapshot;
    struct tly_view view;
    struct timespec begin, end;
    char name[32];
    size_t bytes;
    enum { OUTER = 1000, INNER = 1000 };
    static uint32_t inner[INNER];
    for (int i = 0; i < INNER; i++) {
        snprintf(name, sizeof name, "inner %d", i);
        inner[i] = region_maker_tag(maker, name);
    }
    for (int i = 0; i < OUTER; i++) {
        snprintf(name, sizeof name, "outer %d", i);
        uint32_t outer = region_maker_node(maker, 0, region_maker_tag(maker, name));
        for (int k = 0; k < INNER; k++)
            region_maker_bill(maker, 1, region_maker_node(maker, outer, inner[k]), 10, 2, 5, 1);
    }
    void *image = region_maker_image(maker, &bytes);
    region_maker_free(maker);
    assert_int_equal(tly_view_over(image, bytes, &view, NULL), 0);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(tly_snapshot_from_view(&view, &snapshot, NULL, 0), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    print_message("%u nodes in %ld ms\n", snapshot->node_count,
                  (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
    assert_int_equal(snapshot->node_count, 1 + OUTER + OUTER * INNER);
    assert_int_equal(snapshot->totals.sum.alloc_bytes, 10 * OUTER * INNER);
    assert_null(snapshot_broken_law(snapshot));
    tly_snapshot_free(snapshot);
    free(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_paused_and_unused_are_left_out),
        cmocka_unit_test(test_unpublished_records),
        cmocka_unit_test(test_damaged_nodes),
        cmocka_unit_test(test_damaged_counters),
        cmocka_unit_test(test_damaged_names),
        cmocka_unit_test(test_reloaded_module),
        cmocka_unit_test(test_unfinished_clear),
        cmocka_unit_test(test_flipped_bytes),
        cmocka_unit_test(test_million_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
