/* report_head.c - the lines above the table: which process, how it ended, how exact, what went past, what it cost. */
#define _GNU_SOURCE
#include "report.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "offline/label.h"

static void title(const struct report *report, const char *name) {
    if (report->colour) fputs("\033[1m", report->out);
    fprintf(report->out, "  %-10s", name);
    if (report->colour) fputs("\033[0m", report->out);
}

static void print_escaped(const struct report *report, struct tly_bytes text) {
    char buffer[512];
    if (!text.bytes) return;
    size_t length = tly_label_escape(buffer, sizeof buffer, text.bytes, text.length, false);
    fprintf(report->out, "%s%s", buffer, length >= sizeof buffer ? "\u2026" : "");
}

/* Arguments, with those quoted that a shell would not take as they are. At most a few lines of them. */
static void print_command(const struct report *report, struct tly_bytes line) {
    size_t printed = 0;
    for (uint32_t at = 0; at < line.length;) {
        const char *argument = line.bytes + at;
        uint32_t length = (uint32_t)strnlen(argument, line.length - at);
        bool plain = length != 0;
        for (uint32_t i = 0; i < length; i++) {
            bool safe = (argument[i] >= 'a' && argument[i] <= 'z') || (argument[i] >= 'A' && argument[i] <= 'Z') ||
                        (argument[i] >= '0' && argument[i] <= '9') || strchr("-_./=:,+@%^", argument[i]) != NULL;
            plain = plain && safe && argument[i] != '\0';
        }
        if (at) fputc(' ', report->out);
        if (!plain) fputc('\'', report->out);
        print_escaped(report, (struct tly_bytes){argument, length});
        if (!plain) fputc('\'', report->out);
        at += length + 1;
        printed += length + 1;
        if (printed > 400 && at < line.length) {
            fputs(" \u2026", report->out);
            return;
        }
    }
}

static void print_time(const struct report *report, uint64_t ns) {
    char text[64] = "";
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm parts;
    if (localtime_r(&seconds, &parts)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &parts);
    fputs(*text ? text : "?", report->out);
}

static void print_size(const struct report *report, uint64_t bytes) {
    char exact[TLY_NUMBER_BYTES], size[TLY_NUMBER_BYTES];
    fprintf(report->out, "%s bytes", tly_number_exact(exact, sizeof exact, bytes));
    if (bytes >= 1024) fprintf(report->out, " (%s)", tly_number_size(size, sizeof size, bytes));
}

static const char *count(char *text, uint64_t number, const char *one, const char *many) {
    char digits[TLY_NUMBER_BYTES];
    snprintf(text, 96, "%s %s", tly_number_exact(digits, sizeof digits, number), number == 1 ? one : many);
    return text;
}

static void print_process(const struct report *report) {
    const struct tly_process_facts *process = &report->snapshot->process;
    title(report, "process");
    if (process->command_line.length)
        print_command(report, process->command_line);
    else if (process->program.length)
        print_escaped(report, process->program);
    else
        fputs("not known", report->out);
    fputc('\n', report->out);
    title(report, "");
    fprintf(report->out, "pid %u", process->pid);
    if (process->ppid) fprintf(report->out, ", child of %u", process->ppid);
    if (process->host.length) {
        fputs(", on host ", report->out);
        print_escaped(report, process->host);
    }
    if (process->directory.length) {
        fputs(", in ", report->out);
        print_escaped(report, process->directory);
    }
    fputc('\n', report->out);
}

static void print_end(const struct report *report) {
    const struct tly_process_facts *process = &report->snapshot->process;
    char text[TLY_NUMBER_BYTES];
    const char *name;
    title(report, "ended");
    switch (process->end_kind) {
    case TLY_END_RUNNING: fputs("still running when this was taken", report->out); break;
    case TLY_END_EXITED: fprintf(report->out, "exit status %d", process->end_value); break;
    case TLY_END_SIGNAL:
        name = sigabbrev_np(process->end_value);
        fprintf(report->out, "killed by signal %d%s%s%s", process->end_value, name ? ", SIG" : "", name ? name : "",
                process->core_dumped ? " (core dumped)" : "");
        break;
    case TLY_END_EXEC: fputs("became another program (exec)", report->out); break;
    default:
        fputs(process->region_flags & TLY_REGION_EXITED ? "exited; its status is not known" : "gone; how is not known",
              report->out);
        break;
    }
    if (process->wall_ns) fprintf(report->out, ", after %s", tly_number_duration(text, sizeof text, process->wall_ns));
    if (process->user_ns | process->system_ns) {
        fprintf(report->out, " (user %s", tly_number_duration(text, sizeof text, process->user_ns));
        fprintf(report->out, ", system %s)", tly_number_duration(text, sizeof text, process->system_ns));
    }
    if (process->max_rss_bytes)
        fprintf(report->out, ", max RSS %s", tly_number_size(text, sizeof text, process->max_rss_bytes));
    fputc('\n', report->out);
    title(report, "taken");
    print_time(report, process->taken_ns);
    if (process->started_ns == 0) fputs("; accounting was never started", report->out);
    if (process->cleared_ns) {
        fputs("; cleared at ", report->out);
        print_time(report, process->cleared_ns);
        fputs(": only what was allocated since", report->out);
    }
    if (process->state == TLY_STATE_STOPPED) fputs("; accounting was stopped by then", report->out);
    fputc('\n', report->out);
}

static void print_certainty(const struct report *report) {
    const struct tly_snapshot *snapshot = report->snapshot;
    char text[96];
    title(report, "figures");
    if (snapshot->damaged_records)
        fprintf(report->out, "NOT exact: %s left out, the account is damaged",
                count(text, snapshot->damaged_records, "record", "records"));
    else if (snapshot->counters.untracked_allocs)
        fprintf(report->out, "NOT exact: %s",
                count(text, snapshot->counters.untracked_allocs, "allocation could not be recorded",
                      "allocations could not be recorded"));
    else if (snapshot->exact)
        fputs("exact, in bytes as requested", report->out);
    else
        fputs("exact counters, read one after the other while the program ran: each is right at some moment of the "
              "reading",
              report->out);
    if (snapshot->counters.index_overflow)
        fprintf(report->out, "; %s, and billed to the tag above",
                count(text, snapshot->counters.index_overflow, "tag found no room", "tags found no room"));
    fputc('\n', report->out);
    if (!snapshot->note.bytes) return;
    title(report, "NOTE");
    print_escaped(report, snapshot->note);
    fputc('\n', report->out);
}

static void print_totals(const struct report *report) {
    const struct tly_snapshot_totals *totals = &report->snapshot->totals;
    const struct tly_balance *sum = &totals->sum;
    char text[96];
    title(report, "live");
    print_size(report, tly_live_bytes(sum));
    fprintf(report->out, " in %s\n", count(text, tly_live_blocks(sum), "block", "blocks"));
    title(report, "peak");
    print_size(report, totals->peak_bytes);
    if (totals->peak_error_bytes) {
        fputs(", right to within ", report->out);
        print_size(report, totals->peak_error_bytes);
    }
    uint64_t loaded_ns = report->snapshot->process.loaded_ns;
    if (loaded_ns && totals->peak_ns > loaded_ns)
        fprintf(report->out, ", %s after the start",
                tly_number_duration(text, sizeof text, totals->peak_ns - loaded_ns));
    fputc('\n', report->out);
    title(report, "allocated");
    print_size(report, sum->alloc_bytes);
    fprintf(report->out, " in %s", count(text, sum->alloc_blocks, "allocation", "allocations"));
    fprintf(report->out, ", %s\n", count(text, sum->free_blocks, "free", "frees"));
    if (totals->inherited_blocks == 0) return;
    title(report, "");
    fprintf(report->out, "of these, %s with ", count(text, totals->inherited_blocks, "block", "blocks"));
    print_size(report, totals->inherited_bytes);
    fprintf(report->out, " came from the parent (pid %u) at the fork\n", report->snapshot->process.forked_from);
}

static void print_off_radar(const struct report *report) {
    const struct tly_snapshot_counters *counters = &report->snapshot->counters;
    const struct {
        uint64_t number;
        const char *one, *many;
    } parts[] = {
        {counters->off_radar_allocs, "allocation before the start", "allocations before the start"},
        {counters->unmatched_frees, "free of an unknown block", "frees of unknown blocks"},
        {counters->untracked_allocs, "allocation that could not be recorded", "allocations that could not be recorded"},
        {counters->missed_frees, "free that was not seen", "frees that were not seen"},
        {counters->pop_errors, "pop without a push", "pops without a push"},
        {counters->cut_names, "tag name cut to 4,096 bytes", "tag names cut to 4,096 bytes"},
    };
    const char *separator = "";
    char text[96];
    title(report, "off radar");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].number == 0) continue;
        fprintf(report->out, "%s%s", separator, count(text, parts[i].number, parts[i].one, parts[i].many));
        separator = ", ";
    }
    if (!*separator) fputs("nothing", report->out);
    fputc('\n', report->out);
}

static void print_overhead(const struct report *report) {
    const struct tly_snapshot_counters *counters = &report->snapshot->counters;
    static const char *const kinds[TLY_OWN_COUNT] = {"account", "block map", "threads", "other"};
    uint64_t sum = 0;
    char text[TLY_NUMBER_BYTES], more[96];
    const char *separator = " (";
    for (int i = 0; i < TLY_OWN_COUNT; i++)
        sum += counters->own_bytes[i];
    title(report, "overhead");
    fprintf(report->out, "Tally's own memory %s", tly_number_size(text, sizeof text, sum));
    for (int i = 0; i < TLY_OWN_COUNT; i++) {
        if (counters->own_bytes[i] == 0) continue;
        fprintf(report->out, "%s%s %s", separator, kinds[i],
                tly_number_size(text, sizeof text, counters->own_bytes[i]));
        separator = ", ";
    }
    fprintf(report->out, "%s; ", *separator == ',' ? ")" : "");
    fprintf(report->out, "%s, ", count(more, counters->threads, "thread", "threads"));
    fprintf(report->out, "%s\n", count(more, counters->nodes, "node", "nodes"));
}

/* Modules whose callers have no names, and why. */
static void print_symbols(const struct report *report) {
    static const char *const reasons[] = {
        [TLY_SYMBOLS_NONE] = "has no symbols (install its debug symbols or do not strip it)",
        [TLY_SYMBOLS_NO_FILE] = "is gone or cannot be read",
        [TLY_SYMBOLS_OTHER] = "is another build on disk than the one that ran",
    };
    uint32_t shown = 0, left = 0;
    for (uint32_t i = 0; i < report->snapshot->module_count; i++) {
        const struct tly_snapshot_module *module = &report->snapshot->modules[i];
        if (module->symbols < TLY_SYMBOLS_NONE || module->symbols > TLY_SYMBOLS_OTHER) continue;
        if (shown == 3) {
            left++;
            continue;
        }
        title(report, shown++ ? "" : "no names");
        print_escaped(report, module->path);
        fprintf(report->out, " %s\n", reasons[module->symbols]);
    }
    if (left == 0) return;
    title(report, "");
    fprintf(report->out, "and %" PRIu32 " more\n", left);
}

int report_head(const struct report *report) {
    if (report->colour) fputs("\033[1m", report->out);
    print_escaped(report, (struct tly_bytes){report->path, (uint32_t)strlen(report->path)});
    if (report->colour) fputs("\033[0m", report->out);
    fputc('\n', report->out);
    print_process(report);
    print_end(report);
    print_certainty(report);
    print_totals(report);
    print_off_radar(report);
    print_overhead(report);
    print_symbols(report);
    fputc('\n', report->out);
    return 0;
}
