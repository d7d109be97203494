/*
 * arena.h - memory that is taken piece by piece and given back as a whole. Not locked.
 */
#ifndef TLY_ARENA_H
#define TLY_ARENA_H

#include <stddef.h>

struct tly_arena;

struct tly_arena *tly_arena_new(void);        /* NULL: no memory */
void tly_arena_free(struct tly_arena *arena); /* NULL is allowed */
void *tly_arena_take(struct tly_arena *arena,
                     size_t bytes); /* zeroed, aligned to 16; NULL: no memory. Never NULL for 0 */
char *tly_arena_copy(struct tly_arena *arena, const void *bytes, size_t length); /* ... with a NUL behind it */

#endif
