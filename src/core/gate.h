/*
 * gate.h - the two words that each hook looks at first.
 *
 * A thread may use its fast path only while its own `generation` equals the gate's; whatever changes the rules (start,
 * stop, pause of all threads, an unloaded module, a renamed thread) makes a new generation, and each thread goes once
 * through the slow path. The page is wiped by the kernel in a forked child, raw clone included: it then reads 0, which
 * equals no thread's generation, so a child cannot write one byte before it has a region of its own.
 */
#ifndef TLY_GATE_H
#define TLY_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/page.h"

#define TLY_GENERATION_NONE 1u /* a thread that has to go through the slow path */
#define TLY_GENERATION_OFF 2u  /* the gate: nothing to do */
#define TLY_GENERATION_FIRST 3u

struct tly_gate {
    union {
        struct {
            _Atomic uint32_t alloc; /* current generation when allocations are billed, else OFF; 0: forked */
            _Atomic uint32_t free;  /* the same for frees */
        };
        _Atomic uint64_t both; /* changed together */
    };
    _Atomic uint32_t child_begun;  /* in a forked child: a thread is making the region */
    _Atomic uint32_t consolidator; /* the background thread runs in this process */
    char rest[TLY_PAGE - 16];
};
extern struct tly_gate tly_gate_page __attribute__((visibility("hidden")));

/* Not wiped by a fork. */
struct tly_gate_state {
    _Atomic uint32_t state;      /* enum tly_state */
    _Atomic uint32_t generation; /* last one given out */
    _Atomic uint32_t auto_tags;
    _Atomic int32_t paused_all;
    _Atomic bool ready;    /* there is a region */
    _Atomic bool clearing; /* hooks stay out until the clear is done */
};
extern struct tly_gate_state tly_gate_state __attribute__((visibility("hidden")));

/* Wipes the page in forked children from now on. Falls back to nothing on kernels before 4.14 (then only the fork
 * handler protects). */
void tly_gate_init(void);
/* Makes a new generation and shows the state to the hooks. Does nothing while the page reads 0: a forked child's gate is
 * opened by tly_gate_open, once it has its region. Any number of threads may come here at once. */
void tly_gate_renew(void);
/* The same, and opens the gate of a forked child that has its region now. */
void tly_gate_open(void);

#endif
