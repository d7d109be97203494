/* gate.c - see gate.h. */
#include "core/gate.h"

#include <sys/mman.h>

#include "region/region.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct tly_gate tly_gate_page __attribute__((aligned(4096))) = {0};
struct tly_gate_state tly_gate_state;

void tly_gate_init(void) {
    madvise(&tly_gate_page, sizeof tly_gate_page, MADV_WIPEONFORK);
    atomic_store(&tly_gate_state.generation, TLY_GENERATION_FIRST);
    tly_gate_set_state(TLY_STATE_OFF);
}

void tly_gate_renew(void) {
    uint32_t generation = atomic_fetch_add(&tly_gate_state.generation, 1) + 1;
    if (generation < TLY_GENERATION_FIRST) { /* once around */
        generation = TLY_GENERATION_FIRST;
        atomic_store(&tly_gate_state.generation, generation);
    }
    uint32_t state = atomic_load(&tly_gate_state.state);
    bool closed = atomic_load(&tly_gate_state.clearing) || !atomic_load(&tly_gate_state.ready);
    atomic_store(&tly_gate_page.alloc, state == TLY_STATE_ON && !closed ? generation : TLY_GENERATION_OFF);
    atomic_store(&tly_gate_page.free, state != TLY_STATE_OFF && !closed ? generation : TLY_GENERATION_OFF);
}

void tly_gate_set_state(uint32_t state) {
    atomic_store(&tly_gate_state.state, state);
    tly_gate_renew();
}
