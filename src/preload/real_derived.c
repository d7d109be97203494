/* real_derived.c - entry points that the allocator underneath lacks, built on those that it has. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "preload/real.h"

static bool power_of_two(size_t number) { return number != 0 && (number & (number - 1)) == 0; }

/* Through whichever aligned function is the allocator's own. The pointers here are never derived ones in a circle:
 * resolution leaves at most two of the three derived (see choose_aligned in real.c). */
static void *aligned(size_t alignment, size_t size) {
    void *block = NULL;
    if (tly_real.memalign != tly_derived_memalign) return tly_real.memalign(alignment, size);
    if (tly_real.aligned_alloc != tly_derived_aligned_alloc) return tly_real.aligned_alloc(alignment, size);
    if (tly_real.posix_memalign != tly_derived_posix_memalign) {
        if (alignment < sizeof(void *)) alignment = sizeof(void *);
        int error = tly_real.posix_memalign(&block, alignment, size);
        if (error == 0) return block;
        errno = error;
        return NULL;
    }
    if (alignment <= 16) return tly_real.malloc(size);
    errno = ENOMEM; /* malloc alone cannot give it, and a block of another allocator must not get in */
    return NULL;
}

void *tly_derived_reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return tly_real.realloc(block, bytes);
}

int tly_derived_posix_memalign(void **out, size_t alignment, size_t size) {
    if (!power_of_two(alignment) || alignment % sizeof(void *) != 0) return EINVAL;
    int saved = errno;
    void *block = aligned(alignment, size);
    errno = saved;
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}

void *tly_derived_aligned_alloc(size_t alignment, size_t size) {
    if (power_of_two(alignment)) return aligned(alignment, size);
    errno = EINVAL;
    return NULL;
}

void *tly_derived_memalign(size_t alignment, size_t size) { return tly_derived_aligned_alloc(alignment, size); }

void *tly_derived_valloc(size_t size) { return aligned((size_t)sysconf(_SC_PAGESIZE), size); }

void *tly_derived_pvalloc(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > SIZE_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    size_t whole = (size + page - 1) / page * page;
    return aligned(page, whole ? whole : page);
}

size_t tly_derived_malloc_usable_size(void *block) {
    (void)block;
    return 0; /* unknown */
}

void tly_derived_free_sized(void *block, size_t size) {
    (void)size;
    tly_real.free(block);
}

void tly_derived_free_aligned_sized(void *block, size_t alignment, size_t size) {
    (void)alignment;
    (void)size;
    tly_real.free(block);
}
