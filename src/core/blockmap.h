/*
 * blockmap.h - address of a live block -> (node, requested size).
 *
 * Pieces of 64 MiB address space, each with 4 bytes per 16 bytes of address, are found through a small root in .bss (its
 * address is a constant) and one table for each 64 GiB in use. An entry is written by the thread that was just given the block and removed by the one that
 * frees it; the allocator orders the two, so plain accesses suffice. Blocks that are only 8-aligned (8-byte size classes
 * of jemalloc, tcmalloc and mimalloc) use a second set of pieces, because two of them share 16 bytes.
 *
 * Entry: 0 none; bit 31 clear: narrow, size + 1 in bits 0-11, node in bits 12-30. Bit 31 set, by bits 29-30:
 *   00 size in bits 0-28; the entry of the next 16 bytes (still inside the block) holds 111 and the node
 *   01 high part of a size over 2^29; the next two entries hold the node and the low 29 bits
 *   10 a block of at most 31 bytes with a node over 2^19: size in bits 0-4, node in bits 5-27
 *   11 a continuation: belongs to the block before, never an entry of its own
 */
#ifndef TLY_BLOCKMAP_H
#define TLY_BLOCKMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/page.h"

#define TLY_MAP_PIECE_BITS 26
#if defined(__x86_64__)
#define TLY_MAP_ADDRESS_BITS 47
#else
#define TLY_MAP_ADDRESS_BITS 48
#endif
#define TLY_MAP_TABLE_BITS 10
#define TLY_MAP_TABLE_PIECES (1u << TLY_MAP_TABLE_BITS)
#define TLY_MAP_ROOTS (1u << (TLY_MAP_ADDRESS_BITS - TLY_MAP_PIECE_BITS - TLY_MAP_TABLE_BITS))
#define TLY_MAP_PIECE_ENTRIES (1u << (TLY_MAP_PIECE_BITS - 4))
/* Two more entries, so that a wide entry at the end of a piece has its continuations. */
#define TLY_MAP_PIECE_BYTES ((size_t)TLY_MAP_PIECE_ENTRIES * 4 + TLY_PAGE)

#define TLY_NARROW_SIZE_MAX 4094u
#define TLY_NARROW_NODES (1u << 19)
#define TLY_MAP_NODES (1u << 23)

struct tly_map_table {
    uint32_t *piece[TLY_MAP_TABLE_PIECES];
};
/* The second half is for 8-aligned blocks. */
extern struct tly_map_table *tly_map_root[2 * TLY_MAP_ROOTS] __attribute__((visibility("hidden")));

/* The piece of a 16-aligned address; NULL: there is none. */
static inline uint32_t *tly_map_even_piece(uintptr_t address) {
    const struct tly_map_table *table =
        tly_map_root[address >> (TLY_MAP_PIECE_BITS + TLY_MAP_TABLE_BITS) & (TLY_MAP_ROOTS - 1)];
    return table ? table->piece[address >> TLY_MAP_PIECE_BITS & (TLY_MAP_TABLE_PIECES - 1)] : NULL;
}
/* The piece of any address. */
static inline uint32_t *tly_map_piece(uintptr_t address) {
    uint32_t root = address >> (TLY_MAP_PIECE_BITS + TLY_MAP_TABLE_BITS) & (TLY_MAP_ROOTS - 1);
    const struct tly_map_table *table = tly_map_root[(address & 8 ? TLY_MAP_ROOTS : 0) + root];
    return table ? table->piece[address >> TLY_MAP_PIECE_BITS & (TLY_MAP_TABLE_PIECES - 1)] : NULL;
}
static inline size_t tly_map_index(uintptr_t address) { return address >> 4 & (TLY_MAP_PIECE_ENTRIES - 1); }

/* Where the block's entry is; NULL if the piece is not there and could not be made. */
uint32_t *tly_map_entry_new(uintptr_t address);

static inline uint32_t *tly_map_entry_for(uintptr_t address) {
    uint32_t *piece = tly_map_piece(address);
    if (__builtin_expect(piece == NULL, 0)) return tly_map_entry_new(address);
    return piece + tly_map_index(address);
}

/* Writes the entry of a new block. False: this (size, node) cannot be expressed. */
bool tly_map_write_wide(uint32_t *entry, uint64_t size, uint32_t node);
static inline bool tly_map_write(uint32_t *entry, uint64_t size, uint32_t node) {
    if (__builtin_expect(size <= TLY_NARROW_SIZE_MAX && node < TLY_NARROW_NODES, 1)) {
        *entry = node << 12 | ((uint32_t)size + 1);
        return true;
    }
    return tly_map_write_wide(entry, size, node);
}

/* Removes the entry. False: it holds no block. */
bool tly_map_take_wide(uint32_t *entry, uint64_t *size, uint32_t *node);
static inline bool tly_map_take(uint32_t *entry, uint64_t *size, uint32_t *node) {
    uint32_t word = *entry;
    if (__builtin_expect((int32_t)word > 0, 1)) {
        *entry = 0;
        *size = (word & 0xfff) - 1;
        *node = word >> 12;
        return true;
    }
    return word != 0 && tly_map_take_wide(entry, size, node);
}

/* The entry that `entry`, not empty, belongs to: itself, or the wide one it continues. NULL: none. `index` is its place in
 * its piece. */
uint32_t *tly_map_owner(uint32_t *entry, size_t index);
/* How many entries after its own a block's entry takes. */
static inline uint32_t tly_map_continuations(uint64_t size, uint32_t node) {
    if (size <= TLY_NARROW_SIZE_MAX && node < TLY_NARROW_NODES && node != 1) return 0; /* 1: paused, always wide */
    return size <= 31 ? 0 : size < (uint64_t)1 << 29 ? 1 : 2;
}

/* Forgets all blocks. Only while no hook is running. */
void tly_map_wipe(void);
/* Calls `each` for every block in the map. Only while no hook is running (a forked child's first moments). */
void tly_map_walk(void (*each)(void *context, uint64_t size, uint32_t node), void *context);
/* Resident pages of the map, 4 KiB each, and pieces in use. */
void tly_map_usage(uint64_t *pages, uint64_t *pieces);
/* Counts the pages about the block's entry as used, if they were not: a cheap estimate of what measuring finds, without
 * a system call. */
void tly_map_note(uintptr_t address);
/* Brings the map's share of our own memory, as shown in the region, up to date. */
void tly_map_measure(void);

#endif
