/* report_tree.c - the tree of a report: rows above the threshold, and for each level a line with the rest. */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "offline/label.h"

enum { INDENT = 2, MOST_INDENT = 64 };

/* Deeper rows are not moved further to the right: their level is told in front of them. */
static uint32_t indent_of(uint32_t depth) { return depth * INDENT < MOST_INDENT ? depth * INDENT : MOST_INDENT; }

struct walk {
    const struct report *report;
    uint64_t threshold;
    bool no_memory;
};

static bool is_shown(const struct walk *walk, uint32_t row) {
    const struct tly_row *at = &walk->report->rollup.rows[row];
    return tly_rollup_figure(&at->inclusive, walk->report->options->sort) >= walk->threshold;
}

/* `row`, or the next of its siblings that is shown; 0: none. */
static uint32_t shown_from(const struct walk *walk, uint32_t row) {
    while (row != 0 && !is_shown(walk, row))
        row = walk->report->rollup.rows[row].next_sibling;
    return row;
}

static void print_row(struct walk *walk, uint32_t row, uint32_t depth, const char *path) {
    const struct report *report = walk->report;
    const struct tly_row *at = &report->rollup.rows[row];
    char *own = path ? NULL : report_site_label(report, at->site);
    char *deep = NULL;
    const char *label = path ? path : own;
    if (label && depth * INDENT > MOST_INDENT) {
        size_t room = strlen(label) + 32;
        deep = malloc(room);
        if (deep) snprintf(deep, room, "[level %u] %s", depth, label);
        label = deep;
    }
    if (label) {
        struct report_row line = {&at->inclusive, &at->direct, label, indent_of(depth), false};
        report_table_row(report, &line);
        report_table_frames(report, indent_of(depth) + 4, at->site);
    } else {
        walk->no_memory = true;
    }
    free(deep);
    free(own);
}

/* The children of `row` that have no row of their own, in one line, unless they hold nothing. */
static void print_rest(const struct walk *walk, uint32_t row, uint32_t depth, bool all) {
    const struct report *report = walk->report;
    struct tly_balance sum = {0};
    uint32_t count = 0;
    char number[TLY_NUMBER_BYTES], label[64];
    for (uint32_t i = report->rollup.rows[row].first_child; i != 0; i = report->rollup.rows[i].next_sibling) {
        if (!all && is_shown(walk, i)) continue;
        tly_balance_add(&sum, &report->rollup.rows[i].inclusive);
        count++;
    }
    enum tly_rollup_sort sort = report->options->sort;
    bool cumulative = sort == TLY_SORT_ALLOCATED || sort == TLY_SORT_ALLOCATIONS;
    if (count == 0 || (cumulative ? sum.alloc_blocks : tly_live_blocks(&sum)) == 0) return;
    tly_number_exact(number, sizeof number, count);
    snprintf(label, sizeof label, "\u2026 %s %s", number, all ? "below" : "more");
    struct report_row line = {&sum, NULL, label, indent_of(depth + 1), true};
    report_table_row(report, &line);
}

static uint64_t threshold_below(const struct report *report, uint32_t top) {
    const struct tly_row *rows = report->rollup.rows;
    enum tly_rollup_sort sort = report->options->sort;
    struct report_largest largest = {0};
    uint32_t row = top, depth = 0;
    do {
        report_largest_add(&largest, tly_rollup_figure(&rows[row].inclusive, sort));
        row = report_next_row(report, top, row, depth < report->options->depth, &depth);
    } while (row != 0);
    return report_threshold(report->options, tly_rollup_figure(&rows[top].inclusive, sort), &largest);
}

/* Prints the subtree of `top`. A loop, not a recursion: paths can be many thousands deep. */
static void print_subtree(struct walk *walk, uint32_t top, const char *path) {
    const struct tly_row *rows = walk->report->rollup.rows;
    uint32_t row = top, depth = 0, most = walk->report->options->depth;
    walk->threshold = threshold_below(walk->report, top);
    print_row(walk, row, depth, path);
    for (;;) {
        uint32_t next = depth < most ? shown_from(walk, rows[row].first_child) : 0;
        if (next != 0) {
            depth++;
        } else {
            print_rest(walk, row, depth, depth >= most);
            while (row != top && (next = shown_from(walk, rows[row].next_sibling)) == 0) {
                row = rows[row].parent;
                depth--;
                print_rest(walk, row, depth, false);
            }
            if (row == top) return;
        }
        row = next;
        print_row(walk, row, depth, NULL);
    }
}

/* --tag: the topmost rows that match, each with what lies below it. */
static int print_matches(struct walk *walk) {
    const struct report *report = walk->report;
    struct tly_balance sum = {0};
    uint32_t count = 0, depth = 0;
    char number[TLY_NUMBER_BYTES], text[128];
    for (uint32_t row = report_next_row(report, 0, 0, true, &depth), match; row != 0;
         row = report_next_row(report, 0, row, !match, &depth)) {
        match = report_matches(report, row);
        if (!match) continue;
        char *path = report_row_path(report, row);
        if (!path) return -ENOMEM;
        print_subtree(walk, row, path);
        free(path);
        tly_balance_add(&sum, &report->rollup.rows[row].inclusive);
        count++;
    }
    if (count == 0) {
        fprintf(report->out, "Nothing matches.\n");
        return 0;
    }
    tly_number_exact(number, sizeof number, count);
    snprintf(text, sizeof text, "in %s place%s that match%s", number, count == 1 ? "" : "s", count == 1 ? "es" : "");
    struct report_row line = {&sum, NULL, text, 0, true};
    report_table_row(report, &line);
    return 0;
}

/* What is left may be little beside what came and went. */
static void print_hint(const struct report *report) {
    const struct tly_balance *sum = &report->snapshot->totals.sum;
    char share[TLY_NUMBER_BYTES];
    if (report->options->sort_given || report->options->sort != TLY_SORT_BYTES) return;
    if (sum->alloc_bytes == 0 || tly_live_bytes(sum) > sum->alloc_bytes / 10) return;
    tly_number_percent(share, sizeof share, sum->free_bytes, sum->alloc_bytes);
    fprintf(report->out, "%s of the bytes allocated were freed by then: --sort allocated shows whose they were.\n",
            share);
}

int report_tree(const struct report *report) {
    struct walk walk = {.report = report};
    int result = 0;
    report_table_head(report, "direct");
    if (report->options->tag)
        result = print_matches(&walk);
    else
        print_subtree(&walk, 0, NULL);
    print_hint(report);
    return walk.no_memory ? -ENOMEM : result;
}
