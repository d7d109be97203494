/*
 * account_of.h - the figures of a region file, for tests: read with the product's reader, summed up by the test.
 *
 * Reads a live process's region as well as a dead one's. Not for programs that keep books about their own blocks.
 */
#ifndef ACCOUNT_OF_H
#define ACCOUNT_OF_H

#include <stdint.h>

struct account {
    uint32_t pid, forked_from, flags, state;
    uint64_t allocated_blocks, allocated_bytes, freed_blocks, freed_bytes; /* nothing paused is in these */
    uint64_t live_blocks, live_bytes;
    uint64_t paused_live_blocks, paused_live_bytes;
    uint64_t inherited_blocks, inherited_bytes;
    int64_t total_bytes; /* the running total, without a walk over the cells */
    uint64_t unmatched_frees, untracked_allocs, missed_frees, pop_errors, cut_names, off_radar_allocs, spills;
    uint32_t nodes;
    /* how many nodes show a negative balance; always 0 in a sound account */
    uint32_t negative_nodes;
};

/* 0, or -1 after a line on stderr. */
int account_of(const char *region_path, struct account *out);

/* Prints one line per node that was ever billed: path, TAB, live blocks, TAB, live bytes, TAB, allocated blocks, TAB,
 * allocated bytes. Names are escaped (\n, \t, \\, \/), callers and modules are shown as such. 0 or -1. */
int account_print_nodes(const char *region_path);

#endif
