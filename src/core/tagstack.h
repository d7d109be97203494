/* tagstack.h - the calling thread's stack of tags. A position in it is one node; the stack remembers the way back. */
#ifndef TLY_TAGSTACK_H
#define TLY_TAGSTACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/thread.h"

static inline void tly_tag_step_up(struct tly_thread *thread, uint32_t node) {
    atomic_signal_fence(memory_order_seq_cst);
    thread->depth++;
    atomic_signal_fence(memory_order_seq_cst);
    thread->tag_node = node;
}

uint32_t tly_tag_push_slow(const char *name);
bool tly_tag_pop_error(void);
void tly_count_pop_error(void);

/* Pushes a tag whose name stays where it is, so that its address may stand for it. Returns 1 + the depth before, or 0
 * when nothing was pushed (there is no account). */
static inline uint32_t tly_tag_push(const char *name) {
    struct tly_thread *thread = &tly_self;
    uint32_t depth = thread->depth;
    if (__builtin_expect(depth < thread->capacity &&
                             thread->known == atomic_load_explicit(&tly_gate_page.free, memory_order_relaxed),
                         1)) {
        const tly_pair last = tly_pair_load(&thread->stack[depth]);
        if (__builtin_expect(last[0] == (uintptr_t)name && (uint32_t)last[1] == thread->tag_node, 1)) {
            tly_tag_step_up(thread, (uint32_t)(last[1] >> 32));
            return depth + 1;
        }
    }
    return tly_tag_push_slow(name);
}
/* The same for a name that may change after the call. */
uint32_t tly_tag_push_copy(const char *name);

/* Takes off everything above `depth`. False: the stack is not that deep. */
static inline bool tly_tag_pop_to(uint32_t depth) {
    struct tly_thread *thread = &tly_self;
    if (__builtin_expect(depth >= thread->depth, 0)) return tly_tag_pop_error();
    if (__builtin_expect(depth < thread->capacity, 1)) thread->tag_node = (uint32_t)thread->stack[depth][1];
    atomic_signal_fence(memory_order_seq_cst);
    thread->depth = depth;
    return true;
}

struct tly_position {
    uint32_t node, depth;
    uint64_t owner; /* the thread */
};
void tly_tag_position(struct tly_position *out);
/* Goes to another node, remembering the way back; -EINVAL: no such node; -ENOSYS: no account. */
int tly_tag_override(uint32_t node);
/* Back to a position of this thread. -EINVAL: another thread's, or below it already. */
int tly_tag_rewind(const struct tly_position *position);

void tly_tag_pause_thread(void);
void tly_tag_resume_thread(void);

#endif
