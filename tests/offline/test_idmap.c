/* test_idmap.c - keys and their ids, also when hashes collide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/hash.h"
#include "offline/idmap.h"

/* The key of id i is i * 3; the key that is looked for is the context. */
static bool same(const void *context, uint32_t id) { return *(const uint32_t *)context == id * 3; }

static void fill(uint64_t (*hash)(uint32_t key), uint32_t count) {
    struct tly_idmap map;
    assert_int_equal(tly_idmap_make(&map, count), 0);
    for (int round = 0; round < 2; round++) {
        for (uint32_t id = 0; id < count; id++) {
            uint32_t key = id * 3;
            /* in the second round the key is there already, and another id is offered in vain */
            assert_int_equal(tly_idmap_put(&map, hash(key), round == 0 ? id : count + 7, same, &key), id);
        }
    }
    tly_idmap_free(&map);
}

static uint64_t good_hash(uint32_t key) { return tly_hash_mix(key, 1); }
static uint64_t same_slot(uint32_t key) { return (uint64_t)key << 32; }
static uint64_t same_hash(uint32_t key) { return key * 0; }

static void test_many(void **state) {
    (void)state;
    fill(good_hash, 100000);
}

static void test_collisions(void **state) {
    (void)state;
    fill(same_slot, 1000);
    fill(same_hash, 1000);
}

static void test_sizes(void **state) {
    (void)state;
    struct tly_idmap map;
    fill(good_hash, 0);
    fill(good_hash, 1);
    fill(good_hash, 8);
    fill(good_hash, 9);
    assert_int_equal(tly_idmap_make(&map, UINT32_MAX), -ENOMEM);
    tly_idmap_free(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_collisions),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
