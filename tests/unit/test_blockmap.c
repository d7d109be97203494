/* test_blockmap.c - the block map: every encoding there and back, at the edges of pages and pieces. */
#define _GNU_SOURCE
#include "core_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/blockmap.h"

#define PIECE ((uintptr_t)1 << TLY_MAP_PIECE_BITS)
#define PAGE_OF_ADDRESSES ((uintptr_t)1024 * 16) /* whose entries fill one page */

static const uint64_t sizes[] = {0,
                                 1,
                                 8,
                                 15,
                                 16,
                                 17,
                                 24,
                                 30,
                                 31,
                                 32,
                                 33,
                                 47,
                                 48,
                                 4093,
                                 4094,
                                 4095,
                                 4096,
                                 65536,
                                 0x1fffffff,
                                 0x20000000,
                                 0x20000001,
                                 1ul << 32,
                                 (1ul << 32) + 1,
                                 (1ul << 40) - 1,
                                 1ul << 40,
                                 (1ul << 46) + 12345};
static const uint32_t nodes[] = {0, 1, 2, 63, 64, TLY_NARROW_NODES - 1, TLY_NARROW_NODES, TLY_MAP_NODES - 1};
enum { SIZES = sizeof sizes / sizeof *sizes, NODES = sizeof nodes / sizeof *nodes };

static void write_block(uintptr_t address, uint64_t size, uint32_t node) {
    uint32_t *entry = tly_map_entry_for(address);
    assert_non_null(entry);
    assert_int_equal(*entry, 0);
    assert_true(tly_map_write(entry, size, node));
    assert_int_not_equal(*entry, 0);
}

static void expect_block(uintptr_t address, uint64_t size, uint32_t node) {
    uint64_t got_size = 999;
    uint32_t got_node = 999;
    assert_true(tly_map_take(tly_map_entry_for(address), &got_size, &got_node));
    assert_int_equal(got_size, size);
    assert_int_equal(got_node, node);
    assert_int_equal(*tly_map_entry_for(address), 0);
    assert_false(tly_map_take(tly_map_entry_for(address), &got_size, &got_node));
}

/* A block with a neighbour right before and right after it, as an allocator may place them. */
static void round_trip_at(uintptr_t address) {
    for (int s = 0; s < SIZES; s++) {
        /* the least an allocator gives: to the next 8 bytes, and never less than 8 */
        uint64_t room = sizes[s] < 8 ? 8 : (sizes[s] + 7) / 8 * 8;
        bool after = room < 100000;
        for (int n = 0; n < NODES; n++) {
            write_block(address - 8, 8, 3);
            if (after) write_block(address + room, 5, 4);
            write_block(address, sizes[s], nodes[n]);
            expect_block(address - 8, 8, 3);
            expect_block(address, sizes[s], nodes[n]);
            if (after) expect_block(address + room, 5, 4);
            for (int i = 1; i <= 2; i++)
                assert_int_equal(tly_map_entry_for(address)[i], 0);
        }
    }
}

static void encodings(void **state) {
    (void)state;
    const uintptr_t base = 0x100000000000;
    const uintptr_t places[] = {
        base + 4096,                   /* anywhere */
        base + PAGE_OF_ADDRESSES - 16, /* last entry of a page */
        base + PAGE_OF_ADDRESSES - 32,
        base + PIECE - 16, /* last granule of a 64 MiB piece */
        base + PIECE - 32,
        base + 3 * PIECE,                                      /* the first */
        ((uintptr_t)1 << TLY_MAP_ADDRESS_BITS) - PIECE + 4096, /* the highest piece of user space */
        4096,                                                  /* the lowest */
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        round_trip_at(places[i]);
        round_trip_at(places[i] + 8); /* 8-aligned only */
    }
}

static void too_large_a_node(void **state) {
    (void)state;
    uint32_t *entry = tly_map_entry_for(0x110000000000);
    for (int s = 0; s < SIZES; s++)
        assert_false(tly_map_write(entry, sizes[s], TLY_MAP_NODES));
    assert_int_equal(entry[0] | entry[1] | entry[2], 0);
}

/* Two 8-byte blocks in 16 bytes of address space do not know of each other. */
static void halves_of_a_granule(void **state) {
    (void)state;
    const uintptr_t a = 0x120000000000;
    write_block(a, 8, 7);
    write_block(a + 8, 8, TLY_NARROW_NODES + 9);
    expect_block(a, 8, 7);
    expect_block(a + 8, 8, TLY_NARROW_NODES + 9);
}

static uint32_t *first_of_piece;
static uint32_t *owner(uint32_t *entry) { return tly_map_owner(entry, (size_t)(entry - first_of_piece)); }

static void inside_a_block_at(uintptr_t base, uintptr_t offset) {
    uint64_t size;
    uint32_t node;
    uint32_t *entry = tly_map_entry_for(base + offset);
    first_of_piece = tly_map_entry_for(base);
    /* KIND_NEXT has one continuation, KIND_HUGE two; none of them is a block, all lead to their owner */
    const uint64_t wide[] = {5000, 1ul << 33};
    for (int kind = 0; kind < 2; kind++) {
        assert_true(tly_map_write(entry, wide[kind], 77));
        assert_ptr_equal(owner(entry), entry);
        for (int i = 1; i <= 1 + kind; i++) {
            assert_false(tly_map_take(entry + i, &size, &node));
            assert_ptr_equal(owner(entry + i), entry);
        }
        assert_true(tly_map_take(owner(entry + 1 + kind), &size, &node));
        assert_int_equal(size, wide[kind]);
        assert_int_equal(node, 77);
        assert_int_equal(entry[0] | entry[1] | entry[2], 0);
    }
    /* a block that is not wide is its own owner */
    assert_true(tly_map_write(entry, 10, 5));
    assert_ptr_equal(owner(entry), entry);
    assert_true(tly_map_take(entry, &size, &node));
    assert_true(tly_map_write(entry, 10, TLY_NARROW_NODES)); /* tiny */
    assert_ptr_equal(owner(entry), entry);
    assert_true(tly_map_take(entry, &size, &node));
}

static void inside_a_block(void **state) {
    (void)state;
    inside_a_block_at(0x130000000000, 0);
    inside_a_block_at(0x130000000000, 160);
    for (uintptr_t before = 16; before <= 48;
         before += 16) /* continuations in the next page of entries, after the last */
        for (int last = 0; last < 2; last++)
            inside_a_block_at(0x130000000000, (last ? PIECE : PAGE_OF_ADDRESSES) - before);
    /* the first entry of a piece continues nothing: nobody must look before it */
    uint32_t *first = tly_map_entry_for(0x130000000000);
    *first = 0xe0000005u;
    assert_null(tly_map_owner(first, 0));
    first[1] = 0xe0000005u;
    assert_null(tly_map_owner(first + 1, 1));
    first[0] = first[1] = 0;
}

/* A later block lies over the continuation: the entry is worthless, and says nothing about the later block. */
static void broken_continuation(void **state) {
    (void)state;
    uint64_t size = 1;
    uint32_t node = 2;
    uint32_t *entry = tly_map_entry_for(0x130000000000 + 1600);
    for (int kind = 0; kind < 2; kind++)
        for (int over = 1; over <= 1 + kind; over++) {
            assert_true(tly_map_write(entry, kind ? 1ul << 33 : 5000, 77));
            entry[over] = 0;
            assert_true(tly_map_write(entry + over, 40, 9));
            assert_false(tly_map_take(entry, &size, &node));
            assert_int_equal(*entry, 0);
            assert_true(tly_map_take(entry + over, &size, &node));
            assert_int_equal(size, 40);
            assert_int_equal(node, 9);
            entry[1] = entry[2] = 0;
        }
}

static void continuations(void **state) {
    (void)state;
    for (int s = 0; s < SIZES; s++)
        for (int n = 0; n < NODES; n++) {
            uint32_t *entry = tly_map_entry_for(0x130000000000 + 3200);
            assert_true(nodes[n] == 1 ? tly_map_write_wide(entry, sizes[s], nodes[n])
                                      : tly_map_write(entry, sizes[s], nodes[n]));
            uint32_t used = 0;
            while (used < 2 && entry[used + 1] != 0)
                used++;
            assert_int_equal(tly_map_continuations(sizes[s], nodes[n]), used);
            entry[0] = entry[1] = entry[2] = 0;
        }
}

struct sums {
    uint64_t blocks, bytes, by_node;
};
static void add(void *context, uint64_t size, uint32_t node) {
    struct sums *sums = context;
    sums->blocks++;
    sums->bytes += size;
    sums->by_node += (uint64_t)node * 2654435761u ^ size;
}

/* Random blocks of every kind over several pieces; the same again in a forked child, where they are inherited pages. */
static struct sums expected;
static void walk_all(void) {
    struct sums sums = {0, 0, 0};
    tly_map_walk(add, &sums);
    CHECK(sums.blocks == expected.blocks);
    CHECK(sums.bytes == expected.bytes);
    CHECK(sums.by_node == expected.by_node);
}

static void walk_and_wipe(void **state) {
    (void)state;
    uint64_t random = world_seed();
    tly_map_wipe();
    memset(&expected, 0, sizeof expected);
    walk_all();
    uintptr_t at = 0x140000000000;
    for (int i = 0; i < 100000; i++) {
        uint64_t size = world_random(&random) % (i % 10 ? 200 : 20000);
        uint32_t node = (uint32_t)(world_random(&random) % (i % 3 ? 1000 : TLY_MAP_NODES));
        write_block(at, size, node);
        add(&expected, size, node);
        at += size < 8 ? 8 : (size + 7) / 8 * 8;
        if (i % 1000 == 0) at += world_random(&random) % (8 * PIECE) / 8 * 8;
    }
    for (int last = 0; last < 2;
         last++) { /* a wide one whose continuations are in the next page, and after the piece */
        uintptr_t edge = 0x150000000000 + (last ? PIECE : PAGE_OF_ADDRESSES) - 16;
        write_block(edge, 1ul << 31, 5);
        add(&expected, 1ul << 31, 5);
    }
    walk_all();
    world_in_child(walk_all);
    uint64_t pages, pieces;
    tly_map_usage(&pages, &pieces);
    assert_true(pieces >= 2);
    assert_true(pages >= 100000 * 50 / 16 / 1024 && pages <= pieces * (TLY_MAP_PIECE_BYTES / 4096));
    tly_map_wipe();
    memset(&expected, 0, sizeof expected);
    walk_all();
    uint64_t pages_after;
    tly_map_usage(&pages_after, &pieces);
    assert_true(pages_after < pages / 2);
}

/* ---- many threads at once ---------------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 200 };
static pthread_barrier_t start;
static uint32_t *seen[THREADS][ROUNDS];
static uintptr_t race_base;

static void *touch(void *number) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&start);
        seen[(size_t)number][round] = tly_map_entry_new(race_base + (uintptr_t)round * PIECE + 16 * (size_t)number);
    }
    return NULL;
}

static void one_piece_for_all_threads(void **state) {
    (void)state;
    uint64_t pages, before, after;
    race_base = 0x160000000000;
    tly_map_usage(&pages, &before);
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, touch, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    tly_map_usage(&pages, &after);
    assert_int_equal(after - before, ROUNDS);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < THREADS; i++)
            assert_ptr_equal(seen[i][round], seen[0][round] + i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodings),           cmocka_unit_test(too_large_a_node),
        cmocka_unit_test(halves_of_a_granule), cmocka_unit_test(inside_a_block),
        cmocka_unit_test(broken_continuation), cmocka_unit_test(continuations),
        cmocka_unit_test(walk_and_wipe),       cmocka_unit_test(one_piece_for_all_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
