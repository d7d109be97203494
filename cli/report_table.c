/* report_table.c - lines of figures with a label: columns, bars, colours, and cutting to the terminal's width. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "offline/label.h"

enum { SIZE_COLUMNS = 9, EXACT_COLUMNS = 19, COUNT_COLUMNS = 8, SHARE_COLUMNS = 7, BAR_COLUMNS = 10, GAP = 2 };

static bool is_cumulative(const struct report *report) {
    return report->options->sort == TLY_SORT_ALLOCATED || report->options->sort == TLY_SORT_ALLOCATIONS;
}

static bool by_blocks(const struct report *report) {
    return report->options->sort == TLY_SORT_BLOCKS || report->options->sort == TLY_SORT_ALLOCATIONS;
}

static int figure_columns(const struct report *report, bool count) {
    if (report->options->exact_figures) return EXACT_COLUMNS;
    return count ? COUNT_COLUMNS : SIZE_COLUMNS;
}

static uint32_t columns_before_label(const struct report *report) {
    uint32_t columns = (uint32_t)(2 * figure_columns(report, false) + figure_columns(report, true)) + SHARE_COLUMNS;
    columns += 3 * GAP + GAP;
    return report->bars ? columns + BAR_COLUMNS + GAP : columns;
}

static void print_figure(const struct report *report, uint64_t figure, bool count) {
    char text[TLY_NUMBER_BYTES];
    if (report->options->exact_figures)
        tly_number_exact(text, sizeof text, figure);
    else if (count)
        tly_number_count(text, sizeof text, figure);
    else
        tly_number_size(text, sizeof text, figure);
    fprintf(report->out, "%*s", figure_columns(report, count), text);
}

/* A bar in eighths of a character. */
static void print_bar(const struct report *report, uint64_t part, uint64_t whole) {
    static const char *const eighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
    uint64_t length = whole ? (uint64_t)((unsigned __int128)part * BAR_COLUMNS * 8 / whole) : 0;
    if (length > BAR_COLUMNS * 8) length = BAR_COLUMNS * 8;
    uint64_t used = length / 8 + (length % 8 != 0);
    if (report->colour) fputs("\033[36m", report->out);
    for (uint64_t i = 0; i < length / 8; i++)
        fputs("\u2588", report->out);
    fputs(eighths[length % 8], report->out);
    if (report->colour) fputs("\033[0m", report->out);
    fprintf(report->out, "%*s", (int)(BAR_COLUMNS - used), "");
}

/* ---- Labels ----------------------------------------------------------------------------------------------------- */

/* Columns that the character at `text` takes; `bytes`: its length. East Asian wide ones take two. */
static uint32_t character_columns(const char *text, size_t *bytes) {
    const unsigned char *b = (const unsigned char *)text;
    *bytes = tly_utf8_length(text, strlen(text));
    if (*bytes == 0) *bytes = 1;
    uint32_t code = 0;
    if (*bytes == 3) code = (b[0] & 0xfu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
    if (*bytes == 4) code = (b[0] & 7u) << 18 | (b[1] & 0x3fu) << 12 | (b[2] & 0x3fu) << 6 | (b[3] & 0x3fu);
    bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf && code != 0x303f) ||
                (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
                (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1faff) ||
                (code >= 0x20000 && code <= 0x3fffd);
    return wide ? 2 : 1;
}

static uint32_t text_columns(const char *text) {
    uint32_t columns = 0;
    for (size_t bytes; *text; text += bytes)
        columns += character_columns(text, &bytes);
    return columns;
}

/* Cuts a label that is too wide. The place in the source at its end ("  file.c:12") stays as long as there is room. */
static void print_label(const struct report *report, const char *label, uint32_t room) {
    if (report->width == 0 || text_columns(label) <= room) {
        fputs(label, report->out);
        return;
    }
    const char *tail = "";
    for (const char *at = label; (at = strstr(at, "  ")) != NULL; at++)
        tail = at;
    uint32_t tail_columns = text_columns(tail);
    if (tail_columns + 8 > room) {
        tail = "";
        tail_columns = 0;
    }
    uint32_t left = room > tail_columns + 1 ? room - tail_columns - 1 : 0;
    size_t bytes;
    for (const char *at = label; *at; at += bytes) {
        uint32_t columns = character_columns(at, &bytes);
        if (columns > left) break;
        fwrite(at, 1, bytes, report->out);
        left -= columns;
    }
    fprintf(report->out, "\u2026%s", tail);
}

/* On a terminal, labels keep at least half of the room beside the figures. */
static uint32_t fitting_indent(const struct report *report, uint32_t indent) {
    uint32_t before = columns_before_label(report);
    uint32_t most = report->width > before ? (report->width - before) / 2 : 0;
    return report->width != 0 && indent > most ? most : indent;
}

static uint32_t label_room(const struct report *report, uint32_t indent) {
    uint32_t before = columns_before_label(report) + indent;
    return report->width > before + 4 ? report->width - before : 4;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------ */

void report_table_head(const struct report *report, const char *direct_title) {
    bool cumulative = is_cumulative(report);
    if (report->options->sort == TLY_SORT_ALLOCATED && !report->options->sort_given)
        fputs("Everything was freed by then. This is who had allocated how much:\n", report->out);
    if (report->colour) fputs("\033[1m", report->out);
    fprintf(report->out, "%*s%*s%*s%*s%*s%*s%*s", figure_columns(report, false), cumulative ? "allocated" : "bytes",
            GAP, "", figure_columns(report, false), direct_title, GAP, "", figure_columns(report, true),
            cumulative ? "allocs" : "blocks", GAP, "", SHARE_COLUMNS, "share");
    if (report->colour) fputs("\033[0m", report->out);
    fputc('\n', report->out);
}

static uint64_t bytes_of(const struct report *report, const struct tly_balance *balance) {
    return is_cumulative(report) ? balance->alloc_bytes : tly_live_bytes(balance);
}

static uint64_t blocks_of(const struct report *report, const struct tly_balance *balance) {
    return is_cumulative(report) ? balance->alloc_blocks : tly_live_blocks(balance);
}

void report_table_row(const struct report *report, const struct report_row *row) {
    const struct tly_balance *whole = &report->rollup.rows[0].inclusive;
    uint32_t indent = fitting_indent(report, row->indent);
    char share[TLY_NUMBER_BYTES];
    uint64_t part = bytes_of(report, row->inclusive), all = bytes_of(report, whole);
    if (by_blocks(report)) {
        part = blocks_of(report, row->inclusive);
        all = blocks_of(report, whole);
    }
    if (report->colour && row->faint) fputs("\033[2m", report->out);
    print_figure(report, bytes_of(report, row->inclusive), false);
    fprintf(report->out, "%*s", GAP, "");
    if (row->direct)
        print_figure(report, bytes_of(report, row->direct), false);
    else
        fprintf(report->out, "%*s", figure_columns(report, false), "");
    fprintf(report->out, "%*s", GAP, "");
    print_figure(report, blocks_of(report, row->inclusive), true);
    tly_number_percent(share, sizeof share, part, all);
    fprintf(report->out, "%*s%*s%*s", GAP, "", SHARE_COLUMNS, share, GAP, "");
    if (report->bars) {
        print_bar(report, part, all);
        fprintf(report->out, "%*s", GAP, "");
        if (report->colour && row->faint) fputs("\033[2m", report->out); /* the bar's colour ended it */
    }
    fprintf(report->out, "%*s", (int)indent, "");
    print_label(report, row->label, label_room(report, indent));
    if (report->colour && row->faint) fputs("\033[0m", report->out);
    fputc('\n', report->out);
}

void report_table_note(const struct report *report, uint32_t indent, const char *label) {
    indent = fitting_indent(report, indent);
    fprintf(report->out, "%*s", (int)(columns_before_label(report) + indent), "");
    if (report->colour) fputs("\033[2m", report->out);
    print_label(report, label, label_room(report, indent));
    if (report->colour) fputs("\033[0m", report->out);
    fputc('\n', report->out);
}

static void print_frame(const struct report *report, uint32_t indent, const char *how,
                        const struct tly_snapshot_frame *frame, uint32_t further) {
    size_t how_length = strlen(how), length = tly_label_frame(NULL, 0, frame);
    char *text = malloc(how_length + length + 32);
    if (!text) return;
    memcpy(text, how, how_length);
    tly_label_frame(text + how_length, length + 1, frame);
    if (further) sprintf(text + how_length + length, " (and %u deeper)", further);
    report_table_note(report, indent, text);
    free(text);
}

/* The label names one function of the chain; these are the ones inlined in it, then the ones it was inlined in. How
 * deep a library nests its own calls is of little use: of those inside, the first is shown, all with --full. */
void report_table_frames(const struct report *report, uint32_t indent, uint32_t number) {
    const struct tly_snapshot *snapshot = report->snapshot;
    if (number == TLY_NONE) return;
    const struct tly_snapshot_site *site = &snapshot->sites[number];
    if (site->frame_count < 2) return;
    const struct tly_snapshot_frame *frames = &snapshot->frames[site->first_frame];
    uint32_t choice = tly_label_frame_choice(snapshot, site);
    bool all = report->options->full;
    for (uint32_t i = choice; i-- > 0 && (all || i + 1 == choice);)
        print_frame(report, indent, "with inlined ", &frames[i], all ? 0 : i);
    for (uint32_t i = choice + 1; i < site->frame_count; i++)
        print_frame(report, indent, "inlined by ", &frames[i], 0);
}
