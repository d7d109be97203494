/* blockmap.c - see blockmap.h. */
#define _GNU_SOURCE
#include "core/blockmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/map.h"

enum { PAGE = 4096 /* of the walk, whatever the kernel's */, PIECE_PAGES = TLY_MAP_PIECE_BYTES / PAGE };
#define CONTINUATION 0xe0000000u
#define KIND_MASK 0xe0000000u
#define PAYLOAD 0x1fffffffu
#define KIND_NEXT 0x80000000u
#define KIND_HUGE 0xa0000000u
#define KIND_TINY 0xc0000000u

struct tly_map_table *tly_map_root[2 * TLY_MAP_ROOTS];

/* Pieces in use, for wipe and walk. Enough for 4 TiB of heap; blocks beyond are counted as untracked. */
enum { PIECES_MOST = 1 << 16 };
static _Atomic uint32_t piece_count;
static _Atomic(uint32_t *) piece_list[PIECES_MOST];

/* Puts newly mapped memory at `place`, unless another thread was quicker. What is there then; NULL: no memory. */
static void *install(void *place, size_t bytes, bool *ours) {
    void *expected = NULL, *memory = tly_map_reserve(bytes);
    *ours = memory &&
            __atomic_compare_exchange_n((void **)place, &expected, memory, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (memory && !*ours) munmap(memory, bytes);
    return *ours ? memory : expected;
}

uint32_t *tly_map_entry_new(uintptr_t address) {
    if (atomic_load_explicit(&piece_count, memory_order_relaxed) >= PIECES_MOST - 1024) return NULL;
    uint32_t root = address >> (TLY_MAP_PIECE_BITS + TLY_MAP_TABLE_BITS) & (TLY_MAP_ROOTS - 1);
    struct tly_map_table **root_place = &tly_map_root[(address & 8 ? TLY_MAP_ROOTS : 0) + root], *table = *root_place;
    int saved = errno;
    bool ours;
    if (!table) table = install(root_place, sizeof *table, &ours);
    uint32_t *piece = NULL;
    if (table) {
        uint32_t **place = &table->piece[address >> TLY_MAP_PIECE_BITS & (TLY_MAP_TABLE_PIECES - 1)];
        piece = install(place, TLY_MAP_PIECE_BYTES, &ours);
        if (ours) {
            madvise(piece, TLY_MAP_PIECE_BYTES, MADV_DONTDUMP);
            atomic_store(&piece_list[atomic_fetch_add(&piece_count, 1)], piece);
            tly_map_count(TLY_OWN_BLOCK_MAP, PAGE); /* the page about to be touched; tly_map_measure knows better */
        }
    }
    errno = saved;
    return piece ? piece + tly_map_index(address) : NULL;
}

bool tly_map_write_wide(uint32_t *entry, uint64_t size, uint32_t node) {
    if (node >= TLY_MAP_NODES) return false;
    if (size <= 31) {
        /* size 0-16 would have no entry after its own to continue in */
        entry[0] = KIND_TINY | node << 5 | (uint32_t)size;
    } else if (size <= PAYLOAD) {
        entry[1] = CONTINUATION | node;
        entry[0] = KIND_NEXT | (uint32_t)size;
    } else {
        entry[2] = CONTINUATION | (uint32_t)(size & PAYLOAD);
        entry[1] = CONTINUATION | node;
        entry[0] = KIND_HUGE | (uint32_t)(size >> 29 & PAYLOAD);
    }
    return true;
}

static bool continues(uint32_t word) { return (word & KIND_MASK) == CONTINUATION; }

/* A later block lies over what followed this entry, so what it said is lost. */
static bool drop(uint32_t *entry) {
    *entry = 0;
    return false;
}

bool tly_map_take_wide(uint32_t *entry, uint64_t *size, uint32_t *node) {
    uint32_t word = entry[0];
    switch (word & KIND_MASK) {
    case KIND_TINY:
        *size = word & 31;
        *node = word >> 5 & (TLY_MAP_NODES - 1);
        break;
    case KIND_NEXT:
        if (!continues(entry[1])) return drop(entry);
        *size = word & PAYLOAD;
        *node = entry[1] & PAYLOAD;
        entry[1] = 0;
        break;
    case KIND_HUGE:
        if (!continues(entry[1]) || !continues(entry[2])) return drop(entry);
        *size = (uint64_t)(word & PAYLOAD) << 29 | (entry[2] & PAYLOAD);
        *node = entry[1] & PAYLOAD;
        entry[1] = entry[2] = 0;
        break;
    default: /* inside another block */ return false;
    }
    entry[0] = 0;
    return true;
}

uint32_t *tly_map_owner(uint32_t *entry, size_t room) {
    if ((*entry & KIND_MASK) != CONTINUATION) return entry;
    if (room >= 1 && ((entry[-1] & KIND_MASK) == KIND_NEXT || (entry[-1] & KIND_MASK) == KIND_HUGE)) return entry - 1;
    if (room >= 2 && (entry[-2] & KIND_MASK) == KIND_HUGE) return entry - 2;
    return NULL;
}

static uint32_t *piece_at(uint32_t i) { return atomic_load(&piece_list[i]); }

void tly_map_wipe(void) {
    tly_map_set(TLY_OWN_BLOCK_MAP, 0);
    uint32_t count = atomic_load(&piece_count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *piece = piece_at(i);
        if (piece && madvise(piece, TLY_MAP_PIECE_BYTES, MADV_DONTNEED) != 0) memset(piece, 0, TLY_MAP_PIECE_BYTES);
    }
}

static void walk_page(const uint32_t *entries, void (*each)(void *, uint64_t, uint32_t), void *context) {
    for (uint32_t i = 0; i < PAGE / 4; i++) {
        if (entries[i] == 0 || (entries[i] & KIND_MASK) == CONTINUATION) continue;
        uint32_t copy[3] = {entries[i], 0, 0};
        /* continuations: the mapping goes on for a page after the last entry */
        if ((copy[0] & KIND_MASK) == KIND_NEXT || (copy[0] & KIND_MASK) == KIND_HUGE) copy[1] = entries[i + 1];
        if ((copy[0] & KIND_MASK) == KIND_HUGE) copy[2] = entries[i + 2];
        uint64_t size;
        uint32_t node;
        if (tly_map_take(copy, &size, &node)) each(context, size, node);
    }
}

/* Which 4 KiB of a piece were ever touched, from /proc/self/pagemap: present or swapped. All, if it cannot be read. */
static void touched_pages(const uint32_t *piece, bool *touched) {
    static uint64_t words[PIECE_PAGES]; /* one walker at a time: see blockmap.h */
    size_t kernel_page = (size_t)sysconf(_SC_PAGESIZE), bytes = TLY_MAP_PIECE_BYTES / kernel_page * sizeof *words;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, words, bytes, (off_t)((uintptr_t)piece / kernel_page * sizeof *words));
    if (fd >= 0) close(fd);
    for (size_t i = 0; i < PIECE_PAGES; i++)
        touched[i] = got != (ssize_t)bytes || (words[i * PAGE / kernel_page] >> 62) != 0;
}

void tly_map_walk(void (*each)(void *context, uint64_t size, uint32_t node), void *context) {
    static bool touched[PIECE_PAGES];
    uint32_t count = atomic_load(&piece_count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t *piece = piece_at(i);
        if (!piece) continue;
        touched_pages(piece, touched);
        for (int page = 0; page < (int)(TLY_MAP_PIECE_ENTRIES * 4 / PAGE); page++)
            if (touched[page]) walk_page(piece + (size_t)page * PAGE / 4, each, context);
    }
}

void tly_map_usage(uint64_t *pages, uint64_t *pieces) {
    size_t kernel_page = (size_t)sysconf(_SC_PAGESIZE), stretch = 512 * kernel_page;
    uint32_t count = atomic_load(&piece_count);
    *pages = 0;
    *pieces = count;
    int saved = errno;
    for (uint32_t i = 0; i < count; i++) {
        char *piece = (char *)piece_at(i);
        for (size_t at = 0; piece && at < TLY_MAP_PIECE_BYTES; at += stretch) {
            unsigned char resident[512];
            size_t here = TLY_MAP_PIECE_BYTES - at < stretch ? TLY_MAP_PIECE_BYTES - at : stretch;
            if (mincore(piece + at, here, resident) != 0) continue;
            for (size_t k = 0; k < here / kernel_page; k++)
                *pages += (resident[k] & 1) * (kernel_page / PAGE);
        }
    }
    errno = saved;
}

/* A bit for each page of a piece stands behind its last entries. */
void tly_map_note(uintptr_t address) {
    uint32_t *piece = tly_map_piece(address);
    if (!piece) return;
    _Atomic uint64_t *noted = (_Atomic uint64_t *)(piece + TLY_MAP_PIECE_ENTRIES + 16);
    size_t first = tly_map_index(address) * 4 / PAGE;
    for (size_t page = first; page < first + 2 && page < TLY_MAP_PIECE_ENTRIES * 4 / PAGE; page++) {
        uint64_t bit = (uint64_t)1 << page % 64;
        if (!(atomic_fetch_or_explicit(&noted[page / 64], bit, memory_order_relaxed) & bit))
            tly_map_count(TLY_OWN_BLOCK_MAP, PAGE);
    }
}

void tly_map_measure(void) {
    uint64_t pages, pieces;
    tly_map_usage(&pages, &pieces);
    tly_map_set(TLY_OWN_BLOCK_MAP, pages * PAGE);
}
