/* test_index.c - the lock-free index: one id per key, whoever asks, however full it is. */
#define _GNU_SOURCE
#include "core_world.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "region/index.h"
#include "region/writer.h"

/* Keys are numbers, kept in `value` of a site. */
static bool same(uint32_t id, const void *key) {
    const struct tly_site *site = tly_writer_site(id);
    return atomic_load_explicit(&site->kind, memory_order_acquire) == TLY_SITE_TAG &&
           site->value == *(const uint64_t *)key;
}
static _Atomic bool no_room;
static uint32_t make(const void *key, uint64_t hash) {
    if (no_room) return UINT32_MAX;
    if (*(const uint64_t *)key % 64 == 0) sched_yield(); /* lets others come between the look and the insertion */
    uint64_t offset = tly_writer_append(TLY_SEC_SITES, sizeof(struct tly_site));
    assert_true(offset != UINT64_MAX);
    uint32_t id = (uint32_t)(offset / sizeof(struct tly_site));
    tly_writer_site(id)->value = *(const uint64_t *)key;
    tly_writer_site(id)->hash = (uint32_t)hash;
    atomic_store_explicit(&tly_writer_site(id)->kind, TLY_SITE_TAG, memory_order_release);
    return id;
}
static _Atomic uint32_t dropped;
static void drop(uint32_t id) {
    atomic_store_explicit(&tly_writer_site(id)->kind, TLY_SITE_NONE, memory_order_release);
    dropped++;
}
static struct tly_index table = {TLY_SEC_SITEIDX, 0, same, make, drop};

static void fresh(uint64_t largest_level_bytes) {
    const struct tly_writer_sizes sizes = {1 << 20, 1 << 20};
    assert_int_equal(tly_writer_create(NULL, &sizes), 0);
    tly_writer_forget_parent();
    table.largest_level_bytes = largest_level_bytes;
    dropped = 0;
    no_room = false;
}

static uint64_t spread(uint64_t key) { return tly_hash_mix(key, 17); }
static uint64_t clashing(uint64_t key) { return (key & 1) << 40 | 5; }

static uint32_t get(uint64_t key, uint64_t hash, bool *overflow) { return tly_index_get(&table, &key, hash, overflow); }

static uint32_t live_records(void) {
    uint32_t live = 0;
    for (uint32_t i = 0; i < tly_region->section[TLY_SEC_SITES].used_bytes / sizeof(struct tly_site); i++)
        live += tly_writer_site(i)->kind != TLY_SITE_NONE;
    return live;
}

/* Makes `count` keys and finds them again; how many were outside the index. */
static uint32_t fill(uint32_t count, uint64_t (*hash)(uint64_t)) {
    uint32_t *ids = malloc(count * sizeof *ids), outside = 0;
    assert_non_null(ids);
    bool overflow;
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = get(i * 3 + 1, hash(i * 3 + 1), &overflow);
        assert_int_equal(tly_writer_site(ids[i])->value, i * 3 + 1);
        outside += overflow;
    }
    assert_int_equal(live_records(), count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(get(i * 3 + 1, hash(i * 3 + 1), &overflow), ids[i]);
    assert_int_equal(live_records(), count);
    assert_int_equal(dropped, 0);
    uint64_t filled, slots;
    tly_index_load(&table, &filled, &slots);
    assert_int_equal(filled, count - outside);
    assert_true(filled <= slots);
    free(ids);
    return outside;
}

static void one_level_is_enough(void **state) {
    (void)state;
    fresh(16384); /* 2048 slots in lines of 16 */
    assert_int_equal(fill(500, spread), 0);
}

static void levels_follow(void **state) {
    (void)state;
    fresh((uint64_t)64 << 20);
    assert_int_equal(fill(100000, spread), 0);
    uint64_t filled, slots;
    tly_index_load(&table, &filled, &slots);
    assert_true(slots > 16384 / 8);
}

static void full(void **state) {
    (void)state;
    fresh(16384);
    uint32_t outside = fill(3000, spread);
    assert_true(outside >= 3000 - 2048 && outside < 3000);
    /* the last level has the size that was asked for: 16384 + 40000 bytes */
    fresh(40000 / 128 * 128);
    outside = fill(8000, spread);
    assert_true(outside >= 8000 - (16384 + 40000 / 128 * 128) / 8 && outside < 3000);
}

static void equal_hashes(void **state) {
    (void)state;
    fresh(16384);
    assert_int_equal(fill(100, clashing), 100 - 16); /* one line for all of them; half have another mark */
}

static void no_memory_for_a_record(void **state) {
    (void)state;
    fresh(16384);
    bool overflow;
    uint32_t id = get(1, spread(1), &overflow);
    no_room = true;
    assert_int_equal(get(2, spread(2), &overflow), UINT32_MAX);
    assert_int_equal(get(1, spread(1), &overflow), id);
    no_room = false;
    assert_int_not_equal(get(2, spread(2), &overflow), UINT32_MAX);
}

/* ---- many threads ------------------------------------------------------------------------------------------------ */

enum { THREADS = 6, KEYS = 20000 };
static pthread_barrier_t start;
static uint32_t ids[THREADS][KEYS];
static _Atomic bool done;
static _Atomic uint32_t finished;

static void *insert_all(void *number) {
    pthread_barrier_wait(&start);
    bool overflow;
    /* the same order, so that they meet at every key; half of them backwards */
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t key = (size_t)number % 2 ? KEYS - 1 - i : i;
        ids[(size_t)number][key] = get(key, spread(key), &overflow);
        assert_false(overflow);
        finished++;
    }
    return NULL;
}

static void *read_all(void *unused) {
    uint64_t looked = 0, random = 88172645463325252u;
    pthread_barrier_wait(&start);
    while (!atomic_load(&done)) {
        uint64_t key = world_random(&random) % KEYS;
        bool overflow;
        uint32_t id = get(key, spread(key), &overflow);
        if (id == UINT32_MAX || tly_writer_site(id)->value != key) abort();
        looked++;
    }
    (void)looked;
    return unused;
}

static void one_id_per_key(void **state) {
    (void)state;
    uint32_t met = 0;
    for (int round = 0; round < 3; round++) {
        fresh((uint64_t)64 << 20);
        done = false;
        pthread_t threads[THREADS], reader;
        pthread_barrier_init(&start, NULL, THREADS + 1);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, insert_all, (void *)i), 0);
        assert_int_equal(pthread_create(&reader, NULL, read_all, NULL), 0);
        for (size_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        done = true;
        pthread_join(reader, NULL);
        assert_int_equal(live_records(), KEYS);
        met += dropped;
        for (int i = 1; i < THREADS; i++)
            assert_memory_equal(ids[i], ids[0], sizeof ids[0]);
    }
    assert_true(met > 0); /* they did insert the same key at the same time */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_level_is_enough),
        cmocka_unit_test(levels_follow),
        cmocka_unit_test(full),
        cmocka_unit_test(equal_hashes),
        cmocka_unit_test(no_memory_for_a_record),
        cmocka_unit_test(one_id_per_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
