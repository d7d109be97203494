/* bootstrap.c - see bootstrap.h. A block's size stands in the 16 bytes before it. */
#include "preload/bootstrap.h"

#include <errno.h>
#include <stdatomic.h>

char tly_bootstrap_pool[TLY_BOOTSTRAP_BYTES] __attribute__((aligned(64)));
static _Atomic size_t used;

void *tly_bootstrap_alloc(size_t alignment, size_t size) {
    if (alignment < 16) alignment = 16;
    size_t at = atomic_load(&used), start, end;
    do {
        start = ((at + 15) / 16 * 16 + 16 + alignment - 1) / alignment * alignment;
        if (size > TLY_BOOTSTRAP_BYTES || start > TLY_BOOTSTRAP_BYTES - size) {
            errno = ENOMEM;
            return NULL;
        }
        end = start + size;
    } while (!atomic_compare_exchange_weak(&used, &at, end));
    ((size_t *)(tly_bootstrap_pool + start))[-1] = size;
    return tly_bootstrap_pool + start;
}

size_t tly_bootstrap_size(const void *block) { return ((const size_t *)block)[-1]; }
