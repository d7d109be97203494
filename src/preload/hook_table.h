/*
 * hook_table.h - every entry point by which a block is made or ends, once.
 *
 * A row feeds the pointers to the allocator underneath, their resolution, the rerouting of calls past us, and the
 * symbol list. TLY_C_HOOKS: X(name, return type, parameters). TLY_CXX_HOOKS: X(short name, mangled name, return type,
 * parameters): all replaceable forms of operator new and delete (Itanium C++ ABI mangling on LP64).
 */
#ifndef TLY_HOOK_TABLE_H
#define TLY_HOOK_TABLE_H

#include <stddef.h>

#define TLY_C_HOOKS(X)                                                                                                 \
    X(malloc, void *, (size_t))                                                                                        \
    X(free, void, (void *))                                                                                            \
    X(calloc, void *, (size_t, size_t))                                                                                \
    X(realloc, void *, (void *, size_t))                                                                               \
    X(reallocarray, void *, (void *, size_t, size_t))                                                                  \
    X(posix_memalign, int, (void **, size_t, size_t))                                                                  \
    X(aligned_alloc, void *, (size_t, size_t))                                                                         \
    X(memalign, void *, (size_t, size_t))                                                                              \
    X(valloc, void *, (size_t))                                                                                        \
    X(pvalloc, void *, (size_t))                                                                                       \
    X(malloc_usable_size, size_t, (void *))                                                                            \
    X(free_sized, void, (void *, size_t))                                                                              \
    X(free_aligned_sized, void, (void *, size_t, size_t))

#define TLY_CXX_HOOKS(X)                                                                                               \
    X(new_plain, _Znwm, void *, (size_t))                                                                              \
    X(new_array, _Znam, void *, (size_t))                                                                              \
    X(new_nothrow, _ZnwmRKSt9nothrow_t, void *, (size_t, const void *))                                                \
    X(new_array_nothrow, _ZnamRKSt9nothrow_t, void *, (size_t, const void *))                                          \
    X(new_aligned, _ZnwmSt11align_val_t, void *, (size_t, size_t))                                                     \
    X(new_array_aligned, _ZnamSt11align_val_t, void *, (size_t, size_t))                                               \
    X(new_aligned_nothrow, _ZnwmSt11align_val_tRKSt9nothrow_t, void *, (size_t, size_t, const void *))                 \
    X(new_array_aligned_nothrow, _ZnamSt11align_val_tRKSt9nothrow_t, void *, (size_t, size_t, const void *))           \
    X(delete_plain, _ZdlPv, void, (void *))                                                                            \
    X(delete_array, _ZdaPv, void, (void *))                                                                            \
    X(delete_nothrow, _ZdlPvRKSt9nothrow_t, void, (void *, const void *))                                              \
    X(delete_array_nothrow, _ZdaPvRKSt9nothrow_t, void, (void *, const void *))                                        \
    X(delete_sized, _ZdlPvm, void, (void *, size_t))                                                                   \
    X(delete_array_sized, _ZdaPvm, void, (void *, size_t))                                                             \
    X(delete_aligned, _ZdlPvSt11align_val_t, void, (void *, size_t))                                                   \
    X(delete_array_aligned, _ZdaPvSt11align_val_t, void, (void *, size_t))                                             \
    X(delete_sized_aligned, _ZdlPvmSt11align_val_t, void, (void *, size_t, size_t))                                    \
    X(delete_array_sized_aligned, _ZdaPvmSt11align_val_t, void, (void *, size_t, size_t))                              \
    X(delete_aligned_nothrow, _ZdlPvSt11align_val_tRKSt9nothrow_t, void, (void *, size_t, const void *))               \
    X(delete_array_aligned_nothrow, _ZdaPvSt11align_val_tRKSt9nothrow_t, void, (void *, size_t, const void *))

#endif
