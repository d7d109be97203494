/* test_tree.c - tally_tree against a slow and plain reimplementation, on random trees. */
#define _GNU_SOURCE
#define TALLY_BUILDING
#include "core_world.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/account.h"
#include "tally/tally.h"

/* ---- the model: a list of paths, each with what was billed to it -------------------------------------------------- */

enum { PATH_BYTES = 400, PATHS_MOST = 30000 };
struct line {
    char path[PATH_BYTES]; /* names, each followed by '\1' (which none contains, and which sorts before all of them) */
    uint64_t bytes, blocks, allocated_bytes, allocated_blocks;
};
static struct line *lines, *folded, *inclusive;
static size_t line_count, folded_count, inclusive_count;

static struct line *line_at(struct line *list, size_t *count, const char *path) {
    for (size_t i = *count; i-- > 0;)
        if (strcmp(list[i].path, path) == 0) return &list[i];
    assert_true(*count < PATHS_MOST);
    struct line *line = &list[(*count)++];
    memset(line, 0, sizeof *line);
    strcpy(line->path, path);
    return line;
}
static void add(struct line *to, const struct line *from) {
    to->bytes += from->bytes;
    to->blocks += from->blocks;
    to->allocated_bytes += from->allocated_bytes;
    to->allocated_blocks += from->allocated_blocks;
}

/* Leaves out each name that was on the path before. */
static void fold(const char *path, char *out) {
    *out = 0;
    for (const char *at = path; *at;) {
        size_t bytes = strcspn(at, "\1") + 1;
        bool repeated = false;
        for (char *seen = out; *seen; seen += strcspn(seen, "\1") + 1)
            repeated |= strncmp(seen, at, bytes) == 0;
        if (!repeated) strncat(out, at, bytes);
        at += bytes;
    }
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct line *)a)->path, ((const struct line *)b)->path);
}

/* From direct figures to inclusive ones of every prefix, in order. */
static void sum_up(const struct line *direct, size_t count) {
    inclusive_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (direct[i].allocated_blocks == 0) continue;
        char prefix[PATH_BYTES];
        for (size_t end = 0;; end += strcspn(direct[i].path + end, "\1") + 1) {
            memcpy(prefix, direct[i].path, end);
            prefix[end] = 0;
            add(line_at(inclusive, &inclusive_count, prefix), &direct[i]);
            if (direct[i].path[end] == 0) break;
        }
    }
    qsort(inclusive, inclusive_count, sizeof *inclusive, by_path);
}

/* ---- comparison: a walk of the tree meets the sorted lines in their order ---------------------------------------- */

static size_t met;

static void compare(const tally_node *node, const tally_node *parent, char *path, size_t length,
                    const struct line *direct, size_t direct_count) {
    struct tally_node_info info = {.struct_bytes = sizeof info};
    assert_int_equal(tally_node_get_info(node, &info), 0);
    assert_ptr_equal(tally_node_parent(node), parent);
    assert_int_equal(strlen(info.name), info.name_bytes);
    assert_int_equal(info.kind, parent ? 1 : 0);
    if (parent) {
        memcpy(path + length, info.name, info.name_bytes);
        length += info.name_bytes;
        path[length++] = '\1';
    }
    path[length] = 0;
    assert_true(met < inclusive_count);
    const struct line *line = &inclusive[met++];
    assert_string_equal(path, line->path);
    assert_int_equal(info.bytes, line->bytes);
    assert_int_equal(info.blocks, line->blocks);
    assert_int_equal(info.allocated_bytes, line->allocated_bytes);
    assert_int_equal(info.allocated_blocks, line->allocated_blocks);
    uint64_t bytes = 0, blocks = 0, allocated_bytes = 0, allocated_blocks = 0;
    for (size_t i = 0; i < direct_count; i++)
        if (strcmp(direct[i].path, path) == 0) {
            bytes = direct[i].bytes;
            blocks = direct[i].blocks;
            allocated_bytes = direct[i].allocated_bytes;
            allocated_blocks = direct[i].allocated_blocks;
        }
    assert_int_equal(info.bytes_direct, bytes);
    assert_int_equal(info.blocks_direct, blocks);
    assert_int_equal(info.allocated_bytes_direct, allocated_bytes);
    assert_int_equal(info.allocated_blocks_direct, allocated_blocks);
    for (const tally_node *child = tally_node_first_child(node); child; child = tally_node_next_sibling(child))
        compare(child, node, path, length, direct, direct_count);
}

static void compare_tree(unsigned flags, const struct line *direct, size_t count) {
    char path[PATH_BYTES];
    sum_up(direct, count);
    tally_tree *tree = tally_tree_get(flags);
    assert_non_null(tree);
    met = 0;
    compare(tally_tree_root(tree), NULL, path, 0, direct, count);
    assert_int_equal(met, inclusive_count);

    /* the sites: sums over all paths that end in the name */
    static struct tally_site_info sites[1000];
    size_t site_count = tally_tree_sites(tree, sites, 1000), again = tally_tree_sites(tree, NULL, 0);
    assert_int_equal(site_count, again);
    uint64_t sum = 0, root_bytes = 0, last = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        sum += direct[i].bytes;
        if (!direct[i].path[0]) root_bytes += direct[i].bytes;
    }
    for (size_t s = 0; s < site_count; s++) {
        uint64_t bytes = 0, blocks = 0;
        char end[PATH_BYTES];
        snprintf(end, sizeof end, "\1%s\1", sites[s].name);
        for (size_t i = 0; i < count; i++) {
            char whole[PATH_BYTES + 1] = "\1";
            strcat(whole, direct[i].path);
            size_t length = strlen(whole), want = strlen(end);
            if (length < want || strcmp(whole + length - want, end) != 0) continue;
            bytes += direct[i].bytes;
            blocks += direct[i].blocks;
        }
        assert_int_equal(sites[s].bytes, bytes);
        assert_int_equal(sites[s].blocks, blocks);
        assert_true(sites[s].bytes <= last);
        last = sites[s].bytes;
        sum -= bytes;
    }
    assert_int_equal(sum, root_bytes);
    tally_tree_free(tree);
}

static void compare_both(void) {
    compare_tree(TALLY_TREE_FULL, lines, line_count);
    folded_count = 0;
    for (size_t i = 0; i < line_count; i++) {
        char path[PATH_BYTES];
        fold(lines[i].path, path);
        add(line_at(folded, &folded_count, path), &lines[i]);
    }
    compare_tree(TALLY_TREE_SKIP_REPEATED, folded, folded_count);
}

/* ---- what is billed ---------------------------------------------------------------------------------------------- */

static uint64_t next_block;
static void bill(const char *path, uint64_t size, bool freed) {
    char name[PATH_BYTES];
    int depth = 0;
    for (const char *at = path; *at; at += strcspn(at, "\1") + 1, depth++) {
        size_t bytes = strcspn(at, "\1");
        memcpy(name, at, bytes);
        name[bytes] = 0;
        tally_push_copy(name);
    }
    void *block = world_block(0, next_block++ * 4);
    tly_account_made(block, size, NULL);
    if (freed) tly_account_gone(block);
    while (depth-- > 0)
        tally_pop();
    struct line *line = line_at(lines, &line_count, path);
    line->allocated_bytes += size;
    line->allocated_blocks++;
    if (!freed) line->bytes += size, line->blocks++;
}

static int begin(void **state) {
    (void)state;
    setenv("TALLY_CONF", "output:,consolidate_period_ms:0,quiet:true", 1);
    if (tally_tree_get(0) != NULL || errno != ENOSYS) return -1; /* not started yet */
    lines = calloc(PATHS_MOST, sizeof *lines);
    folded = calloc(PATHS_MOST, sizeof *folded);
    inclusive = calloc(PATHS_MOST, sizeof *inclusive);
    return tally_start();
}

static int clear(void **state) {
    (void)state;
    line_count = 0;
    return tally_clear();
}

static void nothing_billed(void **state) {
    (void)state;
    tally_tree *tree = tally_tree_get(0);
    struct tally_node_info info = {.struct_bytes = sizeof info};
    assert_int_equal(tally_node_get_info(tally_tree_root(tree), &info), 0);
    assert_string_equal(info.name, "__root");
    assert_int_equal(info.bytes | info.allocated_blocks, 0);
    assert_null(tally_node_first_child(tally_tree_root(tree)));
    tally_tree_free(tree);
    tally_tree_free(NULL);
    assert_null(tally_tree_root(NULL));
    assert_null(tally_tree_get(2));
    assert_int_equal(errno, EINVAL);
    assert_true(tally_error_text()[0]);
}

static uint64_t inclusive_of(tally_tree *tree, size_t count, const char *const *names) {
    struct tally_node_info info = {.struct_bytes = sizeof info};
    const tally_node *node = tally_tree_find(tree, names, count);
    assert_non_null(node);
    assert_int_equal(tally_node_get_info(node, &info), 0);
    return info.bytes;
}

/* The example of the reference: Top calls A, allocates 100, calls B; A allocates 100 and calls B; B allocates 100. */
static void reference(void **state) {
    (void)state;
    bill("Top\1A\1", 100, false);
    bill("Top\1A\1B\1", 100, false);
    bill("Top\1", 100, false);
    bill("Top\1B\1", 100, false);
    tally_tree *tree = tally_tree_get(0);
    assert_int_equal(inclusive_of(tree, 1, (const char *[]){"Top"}), 400);
    assert_int_equal(inclusive_of(tree, 2, (const char *[]){"Top", "A"}), 200);
    assert_int_equal(inclusive_of(tree, 3, (const char *[]){"Top", "A", "B"}), 100);
    assert_int_equal(inclusive_of(tree, 2, (const char *[]){"Top", "B"}), 100);
    assert_int_equal(inclusive_of(tree, 0, NULL), 400);
    assert_null(tally_tree_find(tree, (const char *[]){"Top", "C"}, 2));
    tally_tree_free(tree);
    assert_int_equal(line_count, 4);
    compare_both();
}

static void repeated(void **state) {
    (void)state;
    bill("A\1B\1C\1B\1C\1", 7, false);
    tally_tree *tree = tally_tree_get(TALLY_TREE_SKIP_REPEATED);
    assert_int_equal(inclusive_of(tree, 3, (const char *[]){"A", "B", "C"}), 7);
    assert_null(tally_tree_find(tree, (const char *[]){"A", "B", "C", "B"}, 4));
    tally_tree_free(tree);
    compare_both();
    bill("A\1B\1A\1D\1", 1, true); /* A/B/D */
    bill("A\1B\1D\1", 2, false);   /* meets it */
    bill("A\1A\1A\1", 4, false);
    bill("", 8, false);
    compare_both();
}

static void paused_is_hidden(void **state) {
    (void)state;
    bill("seen\1", 5, false);
    tally_pause_thread_begin();
    tally_push("hidden");
    tly_account_made(world_block(1, 0), 500, NULL);
    tally_pop();
    tally_pause_thread_end();
    compare_both();
    tly_account_gone(world_block(1, 0));
    compare_both();
}

static void random_trees(void **state) {
    (void)state;
    static const char *const names[] = {"a",
                                        "aa",
                                        "b",
                                        "name",
                                        "name longer than eight",
                                        "name longer",
                                        "name longer than nine",
                                        "/",
                                        "\xc3\xa4",
                                        "\"quoted\"",
                                        "z\n",
                                        "\xff",
                                        "c"};
    uint64_t random = world_seed();
    for (int round = 0; round < 12; round++) {
        assert_int_equal(clear(NULL), 0);
        uint64_t variety = 2 + world_random(&random) % 12, deepest = 1 + world_random(&random) % 9;
        for (int i = 0; i < 300; i++) {
            char path[PATH_BYTES] = "";
            for (uint64_t depth = world_random(&random) % (deepest + 1); depth-- > 0;) {
                strcat(path, names[world_random(&random) % variety]);
                strcat(path, "\1");
            }
            bill(path, world_random(&random) % 10000, world_random(&random) % 3 == 0);
        }
        compare_both();
    }
}

static void very_deep(void **state) {
    (void)state;
    enum { LEVELS = 10000 };
    for (int i = 0; i < LEVELS; i++)
        tally_push(i % 2 ? "x" : "y");
    tly_account_made(world_block(2, 0), 3, NULL);
    for (int i = 0; i < LEVELS; i++)
        tally_pop();
    tally_tree *tree = tally_tree_get(0);
    const tally_node *node = tally_tree_root(tree);
    int depth = 0;
    struct tally_node_info info = {.struct_bytes = sizeof info};
    while (tally_node_first_child(node)) {
        node = tally_node_first_child(node);
        assert_int_equal(tally_node_get_info(node, &info), 0);
        assert_int_equal(info.bytes, 3);
        depth++;
    }
    assert_int_equal(depth, LEVELS);
    assert_int_equal(info.bytes_direct, 3);
    tally_tree_free(tree);
    tree = tally_tree_get(TALLY_TREE_SKIP_REPEATED);
    assert_int_equal(inclusive_of(tree, 2, (const char *[]){"y", "x"}), 3);
    assert_null(tally_tree_find(tree, (const char *[]){"y", "x", "y"}, 3));
    tally_tree_free(tree);
    tly_account_gone(world_block(2, 0));
}

/* Many nodes: whole figures only. And a tree does not change afterwards. */
static void wide(void **state) {
    (void)state;
    enum { NODES = 50000 };
    uint64_t sum = 0;
    for (uint64_t i = 0; i < NODES; i++) {
        char name[30];
        snprintf(name, sizeof name, "%llu", (unsigned long long)i);
        tally_push_copy(name);
        tly_account_made(world_block(3, i * 2), i % 100, NULL);
        sum += i % 100;
        tally_pop();
    }
    tally_tree *tree = tally_tree_get(0), *second = tally_tree_get(TALLY_TREE_SKIP_REPEATED);
    for (uint64_t i = 0; i < NODES; i++)
        tly_account_gone(world_block(3, i * 2));
    for (int t = 0; t < 2; t++) {
        const tally_node *root = tally_tree_root(t ? second : tree);
        struct tally_node_info info = {.struct_bytes = sizeof info};
        uint64_t count = 0, bytes = 0;
        char last[30] = "";
        for (const tally_node *child = tally_node_first_child(root); child; child = tally_node_next_sibling(child)) {
            assert_int_equal(tally_node_get_info(child, &info), 0);
            assert_true(strcmp(last, info.name) < 0);
            strcpy(last, info.name);
            assert_int_equal(info.bytes, strtoull(info.name, NULL, 10) % 100);
            bytes += info.bytes;
            count++;
        }
        assert_int_equal(count, NODES);
        assert_int_equal(bytes, sum);
        assert_int_equal(tally_node_get_info(root, &info), 0);
        assert_int_equal(info.bytes, sum);
    }
    tally_tree_free(tree);
    tally_tree_free(second);
}

static void wrong_use(void **state) {
    (void)state;
    tally_tree *tree = tally_tree_get(0);
    struct tally_node_info info = {.struct_bytes = 8};
    assert_int_equal(tally_node_get_info(tally_tree_root(tree), &info), -EINVAL);
    assert_int_equal(tally_node_get_info(NULL, &info), -EINVAL);
    assert_int_equal(tally_node_get_info(tally_tree_root(tree), NULL), -EINVAL);
    assert_null(tally_node_first_child(NULL));
    assert_null(tally_tree_find(NULL, NULL, 0));
    assert_int_equal(tally_tree_sites(NULL, NULL, 0), 0);
    tally_tree_free(tree);
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup(NAME, clear)
    const struct CMUnitTest tests[] = {
        TEST(nothing_billed), TEST(reference), TEST(repeated), TEST(paused_is_hidden),
        TEST(random_trees),   TEST(very_deep), TEST(wide),     TEST(wrong_use),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
