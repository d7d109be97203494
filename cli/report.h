/*
 * report.h - what the parts of `tally report` share: the options, the opened file, and where the output goes.
 */
#ifndef TLY_REPORT_H
#define TLY_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "offline/rollup.h"
#include "offline/snapshot.h"

enum report_format { REPORT_TREE, REPORT_SITES, REPORT_JSON, REPORT_CSV };

struct report_options {
    enum report_format format;
    enum tly_rollup_sort sort;
    bool sort_given;
    bool full;              /* do not fold repeated call sites */
    bool exact_figures;     /* all digits in the tables */
    uint32_t depth;         /* levels below the root; UINT32_MAX: all */
    const char *tag;        /* shell pattern; NULL: everything */
    uint64_t min;           /* rows below it go into the remainder; in the unit of the sort */
    uint32_t min_permyriad; /* the same as a share of the whole, in 1/100 percent */
    bool min_given;
};

struct report {
    const char *path;
    const struct tly_snapshot *snapshot;
    const struct report_options *options;
    struct tly_rollup rollup;
    FILE *out;
    uint32_t width; /* columns of the terminal; 0: no limit */
    bool colour, bars;
};

/* Each prints its part of a report. What goes wrong in writing shows in ferror(out). 0 or -ENOMEM. */
int report_head(const struct report *report);
int report_tree(const struct report *report);
int report_sites(const struct report *report);
int report_json(const struct report *report);
int report_csv(const struct report *report);

/* The largest figures of a table, to find out how far the threshold may be lowered. */
enum { REPORT_ROWS = 25 };
struct report_largest {
    uint64_t figure[REPORT_ROWS + 1]; /* largest first */
    uint32_t count;
};
void report_largest_add(struct report_largest *largest, uint64_t figure);

/* Figures below this are not worth a row of their own. What --min says; else 1 % of `whole`, or less if no more than
 * REPORT_ROWS rows are shown then (`largest`: of this table). In JSON and CSV, where it is NULL: everything is shown. */
uint64_t report_threshold(const struct report_options *options, uint64_t whole, const struct report_largest *largest);

/* Does the row's call site match --tag? */
bool report_matches(const struct report *report, uint32_t row);

/* The row after `row` in depth-first order within the subtree of `top`; `descend`: its children too. 0: none.
 * `depth` is kept up to date. */
uint32_t report_next_row(const struct report *report, uint32_t top, uint32_t row, bool descend, uint32_t *depth);

/* The label of a site or the whole path of a row in fresh memory (free it), or NULL. */
char *report_site_label(const struct report *report, uint32_t site);
char *report_row_path(const struct report *report, uint32_t row);

const char *report_kind_name(uint32_t kind);

/* ---- report_table.c: the rows that the tree and the flat table are made of ---- */

struct report_row {
    const struct tly_balance *inclusive, *direct; /* direct may be NULL: left empty */
    const char *label;                            /* printable */
    uint32_t indent;                              /* columns before the label */
    bool faint;
};

void report_table_head(const struct report *report, const char *direct_title);
void report_table_row(const struct report *report, const struct report_row *row);
/* A line that has only a label: what belongs to the row above. */
void report_table_note(const struct report *report, uint32_t indent, const char *label);
/* The other functions of a caller, one line each. */
void report_table_frames(const struct report *report, uint32_t indent, uint32_t site);

#endif
