/* report_csv.c - the tree as comma-separated values (RFC 4180), one line per row; docs/formats.md has the columns. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "offline/label.h"

/* Paths of deeper rows are left empty: their lengths would add up to the square of the depth. */
enum { MOST_PATH_DEPTH = 256 };

static void print_field(FILE *out, const char *text) {
    if (!strpbrk(text, ",\"\r\n") && text[0] != ' ') {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static int print_bytes(FILE *out, struct tly_bytes bytes) {
    if (!bytes.bytes) return 0;
    size_t length = tly_label_escape(NULL, 0, bytes.bytes, bytes.length, false);
    char *text = malloc(length + 1);
    if (!text) return -ENOMEM;
    tly_label_escape(text, length + 1, bytes.bytes, bytes.length, false);
    print_field(out, text);
    free(text);
    return 0;
}

static int print_row(const struct report *report, uint32_t row, uint32_t depth) {
    const struct tly_snapshot *snapshot = report->snapshot;
    const struct tly_row *at = &report->rollup.rows[row];
    const struct tly_snapshot_site *site = at->site == TLY_NONE ? NULL : &snapshot->sites[at->site];
    FILE *out = report->out;
    char *name = report_site_label(report, at->site);
    char *path = depth <= MOST_PATH_DEPTH ? report_row_path(report, row) : strdup("");
    int result = name && path ? 0 : -ENOMEM;
    if (result == 0) {
        print_field(out, report->path);
        fprintf(out, ",%u,", row);
        if (row != 0) fprintf(out, "%u", at->parent);
        fprintf(out, ",%u,%s,", depth, report_kind_name(site ? site->kind : 0));
        print_field(out, name);
        fputc(',', out);
        print_field(out, path);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, tly_live_bytes(&at->inclusive),
                tly_live_bytes(&at->direct), tly_live_blocks(&at->inclusive), tly_live_blocks(&at->direct));
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", at->inclusive.alloc_bytes,
                at->direct.alloc_bytes, at->inclusive.alloc_blocks, at->direct.alloc_blocks);
        if (site && site->module != TLY_NONE) result = print_bytes(out, snapshot->modules[site->module].path);
        fputc(',', out);
        if (site && site->kind == TLY_SITE_CALLER) fprintf(out, "0x%" PRIx64, site->value);
        const struct tly_snapshot_frame *frame = NULL;
        if (site && site->frame_count)
            frame = &snapshot->frames[site->first_frame + tly_label_frame_choice(snapshot, site)];
        fputc(',', out);
        if (frame && result == 0) result = print_bytes(out, frame->function);
        fputc(',', out);
        if (frame && result == 0) result = print_bytes(out, frame->file);
        fputc(',', out);
        if (frame && frame->line) fprintf(out, "%u", frame->line);
        fputs("\r\n", out);
    }
    free(name);
    free(path);
    return result;
}

int report_csv(const struct report *report) {
    enum tly_rollup_sort sort = report->options->sort;
    uint64_t whole = tly_rollup_figure(&report->rollup.rows[0].inclusive, sort);
    uint64_t threshold = report_threshold(report->options, whole, NULL);
    uint32_t row = 0, depth = 0, matched_depth = UINT32_MAX; /* depth of the match that we are below */
    int result = 0;
    fputs("file,id,parent,depth,kind,name,path,bytes,bytes_direct,blocks,blocks_direct,allocated_bytes,"
          "allocated_bytes_direct,allocated_blocks,allocated_blocks_direct,module,address,function,source,line\r\n",
          report->out);
    do {
        const struct tly_row *at = &report->rollup.rows[row];
        bool shown = tly_rollup_figure(&at->inclusive, sort) >= threshold;
        if (depth <= matched_depth)
            matched_depth = report->options->tag && report_matches(report, row) ? depth : UINT32_MAX;
        if (shown && (!report->options->tag || matched_depth != UINT32_MAX)) result = print_row(report, row, depth);
        row = report_next_row(report, 0, row, shown && depth < report->options->depth, &depth);
    } while (row != 0 && result == 0);
    return result;
}
