/*
 * hooks.c - the hooks of C. Each passes the call on and tells the account; what a hook returns, and errno, are the
 * allocator's own. (Blocks of the bootstrap pool come up only while nothing is accounted yet.)
 */
#include "preload/hooks.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/account.h"
#include "preload/bootstrap.h"
#include "preload/real.h"

#define CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

void *tly_hook_malloc(size_t size) {
    void *block = tly_real.malloc(size);
    return __builtin_expect(block != NULL, 1) ? tly_account_made(block, size, CALLER()) : NULL;
}

void *tly_hook_calloc(size_t count, size_t size) {
    void *block = tly_real.calloc(count, size);
    return __builtin_expect(block != NULL, 1) ? tly_account_made(block, count * size, CALLER()) : NULL;
}

/* Neither NULL nor the pool ever has an entry in the block map, so the fast path does nothing to them. */
void tly_hook_free(void *block) {
    enum tly_fast how = tly_fast_free(block);
    if (__builtin_expect(how > TLY_FAST_EVENT, 0)) {
        if (block == NULL || tly_bootstrap_owns(block)) return;
        if (how == TLY_FAST_GENERAL) tly_account_free(block);
    } else if (__builtin_expect(how == TLY_FAST_EVENT, 0)) {
        tly_account_event(NULL);
    }
    tly_real.free(block);
}

static void *move_from_pool(void *block, size_t size, void *caller) {
    void *moved = tly_real.malloc(size);
    if (!moved) return NULL;
    size_t old_size = tly_bootstrap_size(block);
    memcpy(moved, block, old_size < size ? old_size : size);
    tly_account_alloc(moved, size, caller);
    return moved;
}

static inline void *reallocate(void *block, size_t size, void *caller) {
    if (block == NULL) {
        void *result = tly_real.realloc(NULL, size);
        return result ? tly_account_alloc(result, size, caller) : NULL;
    }
    if (__builtin_expect(tly_bootstrap_owns(block), 0)) return move_from_pool(block, size, caller);
    struct tly_taken taken;
    if (!tly_fast_take(block, &taken)) taken = tly_account_realloc_begin(block);
    void *result = tly_real.realloc(block, size);
    if (result && tly_fast_close(&taken)) return tly_account_made(result, size, caller);
    tly_account_realloc_end(taken, block, result, size, caller);
    return result;
}

void *tly_hook_realloc(void *block, size_t size) { return reallocate(block, size, CALLER()); }

void *tly_hook_reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    void *caller = CALLER();
    if (__builtin_mul_overflow(count, size, &bytes) || tly_real.reallocarray == tly_derived_reallocarray) {
        if (__builtin_mul_overflow(count, size, &bytes)) return tly_real.reallocarray(block, count, size); /* fails */
        return reallocate(block, bytes, caller);
    }
    if (block && tly_bootstrap_owns(block)) return move_from_pool(block, bytes, caller);
    struct tly_taken taken = {0, 0, 0, 0, false};
    if (block) taken = tly_account_realloc_begin(block);
    void *result = tly_real.reallocarray(block, count, size);
    tly_account_realloc_end(taken, block, result, bytes, caller);
    return result;
}

int tly_hook_posix_memalign(void **out, size_t alignment, size_t size) {
    int result = tly_real.posix_memalign(out, alignment, size);
    if (result == 0 && *out) tly_account_alloc(*out, size, CALLER());
    return result;
}

void *tly_hook_aligned_alloc(size_t alignment, size_t size) {
    void *block = tly_real.aligned_alloc(alignment, size);
    return block ? tly_account_alloc(block, size, CALLER()) : NULL;
}

void *tly_hook_memalign(size_t alignment, size_t size) {
    void *block = tly_real.memalign(alignment, size);
    return block ? tly_account_alloc(block, size, CALLER()) : NULL;
}

void *tly_hook_valloc(size_t size) {
    void *block = tly_real.valloc(size);
    return block ? tly_account_alloc(block, size, CALLER()) : NULL;
}

void *tly_hook_pvalloc(size_t size) {
    void *block = tly_real.pvalloc(size);
    return block ? tly_account_alloc(block, size, CALLER()) : NULL;
}

size_t tly_hook_malloc_usable_size(void *block) {
    if (block && tly_bootstrap_owns(block)) return tly_bootstrap_size(block);
    return tly_real.malloc_usable_size(block);
}

void tly_hook_free_sized(void *block, size_t size) {
    if (block == NULL || tly_bootstrap_owns(block)) return;
    tly_account_free(block);
    tly_real.free_sized(block, size);
}

void tly_hook_free_aligned_sized(void *block, size_t alignment, size_t size) {
    if (block == NULL || tly_bootstrap_owns(block)) return;
    tly_account_free(block);
    tly_real.free_aligned_sized(block, alignment, size);
}

/* The names that programs call. */
#define EXPORT(NAME, RET, PARAMS)                                                                                      \
    extern __typeof__(tly_hook_##NAME) NAME __attribute__((alias("tly_hook_" #NAME), visibility("default")));
TLY_C_HOOKS(EXPORT)
