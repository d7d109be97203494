/*
 * mapping_allocator.c - an allocator that may be called from a signal handler at any point: each block is a mapping.
 * Addresses come back at once. What it does not have, the library has to build on what it has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { HEAD = 64, PAGE = 4096 };

static size_t length_of(void *block) { return *(size_t *)((char *)block - HEAD); }

void *malloc(size_t size) {
    if (size > (size_t)1 << 46) {
        errno = ENOMEM;
        return NULL;
    }
    size_t length = (size + HEAD + PAGE - 1) / PAGE * PAGE;
    char *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    *(size_t *)base = length;
    return base + HEAD;
}

void free(void *block) {
    if (!block) return;
    int saved = errno;
    munmap((char *)block - HEAD, length_of(block));
    errno = saved;
}

void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return malloc(bytes);
}

void *realloc(void *block, size_t size) {
    void *moved = malloc(size);
    if (!moved || !block) return moved;
    size_t old = length_of(block) - HEAD;
    memcpy(moved, block, old < size ? old : size);
    free(block);
    return moved;
}

size_t malloc_usable_size(void *block) { return block ? length_of(block) - HEAD : 0; }
