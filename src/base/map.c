/* map.c - see map.h. */
#include "base/map.h"

#include <errno.h>
#include <sys/mman.h>

static _Atomic uint64_t own_bytes[TLY_OWN_COUNT];
static _Atomic(_Atomic uint64_t *) mirror;

void *tly_map_reserve(size_t bytes) {
    int saved = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    /* Tables are touched here and there: a huge page for each such place would cost 2 MiB and its clearing. */
    if (memory != MAP_FAILED) madvise(memory, bytes, MADV_NOHUGEPAGE);
    errno = saved;
    return memory == MAP_FAILED ? NULL : memory;
}

extern char __bss_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

void tly_map_init(void) {
    uintptr_t start = ((uintptr_t)__bss_start + 4095) & ~(uintptr_t)4095, end = (uintptr_t)_end & ~(uintptr_t)4095;
    if (start < end) madvise((void *)start, end - start, MADV_NOHUGEPAGE);
}

static void show(enum tly_own_memory kind) {
    _Atomic uint64_t *words = atomic_load_explicit(&mirror, memory_order_relaxed);
    if (words) atomic_store_explicit(&words[kind], tly_map_bytes(kind), memory_order_relaxed);
}

void tly_map_count(enum tly_own_memory kind, int64_t bytes) {
    atomic_fetch_add_explicit(&own_bytes[kind], (uint64_t)bytes, memory_order_relaxed);
    show(kind);
}

uint64_t tly_map_bytes(enum tly_own_memory kind) {
    return atomic_load_explicit(&own_bytes[kind], memory_order_relaxed);
}

void tly_map_set(enum tly_own_memory kind, uint64_t bytes) {
    atomic_store_explicit(&own_bytes[kind], bytes, memory_order_relaxed);
    show(kind);
}

void tly_map_mirror(_Atomic uint64_t *words) {
    atomic_store_explicit(&mirror, words, memory_order_relaxed);
    if (words)
        for (int kind = 0; kind < TLY_OWN_COUNT; kind++)
            show((enum tly_own_memory)kind);
}
