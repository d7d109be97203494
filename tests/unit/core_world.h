/*
 * core_world.h - the core of the target's side without its hooks: a region, threads that may bill, and blocks that are
 * addresses only (the account never touches a block).
 */
#ifndef CORE_WORLD_H
#define CORE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region/view.h"

/* The clean-up of cmocka's headers, in the order they want. */
#include <setjmp.h>
#include <stdarg.h>
/* cmocka comes last */
#include <cmocka.h>

/* Makes an anonymous region, attaches nothing, tracking on. Once per process. cmocka's group setup. */
int world_setup(void **state);

/* Sets enum tly_state and shows it to the hooks. */
void world_state(uint32_t state);

/* What the core asked of the runtime. */
extern _Atomic int world_polls, world_offs, world_forks;

/* The i-th block of a range of addresses where nothing is mapped: `range` 0..63, 16 bytes apart, far from the heap. */
void *world_block(unsigned range, uint64_t i);

/* The node of tags below `parent`. */
uint32_t world_node(uint32_t parent, const char *name);

struct tly_balance world_balance(uint32_t node);
/* Live bytes of all nodes but the paused one, from the cells. */
int64_t world_live_bytes(void);
/* Fails the test if a balance is negative, or the sum over the nodes is not the running total. */
void world_check(void);

/* xorshift; the state must not be 0. */
uint64_t world_random(uint64_t *state);
/* TALLY_TEST_SEED, else from the clock; printed. */
uint64_t world_seed(void);

/* Runs `part` in a forked child, where assertions are CHECKs; its exit status is 0 or the test fails. */
void world_in_child(void (*part)(void));
#define CHECK(CONDITION)                                                                                               \
    do {                                                                                                               \
        if (!(CONDITION)) world_check_failed(#CONDITION, __FILE__, __LINE__);                                          \
    } while (0)
_Noreturn void world_check_failed(const char *condition, const char *file, int line);

#endif
