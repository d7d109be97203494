/* arena.c - see arena.h. */
#include "offline/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct chunk {
    struct chunk *next;
    size_t room, used;
    _Alignas(ALIGNMENT) char bytes[];
};

struct tly_arena {
    struct chunk *chunks; /* the first is the one that small pieces are cut from */
};

struct tly_arena *tly_arena_new(void) {
    return calloc(1, sizeof(struct tly_arena));
}

void tly_arena_free(struct tly_arena *arena) {
    if (!arena) return;
    for (struct chunk *chunk = arena->chunks; chunk;) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    free(arena);
}

void *tly_arena_take(struct tly_arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    size_t needed = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    struct chunk *first = arena->chunks;
    if (!first || first->room - first->used < needed) {
        size_t room = needed > CHUNK_BYTES / 4 ? needed : CHUNK_BYTES;
        struct chunk *chunk = calloc(1, sizeof *chunk + room);
        if (!chunk) return NULL;
        chunk->room = room;
        if (first && room == needed) { /* a chunk of its own; go on cutting from the first */
            chunk->next = first->next;
            first->next = chunk;
        } else {
            chunk->next = first;
            arena->chunks = chunk;
        }
        first = chunk;
    }
    void *piece = first->bytes + first->used;
    first->used += needed;
    return piece;
}

char *tly_arena_copy(struct tly_arena *arena, const void *bytes, size_t length) {
    char *copy = tly_arena_take(arena, length + 1);
    if (copy && length) memcpy(copy, bytes, length);
    return copy;
}
