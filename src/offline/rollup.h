/*
 * rollup.h - the tree that reports show: a snapshot's nodes with inclusive figures and sorted children.
 *
 * Every figure is exact: a row's inclusive balance is its direct one plus its children's, and the root's is the sum of
 * all direct ones. Folding moves bytes between rows and loses none.
 */
#ifndef TLY_ROLLUP_H
#define TLY_ROLLUP_H

#include "offline/snapshot.h"

enum tly_rollup_sort {
    TLY_SORT_BYTES,       /* live bytes, inclusive, largest first */
    TLY_SORT_BLOCKS,      /* live blocks */
    TLY_SORT_ALLOCATED,   /* bytes allocated since start or clear */
    TLY_SORT_ALLOCATIONS, /* blocks allocated since start or clear */
    TLY_SORT_NAME,        /* by label, A first */
};

struct tly_row {
    uint32_t site;                      /* TLY_NONE in the root */
    uint32_t parent;                    /* row; smaller than the own index. 0 in the root */
    uint32_t first_child, next_sibling; /* rows, in the order of the sort; 0: none */
    struct tly_balance direct, inclusive;
};

struct tly_rollup {
    const struct tly_snapshot *snapshot; /* must outlive it */
    struct tly_row *rows;                /* rows[0] is the root */
    uint32_t count;
    uint32_t *row_of_node; /* for each node of the snapshot, the row it was billed to */
};

/* `fold`: a call site that is already on the path makes no new row (A, B, C, B, C gives A, A/B, A/B/C); what is billed
 * below goes to the longest row. 0 or -ENOMEM. */
int tly_rollup_make(const struct tly_snapshot *snapshot, bool fold, enum tly_rollup_sort sort, struct tly_rollup *out);
void tly_rollup_free(struct tly_rollup *rollup);

/* The order of call sites by name, and by what else tells two of the same name apart: <0, 0, >0. */
int tly_rollup_compare_sites(const struct tly_snapshot *snapshot, uint32_t left, uint32_t right);

/* The figure that `sort` sorts by (live bytes for names). */
uint64_t tly_rollup_figure(const struct tly_balance *balance, enum tly_rollup_sort sort);

#endif
