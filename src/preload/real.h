/*
 * real.h - the allocator underneath: where our hooks pass calls on to.
 *
 * Resolved once, from the first hook that runs. A function counts only if it comes from the same file as `malloc` does:
 * a derived entry point of another allocator would hand a foreign block to it. What is missing is built on what there is
 * (real_derived.c). While resolving, allocations are served from a small static pool (bootstrap.h).
 */
#ifndef TLY_REAL_H
#define TLY_REAL_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/hook_table.h"

struct tly_real {
#define FIELD(NAME, RET, PARAMS) RET(*NAME) PARAMS;
    TLY_C_HOOKS(FIELD)
#undef FIELD
};
/* Never NULL: before the resolution, functions that resolve first. */
extern struct tly_real tly_real __attribute__((visibility("hidden")));

/* The operators of C++. Nothing is replaced: malloc or free will do, and the real ones are a handler for no memory. */
extern bool tly_operators_on_malloc __attribute__((visibility("hidden")));
/* They are the allocator's own, not the C++ library's. */
extern bool tly_operators_of_allocator __attribute__((visibility("hidden")));
/* The real one, NULL if there is none; may ask the loader if the C++ library was loaded later. */
void *tly_real_operator(int index);
/* Is it in the allocator's file, so perhaps not through our malloc and free? */
bool tly_real_operator_of_allocator(int index);
enum tly_operator {
#define INDEX(NAME, SYMBOL, RET, PARAMS) TLY_OP_##NAME,
    TLY_CXX_HOOKS(INDEX)
#undef INDEX
        TLY_OP_COUNT
};

void tly_real_resolve(void);
/* Start of the file that holds the address; 0: none. */
const void *tly_real_file_of(const void *address);
/* What a program that calls `name` gets: the first definition in the search order. NULL: none. */
void *tly_real_first(const char *name);

/* Built on malloc, realloc, free and whichever aligned function there is. */
void *tly_derived_reallocarray(void *block, size_t count, size_t size);
int tly_derived_posix_memalign(void **out, size_t alignment, size_t size);
void *tly_derived_aligned_alloc(size_t alignment, size_t size);
void *tly_derived_memalign(size_t alignment, size_t size);
void *tly_derived_valloc(size_t size);
void *tly_derived_pvalloc(size_t size);
size_t tly_derived_malloc_usable_size(void *block);
void tly_derived_free_sized(void *block, size_t size);
void tly_derived_free_aligned_sized(void *block, size_t alignment, size_t size);

#endif
