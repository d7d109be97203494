/* core_world.c - see core_world.h. */
#define _GNU_SOURCE
#include "core_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "core/account.h"
#include "core/gate.h"
#include "core/hooks_of_runtime.h"
#include "core/tag.h"
#include "region/writer.h"

_Atomic int world_polls, world_offs, world_forks;

/* The runtime's own, when it is linked. */
__attribute__((weak)) struct tly_hooks_of_runtime tly_hooks_of_runtime;

static void poll_hook(void) { world_polls++; }
static void off_hook(void) {
    world_offs++;
    tly_self.off_radar = 0; /* as the real one does */
}
static void forked_hook(void) { world_forks++; }

void world_state(uint32_t state) {
    atomic_store(&tly_gate_state.state, state);
    tly_gate_renew();
}

int world_setup(void **state) {
    (void)state;
    const struct tly_writer_sizes sizes = {(uint64_t)256 << 20, (uint64_t)16 << 20};
    tly_map_init();
    tly_hooks_of_runtime = (struct tly_hooks_of_runtime){poll_hook, off_hook, forked_hook};
    tly_gate_init();
    if (tly_gate_page.free != TLY_GENERATION_OFF) return -1;
    if (tly_writer_create(NULL, &sizes) != 0 || tly_threads_init() != 0) return -1;
    tly_region->flush_bytes = TLY_FLUSH_BYTES;
    tly_threads_set_pool(sizes.ledger_pool_bytes);
    tly_tags_init(sizes.node_index_bytes);
    memcpy(tly_region->magic, TLY_REGION_MAGIC, sizeof tly_region->magic);
    atomic_store(&tly_gate_state.ready, true);
    atomic_store(&tly_region->state, TLY_STATE_ON);
    world_state(TLY_STATE_ON);
    return 0;
}

void *world_block(unsigned range, uint64_t i) {
    return (void *)((uintptr_t)0x200000000000 + ((uintptr_t)range << 36) + i * 16);
}

uint32_t world_node(uint32_t parent, const char *name) {
    return tly_node_child(parent, tly_site_of_name(TLY_SITE_TAG, name, (uint32_t)strlen(name)));
}

static struct tly_balance *all_balances(uint32_t *count) {
    struct tly_view view = {tly_region, tly_region->region_bytes, NULL};
    *count = tly_view_count(&view, TLY_SEC_NODES);
    struct tly_balance *balances = calloc(*count, sizeof *balances);
    assert_non_null(balances);
    assert_int_equal(tly_view_balances(&view, balances, *count), 0);
    return balances;
}

struct tly_balance world_balance(uint32_t node) {
    uint32_t count;
    struct tly_balance *balances = all_balances(&count), result;
    assert_true(node < count);
    result = balances[node];
    free(balances);
    return result;
}

int64_t world_live_bytes(void) {
    uint32_t count;
    struct tly_balance *balances = all_balances(&count);
    int64_t live = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(balances[i].alloc_bytes >= balances[i].free_bytes);
        assert_true(balances[i].alloc_blocks >= balances[i].free_blocks);
        if (balances[i].alloc_blocks == balances[i].free_blocks)
            assert_true(balances[i].alloc_bytes == balances[i].free_bytes);
        if (i != TLY_NODE_PAUSED) live += (int64_t)(balances[i].alloc_bytes - balances[i].free_bytes);
    }
    free(balances);
    return live;
}

void world_check(void) {
    struct tly_view view = {tly_region, tly_region->region_bytes, NULL};
    assert_int_equal(world_live_bytes(), tly_view_live_bytes(&view));
}

uint64_t world_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

uint64_t world_seed(void) {
    const char *given = getenv("TALLY_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
    if (seed == 0) seed = 1;
    printf("TALLY_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

_Noreturn void world_check_failed(const char *condition, const char *file, int line) {
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    fflush(stderr);
    _exit(1);
}

void world_in_child(void (*part)(void)) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        part();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
