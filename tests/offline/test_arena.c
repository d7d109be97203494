/* test_arena.c - pieces of all sizes: aligned, zeroed, apart from one another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "offline/arena.h"

static void test_pieces(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 16, 17, 100, 16384, 16385, 65536, 200000, 0, 3};
    enum { ROUNDS = 50, KINDS = sizeof sizes / sizeof *sizes };
    struct tly_arena *arena = tly_arena_new();
    unsigned char *pieces[ROUNDS][KINDS];
    assert_non_null(arena);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < KINDS; i++) {
            unsigned char *piece = pieces[round][i] = tly_arena_take(arena, sizes[i]);
            assert_non_null(piece);
            assert_int_equal((uintptr_t)piece % 16, 0);
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(piece[k], 0);
            memset(piece, round * KINDS + i, sizes[i]);
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < KINDS; i++) {
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(pieces[round][i][k], (round * KINDS + i) & 0xff);
        }
    }
    assert_null(tly_arena_take(arena, SIZE_MAX));
    assert_null(tly_arena_take(arena, SIZE_MAX - 15));
    tly_arena_free(arena);
    tly_arena_free(NULL);
}

static void test_copy(void **state) {
    (void)state;
    struct tly_arena *arena = tly_arena_new();
    assert_non_null(arena);
    char *copy = tly_arena_copy(arena, "a\0bc", 4);
    assert_memory_equal(copy, "a\0bc", 5);
    assert_string_equal(tly_arena_copy(arena, NULL, 0), "");
    tly_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
