/* test_interrupted.c - signal handlers that push tags and allocate, at any instruction of a thread that does the same. */
#define _GNU_SOURCE
#include "core_world.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "core/account.h"
#include "core/tag.h"
#include "core/tagstack.h"
#include "region/writer.h"

enum { NAMES = 8, BLOCKS = 64 };
static const char *names[NAMES];
static uint32_t nodes[NAMES]; /* of each name below the root */
static volatile unsigned handled, wrong;

/* Literals whose places in the thread's cache are all in one set, so that they put one another out. */
static void choose_names(void) {
    static char pool[1 << 20];
    struct tly_path_set *set = NULL;
    int count = 0;
    for (size_t i = 0; i + 16 < sizeof pool && count < NAMES; i += 16) {
        struct tly_path_set *at = tly_path_set_of(&tly_self, TLY_NODE_ROOT, (uintptr_t)&pool[i]);
        if (!set) set = at;
        if (at != set) continue;
        snprintf(&pool[i], 16, "name %d", count);
        names[count] = &pool[i];
        nodes[count] = world_node(TLY_NODE_ROOT, names[count]);
        count++;
    }
    assert_int_equal(count, NAMES);
}

/* Blocks of the program's in range 0, of the handler's in range 1. */
struct side {
    uint64_t sizes[BLOCKS]; /* + 1; 0: none */
    int owner[BLOCKS];
    struct tly_balance model[NAMES];
    uint64_t random;
};
static struct side program, in_handler;

static void work(struct side *side, unsigned range) {
    uint64_t r = world_random(&side->random);
    unsigned name = r & (NAMES - 1), i = r >> 8 & (BLOCKS - 1);
    uint64_t size = (r >> 60) == 0 ? r >> 20 & 0xfffff : r >> 20 & 0x3ff;
    void *block = world_block(range, i * 4);
    char copy[40];
    strcpy(copy, names[name]);
    uint32_t scope = r >> 50 & 1 ? tly_tag_push(names[name]) : tly_tag_push_copy(copy);
    if (tly_self.depth != scope) wrong++;
    /* the handler may come when the thread is below a tag of the program's */
    if (scope == 1 && tly_self.tag_node != nodes[name]) wrong++;
    bool billed_here = scope == 1 && r >> 52 & 1;
    if (billed_here && side->sizes[i] == 0) {
        tly_account_made(block, size, NULL);
        side->sizes[i] = size + 1;
        side->owner[i] = (int)name;
        side->model[name].alloc_bytes += size;
        side->model[name].alloc_blocks++;
    } else if (side->sizes[i]) {
        if (r >> 53 & 1) {
            tly_account_gone(block);
        } else { /* moved: closed, and another one that goes at once */
            struct tly_taken taken;
            if (!tly_fast_take(block, &taken)) taken = tly_account_realloc_begin(block);
            if (!taken.found || taken.size != side->sizes[i] - 1) wrong++;
            if (!tly_fast_close(&taken)) tly_account_realloc_end(taken, block, NULL, 0, NULL);
        }
        side->model[side->owner[i]].free_bytes += side->sizes[i] - 1;
        side->model[side->owner[i]].free_blocks++;
        side->sizes[i] = 0;
    }
    if (scope) tly_tag_pop_to(scope - 1);
}

static void handler(int signal) {
    (void)signal;
    int saved = errno;
    handled++;
    uint32_t above = tly_self.tag_node, depth = tly_self.depth;
    for (int i = 0; i < 3; i++)
        work(&in_handler, 1);
    if (tly_self.depth != depth || tly_self.tag_node != above) wrong++;
    errno = saved;
}

static void at_any_instruction(void **state) {
    (void)state;
    program.random = world_seed();
    in_handler.random = program.random * 3 | 1;
    assert_true(tly_thread_ready(&tly_self));
    choose_names();
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
    const struct itimerval every = {{0, 37}, {0, 37}}, never = {{0, 0}, {0, 0}};
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
    for (long i = 0; i < 4000000 || (handled < 2000 && i < 400000000); i++) {
        work(&program, 0);
        if (i % 65536 == 0) tly_gate_renew(); /* everything cached is void; handlers come while it is wiped */
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    sigaction(SIGALRM, &old, NULL);
    assert_true(handled >= 2000);
    assert_int_equal(wrong, 0);
    assert_int_equal(tly_self.depth, 0);
    world_check();
    for (int i = 0; i < NAMES; i++) {
        struct tly_balance sum = program.model[i], got = world_balance(nodes[i]);
        sum.alloc_bytes += in_handler.model[i].alloc_bytes;
        sum.alloc_blocks += in_handler.model[i].alloc_blocks;
        sum.free_bytes += in_handler.model[i].free_bytes;
        sum.free_blocks += in_handler.model[i].free_blocks;
        assert_memory_equal(&got, &sum, sizeof got);
    }
    assert_int_equal(tly_self.ledger->unmatched_frees | tly_self.ledger->missed_frees, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_any_instruction)};
    return cmocka_run_group_tests(tests, world_setup, NULL);
}
