/* bootstrap.h - blocks for the few allocations that libc makes while we look for the real allocator. Never freed. */
#ifndef TLY_BOOTSTRAP_H
#define TLY_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLY_BOOTSTRAP_BYTES 65536

extern char tly_bootstrap_pool[TLY_BOOTSTRAP_BYTES] __attribute__((visibility("hidden")));

/* Zeroed; NULL when the pool is used up. `alignment` is a power of two. */
void *tly_bootstrap_alloc(size_t alignment, size_t size);
/* Bytes that may be read from the block on. */
size_t tly_bootstrap_size(const void *block);

static inline bool tly_bootstrap_owns(const void *block) {
    return (uintptr_t)block - (uintptr_t)tly_bootstrap_pool < TLY_BOOTSTRAP_BYTES;
}

#endif
