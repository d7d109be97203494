/* test_rollup.c - folding, inclusive figures and order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "offline/label.h"
#include "offline/rollup.h"
#include "region_maker.h"

static struct tly_snapshot *picture(struct region_maker *maker) {
    struct tly_snapshot *snapshot;
    struct tly_view view;
    size_t bytes;
    void *image = region_maker_image(maker, &bytes);
    assert_int_equal(tly_view_over(image, bytes, &view, NULL), 0);
    assert_int_equal(tly_snapshot_from_view(&view, &snapshot, NULL, 0), 0);
    free(image);
    region_maker_free(maker);
    return snapshot;
}

/* What holds for every roll-up. */
static void check(const struct tly_rollup *rollup) {
    struct tly_balance sum = {0};
    uint32_t linked = 0;
    for (uint32_t i = 0; i < rollup->count; i++) {
        const struct tly_row *row = &rollup->rows[i];
        struct tly_balance below = row->direct;
        for (uint32_t child = row->first_child; child != 0; child = rollup->rows[child].next_sibling, linked++) {
            assert_true(child > i && child < rollup->count);
            assert_int_equal(rollup->rows[child].parent, i);
            below.alloc_bytes += rollup->rows[child].inclusive.alloc_bytes;
            below.alloc_blocks += rollup->rows[child].inclusive.alloc_blocks;
            below.free_bytes += rollup->rows[child].inclusive.free_bytes;
            below.free_blocks += rollup->rows[child].inclusive.free_blocks;
        }
        assert_memory_equal(&below, &row->inclusive, sizeof below);
        sum.alloc_bytes += row->direct.alloc_bytes;
        sum.alloc_blocks += row->direct.alloc_blocks;
        sum.free_bytes += row->direct.free_bytes;
        sum.free_blocks += row->direct.free_blocks;
    }
    assert_int_equal(linked, rollup->count - 1);
    assert_memory_equal(&sum, &rollup->rows[0].inclusive, sizeof sum);
    assert_memory_equal(&sum, &rollup->snapshot->totals.sum, sizeof sum);
}

/* The row at a path like "A/B", or 0. */
static uint32_t find(const struct tly_rollup *rollup, const char *path) {
    uint32_t row = 0;
    while (*path) {
        size_t length = strcspn(path, "/");
        uint32_t child = rollup->rows[row].first_child;
        for (; child != 0; child = rollup->rows[child].next_sibling) {
            char name[64];
            size_t name_length = tly_label_site(name, sizeof name, rollup->snapshot, rollup->rows[child].site);
            if (name_length == length && memcmp(name, path, length) == 0) break;
        }
        if (child == 0) return 0;
        row = child;
        path += length + (path[length] == '/');
    }
    return row;
}

static uint64_t bytes_at(const struct tly_rollup *rollup, const char *path) {
    uint32_t row = find(rollup, path);
    if (row == 0) fail_msg("no row %s", path);
    return tly_live_bytes(&rollup->rows[row].inclusive);
}

static void test_reference(void **state) {
    (void)state;
    struct tly_snapshot *snapshot = picture(region_maker_reference());
    struct tly_rollup rollup;
    for (int fold = 0; fold < 2; fold++) {
        assert_int_equal(tly_rollup_make(snapshot, fold, TLY_SORT_BYTES, &rollup), 0);
        check(&rollup);
        assert_int_equal(rollup.count, 5);
        assert_int_equal(bytes_at(&rollup, "Top"), 400);
        assert_int_equal(bytes_at(&rollup, "Top/A"), 200);
        assert_int_equal(bytes_at(&rollup, "Top/A/B"), 100);
        assert_int_equal(bytes_at(&rollup, "Top/B"), 100);
        assert_int_equal(tly_live_bytes(&rollup.rows[find(&rollup, "Top")].direct), 100);
        tly_rollup_free(&rollup);
    }
    tly_snapshot_free(snapshot);
}

/* A, B, C, B, C: the nodes A, A/B, A/B/C, and the bytes at the longest. */
static void test_fold(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    uint32_t site[3] = {region_maker_tag(maker, "A"), region_maker_tag(maker, "B"), region_maker_tag(maker, "C")};
    static const int path[] = {0, 1, 2, 1, 2};
    uint32_t node = 0;
    for (size_t i = 0; i < 5; i++) {
        node = region_maker_node(maker, node, site[path[i]]);
        region_maker_bill(maker, 1, node, (uint64_t)1 << (4 * i), 1, 0, 0);
    }
    struct tly_snapshot *snapshot = picture(maker);
    struct tly_rollup rollup;
    assert_int_equal(tly_rollup_make(snapshot, true, TLY_SORT_BYTES, &rollup), 0);
    check(&rollup);
    assert_int_equal(rollup.count, 4);
    assert_int_equal(tly_live_bytes(&rollup.rows[find(&rollup, "A")].direct), 0x1);
    assert_int_equal(tly_live_bytes(&rollup.rows[find(&rollup, "A/B")].direct), 0x10);
    assert_int_equal(tly_live_bytes(&rollup.rows[find(&rollup, "A/B/C")].direct), 0x11100);
    tly_rollup_free(&rollup);
    assert_int_equal(tly_rollup_make(snapshot, false, TLY_SORT_BYTES, &rollup), 0);
    check(&rollup);
    assert_int_equal(rollup.count, 6);
    assert_int_equal(bytes_at(&rollup, "A/B/C/B/C"), 0x10000);
    tly_rollup_free(&rollup);
    tly_snapshot_free(snapshot);
}

/* Below a repeated site, paths that were different come together: A/B/A/C is A/B/C. */
static void test_fold_merges(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    uint32_t site_a = region_maker_tag(maker, "A"), site_b = region_maker_tag(maker, "B");
    uint32_t site_c = region_maker_tag(maker, "C");
    uint32_t a = region_maker_node(maker, 0, site_a), ab = region_maker_node(maker, a, site_b);
    uint32_t aba = region_maker_node(maker, ab, site_a);
    uint32_t abac = region_maker_node(maker, aba, site_c), abc = region_maker_node(maker, ab, site_c);
    uint32_t abaca = region_maker_node(maker, abac, site_a),
             abcd = region_maker_node(maker, abc, region_maker_tag(maker, "D"));
    uint32_t c = region_maker_node(maker, 0, site_c); /* a site is only "repeated" on its own path */
    region_maker_bill(maker, 1, abac, 1, 1, 0, 0);
    region_maker_bill(maker, 1, abc, 2, 1, 0, 0);
    region_maker_bill(maker, 1, abaca, 4, 1, 0, 0);
    region_maker_bill(maker, 1, abcd, 8, 1, 0, 0);
    region_maker_bill(maker, 1, c, 16, 1, 0, 0);
    struct tly_snapshot *snapshot = picture(maker);
    struct tly_rollup rollup;
    assert_int_equal(tly_rollup_make(snapshot, true, TLY_SORT_BYTES, &rollup), 0);
    check(&rollup);
    assert_int_equal(rollup.count, 6); /* root, A, A/B, A/B/C, A/B/C/D, C */
    assert_int_equal(bytes_at(&rollup, "A/B/C"), 15);
    assert_int_equal(tly_live_bytes(&rollup.rows[find(&rollup, "A/B/C")].direct), 7);
    assert_int_equal(bytes_at(&rollup, "C"), 16);
    tly_rollup_free(&rollup);
    tly_snapshot_free(snapshot);
}

static void test_sorts(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    /* name, allocated bytes, blocks, freed bytes, blocks: each leads in another order */
    static const struct {
        const char *name;
        uint64_t alloc_bytes, alloc_blocks, free_bytes, free_blocks;
    } tags[] = {{"d", 1000, 10, 0, 0}, {"c", 500, 50, 0, 0}, {"b", 9000, 20, 8900, 19}, {"a", 800, 900, 799, 899}};
    for (int i = 0; i < 4; i++) {
        uint32_t node = region_maker_node(maker, 0, region_maker_tag(maker, tags[i].name));
        region_maker_bill(maker, 1, node, tags[i].alloc_bytes, tags[i].alloc_blocks, tags[i].free_bytes,
                          tags[i].free_blocks);
    }
    struct tly_snapshot *snapshot = picture(maker);
    static const char *const wanted[] = {"dcba", "cdba", "bdac", "acbd", "abcd"};
    for (int sort = 0; sort < 5; sort++) {
        struct tly_rollup rollup;
        char order[8] = "";
        assert_int_equal(tly_rollup_make(snapshot, true, (enum tly_rollup_sort)sort, &rollup), 0);
        check(&rollup);
        for (uint32_t i = rollup.rows[0].first_child; i != 0; i = rollup.rows[i].next_sibling) {
            char name[8];
            tly_label_site(name, sizeof name, snapshot, rollup.rows[i].site);
            strcat(order, name);
        }
        assert_string_equal(order, wanted[sort]);
        tly_rollup_free(&rollup);
    }
    tly_snapshot_free(snapshot);
}

/* One path, 200,000 levels deep: no recursion, and no time that grows with its square. */
static void test_deep(void **state) {
    (void)state;
    struct region_maker *maker = region_maker_new();
    uint32_t node = 0, sites[1000];
    char name[16];
    enum { LEVELS = 200000 };
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "t%d", i);
        sites[i] = region_maker_tag(maker, name);
    }
    for (int i = 0; i < LEVELS; i++) {
        node = region_maker_node(maker, node, sites[i % 1000]);
        region_maker_bill(maker, 1, node, 1, 1, 0, 0);
    }
    struct tly_snapshot *snapshot = picture(maker);
    struct tly_rollup rollup;
    assert_int_equal(snapshot->node_count, LEVELS + 1);
    for (int fold = 0; fold < 2; fold++) {
        assert_int_equal(tly_rollup_make(snapshot, fold, TLY_SORT_BYTES, &rollup), 0);
        check(&rollup);
        assert_int_equal(rollup.count, fold ? 1001 : LEVELS + 1);
        tly_rollup_free(&rollup);
    }
    tly_snapshot_free(snapshot);
}

/* Random trees against a slow and simple fold: walk each node's path with a list of the sites so far. */
static void test_fold_against_simple(void **state) {
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srand(seed);
    for (int round = 0; round < 200; round++) {
        struct region_maker *maker = region_maker_new();
        enum { NODES = 60, SITES = 4 };
        uint32_t sites[SITES], node[NODES], parent[NODES], used[NODES];
        char name[2] = "A";
        for (int i = 0; i < SITES; i++, name[0]++)
            sites[i] = region_maker_tag(maker, name);
        int count = 0;
        for (int i = 0; i < NODES; i++) {
            int above = rand() % (count + 1) - 1, site = rand() % SITES;
            bool there = false;
            for (int k = 0; k < count; k++)
                there = there || (parent[k] == (uint32_t)(above + 1) && used[k] == (uint32_t)site);
            if (there) continue; /* paths are not there twice */
            parent[count] = (uint32_t)(above + 1);
            used[count] = (uint32_t)site;
            node[count] = region_maker_node(maker, above < 0 ? 0 : node[above], sites[site]);
            region_maker_bill(maker, 1, node[count], (uint64_t)(1 + rand() % 1000), 1, 0, 0);
            count++;
        }
        struct tly_snapshot *snapshot = picture(maker);
        struct tly_rollup rollup;
        assert_int_equal(tly_rollup_make(snapshot, true, TLY_SORT_BYTES, &rollup), 0);
        check(&rollup);
        struct {
            char path[2 * SITES + 1];
            uint64_t bytes;
        } folded[NODES];
        int folded_count = 0;
        for (uint32_t i = 1; i < snapshot->node_count; i++) {
            uint32_t chain[NODES];
            int depth = 0;
            char path[2 * SITES + 1] = "";
            for (uint32_t k = i; k != 0; k = snapshot->nodes[k].parent)
                chain[depth++] = snapshot->nodes[k].site;
            while (depth-- > 0) {
                char label[4];
                tly_label_site(label, sizeof label, snapshot, chain[depth]);
                if (strstr(path, label)) continue;
                if (*path) strcat(path, "/");
                strcat(path, label);
            }
            int at = 0;
            while (at < folded_count && strcmp(folded[at].path, path) != 0)
                at++;
            if (at == folded_count) {
                strcpy(folded[at].path, path);
                folded[folded_count++].bytes = 0;
            }
            folded[at].bytes += tly_live_bytes(&snapshot->nodes[i].direct);
        }
        assert_int_equal(rollup.count, folded_count + 1);
        for (int k = 0; k < folded_count; k++) {
            uint32_t row = find(&rollup, folded[k].path);
            assert_int_not_equal(row, 0);
            assert_int_equal(tly_live_bytes(&rollup.rows[row].direct), folded[k].bytes);
        }
        tly_rollup_free(&rollup);
        tly_snapshot_free(snapshot);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_fold), cmocka_unit_test(test_fold_merges),
        cmocka_unit_test(test_sorts),     cmocka_unit_test(test_deep), cmocka_unit_test(test_fold_against_simple),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
