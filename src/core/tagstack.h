/* tagstack.h - the calling thread's stack of tags. A position in it is one node; the stack remembers the way back. */
#ifndef TLY_TAGSTACK_H
#define TLY_TAGSTACK_H

#include <stdbool.h>
#include <stdint.h>

/* Pushes a tag whose name stays where it is, so that its address may stand for it. Returns 1 + the depth before, or 0
 * when nothing was pushed (no region yet, no memory for a deeper stack). */
uint32_t tly_tag_push(const char *name);
/* The same for a name that may change after the call. */
uint32_t tly_tag_push_copy(const char *name);
/* Takes off everything above `depth`. False: the stack is not that deep. */
bool tly_tag_pop_to(uint32_t depth);

struct tly_position {
    uint32_t node, depth;
    uint64_t owner; /* the thread */
};
void tly_tag_position(struct tly_position *out);
/* Goes to another node, remembering the way back; -EINVAL: no such node; -ENOMEM. */
int tly_tag_override(uint32_t node);
/* Back to a position of this thread. -EINVAL: another thread's, or below it already. */
int tly_tag_rewind(const struct tly_position *position);

void tly_tag_pause_thread(void);
void tly_tag_resume_thread(void);

#endif
