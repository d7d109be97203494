/* test_peak.c - the high-water mark is right to within threads * TLY_FLUSH_BYTES, whatever the schedule. Threads take
 * turns, so that the true peak is known. */
#define _GNU_SOURCE
#include "core_world.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/account.h"
#include "core/gate.h"
#include "region/writer.h"

enum { THREADS = 8, BLOCKS = 400 };

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int turn = -1; /* thread whose step it is; -1: nobody's; -2: end */
static void (*step)(unsigned thread, uint64_t random);
static uint64_t random_state;

static int64_t live, true_peak, worst;
static uint64_t size_of[THREADS][BLOCKS];

static void made(unsigned thread, unsigned i, uint64_t size) {
    size_of[thread][i] = size + 1;
    live += (int64_t)size;
    if (live > true_peak) true_peak = live;
    tly_account_made(world_block(thread, i * 4), size, NULL);
}
static void gone(unsigned owner, unsigned i) {
    live -= (int64_t)size_of[owner][i] - 1;
    size_of[owner][i] = 0;
    tly_account_gone(world_block(owner, i * 4));
}

static void check_bound(void) {
    int64_t error = true_peak - tly_region->peak_bytes;
    if (error < 0) error = -error;
    if (error > worst) worst = error;
    int64_t bound = (int64_t)tly_region->peak_threads * TLY_FLUSH_BYTES;
    assert_true(error <= bound);
    assert_true(llabs(live - tly_region->total_bytes) <= bound);
}

static void *serve(void *number) {
    pthread_mutex_lock(&turn_lock);
    for (;;) {
        while (turn != (int)(size_t)number && turn != -2)
            pthread_cond_wait(&turn_changed, &turn_lock);
        if (turn == -2) break;
        step((unsigned)(size_t)number, world_random(&random_state));
        turn = -1;
        pthread_cond_broadcast(&turn_changed);
    }
    pthread_mutex_unlock(&turn_lock);
    return NULL;
}

static void take_turn(unsigned thread) {
    pthread_mutex_lock(&turn_lock);
    turn = (int)thread;
    pthread_cond_broadcast(&turn_changed);
    while (turn != -1)
        pthread_cond_wait(&turn_changed, &turn_lock);
    pthread_mutex_unlock(&turn_lock);
    check_bound();
}

static void random_step(unsigned thread, uint64_t random) {
    for (int k = 0; k < 20; k++) {
        unsigned owner = random >> 50 & 1 ? thread : (unsigned)(random >> 40) % THREADS,
                 i = (unsigned)(random % BLOCKS);
        uint64_t size = random >> 20 & 0x3ff;
        if ((random >> 32 & 63) == 0) size *= 100;
        if (size_of[owner][i])
            gone(owner, i);
        else if (owner == thread)
            made(thread, i, size);
        random = random * 6364136223846793005u + 1442695040888963407u;
    }
}

/* Each thread stays just below its quota: nothing is passed on, the error is all that may be. */
static void fill_step(unsigned thread, uint64_t random) {
    (void)random;
    for (unsigned i = 0; i < 4; i++)
        made(thread, i, TLY_FLUSH_BYTES / 4);
}
/* Half as much again: what was over the quota has been passed on. */
static void overfill_step(unsigned thread, uint64_t random) {
    (void)random;
    for (unsigned i = 0; i < 14; i++)
        made(thread, i, TLY_FLUSH_BYTES / 8);
}
static void drain_step(unsigned thread, uint64_t random) {
    (void)random;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (size_of[thread][i]) gone(thread, i);
    tly_account_event(NULL); /* passes on: with quotas that are whole again */
}

static void run(int turns) {
    for (int i = 0; i < turns; i++)
        take_turn(turns == THREADS ? (unsigned)i : (unsigned)(world_random(&random_state) % THREADS));
}

static void bound(void **state) {
    (void)state;
    random_state = world_seed();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, serve, (void *)i), 0);
    step = drain_step;
    run(THREADS);
    step = fill_step;
    run(THREADS);
    assert_int_equal(worst, THREADS * TLY_FLUSH_BYTES); /* the stated error is reached, and not passed */
    step = drain_step;
    run(THREADS);
    step = overfill_step;
    run(THREADS);
    step = drain_step;
    run(THREADS);
    step = random_step;
    run(8000);
    assert_int_equal(tly_region->peak_threads, THREADS);
    assert_true(true_peak > 4 * THREADS * TLY_FLUSH_BYTES);
    pthread_mutex_lock(&turn_lock);
    turn = -2;
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&turn_lock);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    world_check();
    struct tly_view view = {tly_region, tly_region->region_bytes, NULL};
    assert_int_equal(tly_view_live_bytes(&view), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bound)};
    return cmocka_run_group_tests(tests, world_setup, NULL);
}
