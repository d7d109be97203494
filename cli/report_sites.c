/* report_sites.c - the flat table: each call site once, wherever it stands in the tree. */
#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "offline/label.h"

struct flat_site {
    uint32_t site, row; /* row: one of the rows it stands in */
    struct tly_balance inclusive, direct;
};

static int compare_flat(const void *a, const void *b, void *context) {
    const struct flat_site *x = a, *y = b;
    const struct report *report = context;
    enum tly_rollup_sort sort = report->options->sort;
    if (sort != TLY_SORT_NAME) {
        const enum tly_rollup_sort keys[] = {sort, TLY_SORT_BYTES, TLY_SORT_ALLOCATED, TLY_SORT_ALLOCATIONS};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            uint64_t left = tly_rollup_figure(&x->inclusive, keys[i]),
                     right = tly_rollup_figure(&y->inclusive, keys[i]);
            if (left != right) return left > right ? -1 : 1;
        }
    }
    return tly_rollup_compare_sites(report->snapshot, x->site, y->site);
}

/* One entry per site that is in the tree. Folded, a path has each site once, so nothing is counted twice. */
static struct flat_site *gather(const struct report *report, uint32_t *count) {
    uint32_t sites = report->snapshot->site_count;
    struct flat_site *flat = calloc((size_t)sites + 1, sizeof *flat);
    if (!flat) return NULL;
    for (uint32_t i = 1; i < report->rollup.count; i++) {
        const struct tly_row *row = &report->rollup.rows[i];
        struct flat_site *entry = &flat[row->site];
        entry->row = i;
        tly_balance_add(&entry->inclusive, &row->inclusive);
        tly_balance_add(&entry->direct, &row->direct);
    }
    *count = 0;
    for (uint32_t i = 0; i < sites; i++) {
        flat[i].site = i;
        if (flat[i].row == 0) continue;
        if (!report->options->tag || report_matches(report, flat[i].row)) flat[(*count)++] = flat[i];
    }
    qsort_r(flat, *count, sizeof *flat, compare_flat, (void *)(uintptr_t)report);
    return flat;
}

static int print_site(const struct report *report, const struct flat_site *entry) {
    const struct tly_snapshot_site *site = &report->snapshot->sites[entry->site];
    size_t name_bytes = tly_label_site(NULL, 0, report->snapshot, entry->site) + 1;
    bool placed = site->kind == TLY_SITE_CALLER && site->module != TLY_NONE && site->frame_count != 0;
    size_t module_bytes = placed ? tly_label_module(NULL, 0, report->snapshot, site->module) + 1 : 0;
    char *text = malloc(name_bytes + module_bytes + 32), *at = text;
    if (!text) return -ENOMEM;
    at += sprintf(at, "%-8s", report_kind_name(site->kind));
    if (placed) {
        at += tly_label_module(at, module_bytes, report->snapshot, site->module);
        at += sprintf(at, ": ");
    }
    tly_label_site(at, name_bytes, report->snapshot, entry->site);
    struct report_row line = {&entry->inclusive, &entry->direct, text, 0, false};
    report_table_row(report, &line);
    report_table_frames(report, 12, entry->site);
    free(text);
    return 0;
}

int report_sites(const struct report *report) {
    uint32_t count, hidden = 0;
    struct flat_site *flat = gather(report, &count);
    char number[TLY_NUMBER_BYTES];
    int result = 0;
    if (!flat) return -ENOMEM;
    enum tly_rollup_sort sort = report->options->sort;
    struct report_largest largest = {0};
    for (uint32_t i = 0; i < count; i++)
        report_largest_add(&largest, tly_rollup_figure(&flat[i].inclusive, sort));
    uint64_t whole = tly_rollup_figure(&report->rollup.rows[0].inclusive, sort);
    uint64_t threshold = report_threshold(report->options, whole, &largest);
    report_table_head(report, "direct");
    const struct tly_row *root = &report->rollup.rows[0];
    if (!report->options->tag && tly_rollup_figure(&root->direct, sort) >= threshold &&
        root->direct.alloc_blocks != 0) {
        struct report_row line = {&root->direct, &root->direct, "root    __root (no call site)", 0, false};
        report_table_row(report, &line);
    }
    for (uint32_t i = 0; i < count && result == 0; i++) {
        if (tly_rollup_figure(&flat[i].inclusive, sort) < threshold)
            hidden++;
        else
            result = print_site(report, &flat[i]);
    }
    free(flat);
    if (hidden)
        fprintf(report->out, "\u2026 %s more below the threshold (--min 0 shows all)\n",
                tly_number_exact(number, sizeof number, hidden));
    fputs("A block counts for every call site on its path: shares add up to more than 100 %.\n", report->out);
    return result;
}
