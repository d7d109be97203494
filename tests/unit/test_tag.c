/* test_tag.c - call sites and path nodes: each once, whatever the name and whoever asks first. */
#define _GNU_SOURCE
#include "core_world.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/blockmap.h"
#include "core/tag.h"
#include "region/writer.h"

static bool site_is(uint32_t id, enum tly_site_kind kind, const char *name, uint32_t bytes) {
    const struct tly_site *site = tly_writer_site(id);
    return site->kind == kind && site->name_bytes == bytes &&
           memcmp((char *)tly_writer_base(TLY_SEC_NAMES) + site->name_offset, name, bytes) == 0;
}

static void any_bytes(void **state) {
    (void)state;
    char name[TLY_NAME_MAX];
    static uint32_t by_length[TLY_NAME_MAX + 1];
    for (uint32_t i = 0; i < TLY_NAME_MAX; i++)
        name[i] = (char)(i % 255 + 1); /* everything but NUL */
    for (uint32_t bytes = 1; bytes <= TLY_NAME_MAX; bytes += bytes < 40 || bytes > 4080 ? 1 : 37) {
        by_length[bytes] = tly_site_of_name(TLY_SITE_TAG, name, bytes);
        assert_true(site_is(by_length[bytes], TLY_SITE_TAG, name, bytes));
    }
    for (uint32_t bytes = 1; bytes <= TLY_NAME_MAX; bytes += bytes < 40 || bytes > 4080 ? 1 : 37)
        assert_int_equal(tly_site_of_name(TLY_SITE_TAG, name, bytes), by_length[bytes]);
    /* names that differ in one byte, wherever it stands */
    for (uint32_t at = 0; at < TLY_NAME_MAX; at += 101) {
        char other[TLY_NAME_MAX];
        memcpy(other, name, sizeof other);
        other[at] = (char)(other[at] ^ 0x40);
        if (other[at] == 0) other[at] = 1;
        uint32_t id = tly_site_of_name(TLY_SITE_TAG, other, TLY_NAME_MAX);
        assert_int_not_equal(id, by_length[TLY_NAME_MAX]);
        assert_true(site_is(id, TLY_SITE_TAG, other, TLY_NAME_MAX));
    }
}

static void kinds_are_apart(void **state) {
    (void)state;
    uint32_t tag = tly_site_of_name(TLY_SITE_TAG, "main", 4), thread = tly_site_of_name(TLY_SITE_THREAD, "main", 4);
    uint32_t module = tly_site_of_code(TLY_SITE_MODULE, 0, 0), caller = tly_site_of_code(TLY_SITE_CALLER, 0, 0);
    uint32_t other_module = tly_site_of_code(TLY_SITE_CALLER, 1, 0), offset = tly_site_of_code(TLY_SITE_CALLER, 0, 16);
    const uint32_t all[] = {tag, thread, module, caller, other_module, offset};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(all[i], all[k]);
    assert_int_equal(tly_site_of_name(TLY_SITE_THREAD, "main", 4), thread);
    assert_int_equal(tly_site_of_code(TLY_SITE_CALLER, 0, 16), offset);
    assert_int_equal(tly_writer_site(offset)->value, 16);
    assert_int_equal(tly_writer_site(other_module)->module, 1);
}

static void nodes(void **state) {
    (void)state;
    uint32_t before = tly_node_count(), a = world_node(TLY_NODE_ROOT, "nodes A"), b = world_node(a, "nodes B");
    assert_int_equal(tly_node_count(), before + 2);
    assert_true(a >= TLY_NODE_FIRST && b > a);
    assert_int_equal(world_node(a, "nodes B"), b);
    assert_int_not_equal(world_node(TLY_NODE_ROOT, "nodes B"), b);
    assert_int_not_equal(world_node(b, "nodes B"), b);
    assert_int_equal(tly_node_count(), before + 4);
    assert_int_equal(tly_writer_node(b)->parent, a);
    assert_true(site_is(tly_writer_node(b)->site_plus_1 - 1, TLY_SITE_TAG, "nodes B", 7));
    assert_int_equal(tly_node_child(b, TLY_NONE), b); /* no site to be had: stays with the parent */
    assert_true(tly_node_index_load() > 0 && tly_node_index_load() < 1);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 6, NAMES = 4000 };
static uint32_t ids[THREADS][NAMES];
static pthread_barrier_t start;

static void *name_all(void *number) {
    size_t t = (size_t)number;
    pthread_barrier_wait(&start);
    uint32_t above = TLY_NODE_ROOT;
    for (int i = 0; i < NAMES; i++) {
        char name[40];
        int bytes = snprintf(name, sizeof name, "name %d", i / 2);
        uint32_t site = tly_site_of_name(TLY_SITE_TAG, name, (uint32_t)bytes);
        ids[t][i] = tly_node_child(i % 100 == 0 ? TLY_NODE_ROOT : above, site);
        above = ids[t][i];
    }
    return NULL;
}

static void each_once(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, name_all, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        assert_memory_equal(ids[i], ids[0], sizeof ids[0]);
    /* no two records that count are the same */
    uint32_t sites = tly_site_count(), named = 0;
    for (uint32_t i = 0; i < sites; i++) {
        const struct tly_site *site = tly_writer_site(i);
        named += site->kind == TLY_SITE_TAG && site->name_bytes > 5 &&
                 memcmp((char *)tly_writer_base(TLY_SEC_NAMES) + site->name_offset, "name ", 5) == 0;
    }
    assert_int_equal(named, NAMES / 2);
    uint32_t end = tly_node_count() + TLY_NODE_FIRST, below_others = 0;
    for (uint32_t i = TLY_NODE_FIRST; i < end; i++) {
        const struct tly_node *node = tly_writer_node(i);
        if (node->site_plus_1 == 0) continue;
        assert_true(node->parent < i);
        const struct tly_site *site = tly_writer_site(node->site_plus_1 - 1);
        below_others += site->kind == TLY_SITE_TAG && site->name_bytes > 5 &&
                        memcmp((char *)tly_writer_base(TLY_SEC_NAMES) + site->name_offset, "name ", 5) == 0;
    }
    assert_int_equal(below_others, NAMES);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void small_index_part(void) { /* slow, not lost */
    static uint32_t made[6000];
    tly_tags_init(16384);
    for (uint32_t i = 0; i < 6000; i++) {
        char name[40];
        snprintf(name, sizeof name, "over %u", i);
        made[i] = world_node(TLY_NODE_ROOT, name);
        CHECK(made[i] != TLY_NODE_ROOT);
    }
    CHECK(tly_region->index_overflow > 3000);
    uint32_t below[2] = {world_node(made[0], "one name"), world_node(made[1], "one name")};
    CHECK(below[0] != below[1]);
    CHECK(world_node(made[0], "one name") == below[0] && world_node(made[1], "one name") == below[1]);
    for (uint32_t i = 0; i < 6000; i++) {
        char name[40];
        snprintf(name, sizeof name, "over %u", i);
        CHECK(world_node(TLY_NODE_ROOT, name) == made[i]);
    }
}

static void no_more_nodes_part(void) { /* then blocks are billed to the parent, and it is said once */
    const struct rlimit limit = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    const struct tly_writer_sizes sizes = {1 << 20, 1 << 20};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return;
#endif
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(tly_writer_create(NULL, &sizes) == 0);
    tly_tags_init(1 << 20);
    uint64_t most = tly_region->section[TLY_SEC_NODES].capacity_bytes / sizeof(struct tly_node);
    CHECK(most < TLY_MAP_NODES);
    /* as if nearly all were taken */
    tly_region->section[TLY_SEC_NODES].used_bytes = (most - 10) * sizeof(struct tly_node);
    uint32_t parent = world_node(TLY_NODE_ROOT, "parent"), last = parent;
    CHECK(parent != TLY_NODE_ROOT);
    for (int i = 0; i < 9; i++) {
        uint32_t next = world_node(last, "deeper");
        CHECK(next > last && next < most);
        last = next;
    }
    CHECK(world_node(last, "one too many") == last);
    CHECK(world_node(parent, "one too many") == parent);
    CHECK(tly_region->index_overflow == 2);
    CHECK(world_node(TLY_NODE_ROOT, "parent") == parent);
}

static void small_index(void **state) {
    (void)state;
    world_in_child(small_index_part);
}
static void no_more_nodes(void **state) {
    (void)state;
    world_in_child(no_more_nodes_part);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bytes), cmocka_unit_test(kinds_are_apart), cmocka_unit_test(nodes),
        cmocka_unit_test(each_once), cmocka_unit_test(small_index),
    };
    /* before there is a region here: it needs a small one */
    const struct CMUnitTest first[] = {cmocka_unit_test(no_more_nodes)};
    if (cmocka_run_group_tests(first, NULL, NULL) != 0) return 1;
    return cmocka_run_group_tests(tests, world_setup, NULL);
}
