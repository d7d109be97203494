/*
 * hooks_cxx.c - operator new and delete, so that blocks are billed to the code that said `new`.
 *
 * The operators of the C++ library, and those of the allocators we know, are malloc and free plus what happens when
 * memory runs out. As long as nobody replaced them, we therefore take malloc's block ourselves and call the real operator
 * only when there is none: it runs the new-handler and throws. If the program replaced some of them, the others must
 * reach its versions through the library's: then we only pass on, and its malloc is billed to it.
 */
#include <stdlib.h>

#include "base/say.h"
#include "core/account.h"
#include "preload/hooks.h"
#include "preload/real.h"

#define CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

static bool power_of_two(size_t number) { return number != 0 && (number & (number - 1)) == 0; }

/* What the C++ library asks of malloc, or of aligned_alloc; an allocator's own operator does not round the size up. */
static inline void *from_malloc(size_t size, size_t alignment) {
    if (alignment <= 1) return tly_real.malloc(size ? size : 1);
    if (!power_of_two(alignment) || size > SIZE_MAX / 2) return NULL; /* the library throws */
    if (tly_operators_of_allocator) return tly_real.memalign(alignment, size ? size : 1);
    size_t rounded = ((size ? size : 1) + alignment - 1) / alignment * alignment;
    return tly_real.aligned_alloc(alignment, rounded);
}

/* There is no C++ runtime to be found anywhere, and yet somebody calls its operator. */
static void *nothing_left(bool nothrow) {
    if (nothrow) return NULL;
    tly_say("operator new: out of memory, and no C++ runtime to throw std::bad_alloc", NULL);
    abort();
}

/* The real operator found memory after all. It may have come through our malloc (the C++ library's) or not (an
 * allocator's own): what is in the map is billed already. */
static void *from_operator(void *block, size_t size, void *caller, bool of_allocator) {
    if (block && of_allocator && !tly_account_knows(block)) tly_account_alloc(block, size, caller);
    return block;
}

#define NEW_HOOK(NAME, SYMBOL, PARAMS, ARGS, ALIGNMENT, NOTHROW)                                                       \
    void *tly_hook_##SYMBOL PARAMS {                                                                                   \
        void *block = NULL;                                                                                            \
        if (tly_operators_on_malloc && (block = from_malloc(size, ALIGNMENT)) != NULL)                                 \
            return tly_account_made(block, size, CALLER());                                                            \
        void *real = tly_real_operator(TLY_OP_##NAME);                                                                 \
        if (real == NULL) return nothing_left(NOTHROW);                                                                \
        block = ((void *(*)PARAMS)real)ARGS;                                                                           \
        return from_operator(block, size, CALLER(), tly_real_operator_of_allocator(TLY_OP_##NAME));                    \
    }

NEW_HOOK(new_plain, _Znwm, (size_t size), (size), 1, false)
NEW_HOOK(new_array, _Znam, (size_t size), (size), 1, false)
NEW_HOOK(new_nothrow, _ZnwmRKSt9nothrow_t, (size_t size, const void *tag), (size, tag), 1, true)
NEW_HOOK(new_array_nothrow, _ZnamRKSt9nothrow_t, (size_t size, const void *tag), (size, tag), 1, true)
NEW_HOOK(new_aligned, _ZnwmSt11align_val_t, (size_t size, size_t alignment), (size, alignment), alignment, false)
NEW_HOOK(new_array_aligned, _ZnamSt11align_val_t, (size_t size, size_t alignment), (size, alignment), alignment, false)
NEW_HOOK(new_aligned_nothrow, _ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *tag),
         (size, alignment, tag), alignment, true)
NEW_HOOK(new_array_aligned_nothrow, _ZnamSt11align_val_tRKSt9nothrow_t,
         (size_t size, size_t alignment, const void *tag), (size, alignment, tag), alignment, true)

#define DELETE_HOOK(NAME, SYMBOL, PARAMS, ARGS)                                                                        \
    void tly_hook_##SYMBOL PARAMS {                                                                                    \
        void *real = tly_operators_on_malloc ? NULL : tly_real_operator(TLY_OP_##NAME);                                \
        if (real == NULL) {                                                                                            \
            tly_hook_free(block);                                                                                      \
            return;                                                                                                    \
        }                                                                                                              \
        if (block && tly_real_operator_of_allocator(TLY_OP_##NAME)) tly_account_gone(block);                           \
        ((void(*) PARAMS)real) ARGS;                                                                                   \
    }

DELETE_HOOK(delete_plain, _ZdlPv, (void *block), (block))
DELETE_HOOK(delete_array, _ZdaPv, (void *block), (block))
DELETE_HOOK(delete_nothrow, _ZdlPvRKSt9nothrow_t, (void *block, const void *tag), (block, tag))
DELETE_HOOK(delete_array_nothrow, _ZdaPvRKSt9nothrow_t, (void *block, const void *tag), (block, tag))
DELETE_HOOK(delete_sized, _ZdlPvm, (void *block, size_t size), (block, size))
DELETE_HOOK(delete_array_sized, _ZdaPvm, (void *block, size_t size), (block, size))
DELETE_HOOK(delete_aligned, _ZdlPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))
DELETE_HOOK(delete_array_aligned, _ZdaPvSt11align_val_t, (void *block, size_t alignment), (block, alignment))
DELETE_HOOK(delete_sized_aligned, _ZdlPvmSt11align_val_t, (void *block, size_t size, size_t alignment),
            (block, size, alignment))
DELETE_HOOK(delete_array_sized_aligned, _ZdaPvmSt11align_val_t, (void *block, size_t size, size_t alignment),
            (block, size, alignment))
DELETE_HOOK(delete_aligned_nothrow, _ZdlPvSt11align_val_tRKSt9nothrow_t,
            (void *block, size_t alignment, const void *tag), (block, alignment, tag))
DELETE_HOOK(delete_array_aligned_nothrow, _ZdaPvSt11align_val_tRKSt9nothrow_t,
            (void *block, size_t alignment, const void *tag), (block, alignment, tag))

#define EXPORT(NAME, SYMBOL, RET, PARAMS)                                                                              \
    extern __typeof__(tly_hook_##SYMBOL) SYMBOL __attribute__((alias("tly_hook_" #SYMBOL), visibility("default")));
TLY_CXX_HOOKS(EXPORT)
