/* summary.c - see summary.h. */
#define _GNU_SOURCE
#include "summary.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/number.h"
#include "offline/label.h"

enum { OTHERS_SHOWN = 4 };

static int width_of(FILE *out) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    if (isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
    int given = columns ? atoi(columns) : 0;
    return given >= 40 ? given : 100;
}

/* At most `columns` characters; of a longer text the end, which says more than the beginning. */
static void print_tail(FILE *out, const char *text, int columns) {
    size_t length = strlen(text);
    int characters = 0;
    for (size_t i = 0; i < length; i++)
        characters += ((unsigned char)text[i] & 0xc0) != 0x80;
    if (characters <= columns) {
        fputs(text, out);
        return;
    }
    fputs("\u2026", out);
    for (characters -= columns - 1; characters > 0 && *text; characters--)
        do
            text++;
        while (((unsigned char)*text & 0xc0) == 0x80);
    fputs(text, out);
}

static void print_path(FILE *out, const struct tly_collector *collector, const char *path) {
    size_t length = strlen(collector->start_directory);
    if (strncmp(path, collector->start_directory, length) == 0 && path[length] == '/') path += length + 1;
    char text[PATH_MAX];
    tly_label_escape(text, sizeof text, path, strlen(path), false);
    fputs(text, out);
}

static void print_end(FILE *out, const struct tly_recorded *recorded) {
    char text[TLY_NUMBER_BYTES];
    const char *name;
    switch (recorded->end_kind) {
    case TLY_END_EXITED: fprintf(out, "exit status %d", recorded->end_value); break;
    case TLY_END_SIGNAL:
        name = sigabbrev_np(recorded->end_value);
        fprintf(out, "killed by %s%s", name ? "SIG" : "signal ", name ? name : "");
        if (!name) fprintf(out, "%d", recorded->end_value);
        break;
    case TLY_END_RUNNING: fputs("still running", out); break;
    case TLY_END_EXEC: fputs("became another program", out); break;
    case TLY_END_UNKNOWN: fputs("ended", out); break;
    }
    if (recorded->wall_ns) fprintf(out, " after %s", tly_number_duration(text, sizeof text, recorded->wall_ns));
}

static void print_figures(FILE *out, const struct tly_recorded *recorded) {
    char size[TLY_NUMBER_BYTES], peak[TLY_NUMBER_BYTES], blocks[TLY_NUMBER_BYTES], count[TLY_NUMBER_BYTES],
        bytes[TLY_NUMBER_BYTES];
    fprintf(out, "tally:   %s live in %s block%s, peak %s; %s allocation%s of %s\n",
            tly_number_size(size, sizeof size, recorded->live_bytes),
            tly_number_exact(blocks, sizeof blocks, recorded->live_blocks), recorded->live_blocks == 1 ? "" : "s",
            tly_number_size(peak, sizeof peak, recorded->peak_bytes),
            tly_number_exact(count, sizeof count, recorded->allocated_blocks),
            recorded->allocated_blocks == 1 ? "" : "s",
            tly_number_size(bytes, sizeof bytes, recorded->allocated_bytes));
}

static void print_main(FILE *out, const struct tly_collector *collector, const struct tly_recorded *recorded) {
    char size[TLY_NUMBER_BYTES], share[TLY_NUMBER_BYTES];
    fprintf(out, "tally: %s, pid %u: ", recorded->program, recorded->pid);
    print_end(out, recorded);
    fputc('\n', out);
    print_figures(out, recorded);
    uint64_t whole = recorded->by_allocated ? recorded->allocated_bytes : recorded->live_bytes;
    if (recorded->top_label[0])
        fprintf(out, "tally:   %s\n",
                recorded->by_allocated ? "nothing is left; most was allocated by" : "most of it is owned by");
    for (int i = 0; i < 3 && recorded->top_label[i]; i++) {
        fprintf(out, "tally:   %12s %7s  ", tly_number_size(size, sizeof size, recorded->top_bytes[i]),
                tly_number_percent(share, sizeof share, recorded->top_bytes[i], whole));
        print_tail(out, recorded->top_label[i], width_of(out) - 32);
        fputc('\n', out);
    }
    fputs("tally:   see it with: tally report ", out);
    print_path(out, collector, recorded->path);
    fputc('\n', out);
}

static void print_other(FILE *out, const struct tly_collector *collector, const struct tly_recorded *recorded) {
    char size[TLY_NUMBER_BYTES], count[TLY_NUMBER_BYTES];
    fprintf(out, "tally:   %s, pid %u: ", recorded->program, recorded->pid);
    print_end(out, recorded);
    fprintf(out, ", %s live, %s allocations: ", tly_number_size(size, sizeof size, recorded->live_bytes),
            tly_number_exact(count, sizeof count, recorded->allocated_blocks));
    print_path(out, collector, recorded->path);
    fputc('\n', out);
}

static int by_importance(const void *a, const void *b) {
    const struct tly_recorded *x = *(const struct tly_recorded *const *)a, *y = *(const struct tly_recorded *const *)b;
    if (x->main != y->main) return x->main ? -1 : 1;
    if (x->live_bytes != y->live_bytes) return x->live_bytes > y->live_bytes ? -1 : 1;
    if (x->allocated_bytes != y->allocated_bytes) return x->allocated_bytes > y->allocated_bytes ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

void tly_summary_print(FILE *out, const struct tly_collector *collector) {
    size_t count = collector->recorded_count;
    const struct tly_recorded **order = calloc(count + 1, sizeof *order);
    if (!order) return;
    for (size_t i = 0; i < count; i++)
        order[i] = &collector->recorded[i];
    qsort(order, count, sizeof *order, by_importance);
    bool has_main = count > 0 && order[0]->main;
    if (!has_main && collector->never_started)
        fputs("tally: nobody has begun the accounting (tags:false, and no 'tally start'): nothing is recorded\n", out);
    else if (!has_main)
        fputs(
            "tally: the program itself left no account: it never allocated, its account could not be kept outside it,\n"
            "tally:   or the library was kept out of it (a changed LD_PRELOAD, another C library); see tally doctor\n",
            out);
    else
        print_main(out, collector, order[0]);
    size_t others = count - has_main, shown = others > OTHERS_SHOWN ? OTHERS_SHOWN : others;
    if (others)
        fprintf(out, "tally: %zu other account%s of child processes and exec:\n", others, others == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++)
        print_other(out, collector, order[has_main + i]);
    if (others > shown) fprintf(out, "tally:   ... and %zu more\n", others - shown);
    if (collector->failures)
        fprintf(out, "tally: %zu account%s could not be recorded\n", collector->failures,
                collector->failures == 1 ? "" : "s");
    free(order);
}
