/* gate.c - see gate.h. */
#include "core/gate.h"

#include <sys/mman.h>

#include "region/region.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct tly_gate tly_gate_page __attribute__((aligned(TLY_PAGE))) = {0};
struct tly_gate_state tly_gate_state;

void tly_gate_init(void) {
    madvise(&tly_gate_page, sizeof tly_gate_page, MADV_WIPEONFORK);
    atomic_store(&tly_gate_state.generation, TLY_GENERATION_FIRST);
    tly_gate_open();
}

static uint32_t next_generation(void) {
    uint32_t generation;
    do
        generation = atomic_fetch_add(&tly_gate_state.generation, 1) + 1;
    while (generation < TLY_GENERATION_FIRST); /* once around */
    return generation;
}

/* The page is read before the state and replaced only if nobody else replaced it meanwhile, so what stands there in the
 * end was made from the last state. */
static void show_state(bool open) {
    uint64_t before = atomic_load(&tly_gate_page.both), word;
    do {
        if (before == 0 && !open) return;
        uint64_t generation = next_generation(), off = TLY_GENERATION_OFF;
        uint32_t state = atomic_load(&tly_gate_state.state);
        bool closed = atomic_load(&tly_gate_state.clearing) || !atomic_load(&tly_gate_state.ready);
        uint64_t for_alloc = state == TLY_STATE_ON && !closed ? generation : off;
        uint64_t for_free = state != TLY_STATE_OFF && !closed ? generation : off;
        word = for_free << 32 | for_alloc;
    } while (!atomic_compare_exchange_strong(&tly_gate_page.both, &before, word));
}

void tly_gate_renew(void) { show_state(false); }

void tly_gate_open(void) { show_state(true); }
