/*
 * report_json.c - the report as one JSON object on one line; docs/formats.md has its fields.
 *
 * The tree is a flat list of nodes with their parents: nested objects as deep as paths can be would break most parsers.
 * Names are byte strings. One that is valid UTF-8 is a JSON string; in any other the wrong bytes are U+FFFD, and all of
 * them stand in `<field>_hex` beside it.
 */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "offline/label.h"

static void print_text(FILE *out, const char *bytes, size_t length) {
    fputc('"', out);
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)bytes[i];
        size_t character = tly_utf8_length(bytes + i, length - i);
        if (character == 0)
            fputs("\\ufffd", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fwrite(bytes + i, 1, character, out);
        i += character ? character : 1;
    }
    fputc('"', out);
}

static bool is_utf8(struct tly_bytes bytes) {
    for (uint32_t i = 0; i < bytes.length;) {
        size_t character = tly_utf8_length(bytes.bytes + i, bytes.length - i);
        if (character == 0) return false;
        i += (uint32_t)character;
    }
    return true;
}

/* ,"field":"..." and, where it is needed, ,"field_hex":"..."; null if unknown. */
static void print_bytes(FILE *out, const char *field, struct tly_bytes bytes) {
    fprintf(out, ",\"%s\":", field);
    if (!bytes.bytes) {
        fputs("null", out);
        return;
    }
    print_text(out, bytes.bytes, bytes.length);
    if (is_utf8(bytes)) return;
    fprintf(out, ",\"%s_hex\":\"", field);
    for (uint32_t i = 0; i < bytes.length; i++)
        fprintf(out, "%02x", (unsigned char)bytes.bytes[i]);
    fputc('"', out);
}

static void print_number(FILE *out, const char *field, uint64_t number) {
    fprintf(out, ",\"%s\":%" PRIu64, field, number);
}

static const char *end_name(uint32_t kind) {
    switch (kind) {
    case TLY_END_RUNNING: return "running";
    case TLY_END_EXITED: return "exited";
    case TLY_END_SIGNAL: return "signal";
    case TLY_END_EXEC: return "exec";
    default: return "unknown";
    }
}

static void print_arguments(FILE *out, struct tly_bytes line) {
    fputs(",\"arguments\":[", out);
    for (uint32_t at = 0; at < line.length;) {
        uint32_t length = (uint32_t)strnlen(line.bytes + at, line.length - at);
        if (at) fputc(',', out);
        print_text(out, line.bytes + at, length);
        at += length + 1;
    }
    fputc(']', out);
}

static void print_process(FILE *out, const struct tly_process_facts *process) {
    fprintf(out, ",\"process\":{\"pid\":%u", process->pid);
    print_number(out, "ppid", process->ppid);
    print_number(out, "uid", process->uid);
    print_number(out, "forked_from", process->forked_from);
    print_bytes(out, "program", process->program);
    print_arguments(out, process->command_line);
    print_bytes(out, "directory", process->directory);
    print_bytes(out, "host", process->host);
    print_bytes(out, "options", process->options);
    static const char *const states[] = {"off", "on", "stopped"};
    fprintf(out, ",\"accounting\":\"%s\"", process->state <= TLY_STATE_STOPPED ? states[process->state] : "unknown");
    fprintf(out, ",\"end\":\"%s\"", end_name(process->end_kind));
    if (process->end_kind == TLY_END_EXITED) fprintf(out, ",\"exit_status\":%d", process->end_value);
    if (process->end_kind == TLY_END_SIGNAL)
        fprintf(out, ",\"signal\":%d,\"core_dumped\":%s", process->end_value, process->core_dumped ? "true" : "false");
    print_number(out, "loaded_ns", process->loaded_ns);
    print_number(out, "started_ns", process->started_ns);
    print_number(out, "cleared_ns", process->cleared_ns);
    print_number(out, "ended_ns", process->ended_ns);
    print_number(out, "taken_ns", process->taken_ns);
    print_number(out, "wall_ns", process->wall_ns);
    print_number(out, "user_ns", process->user_ns);
    print_number(out, "system_ns", process->system_ns);
    print_number(out, "max_rss_bytes", process->max_rss_bytes);
    fputc('}', out);
}

static void print_totals(FILE *out, const struct tly_snapshot_totals *totals) {
    fprintf(out, ",\"totals\":{\"bytes\":%" PRIu64, tly_live_bytes(&totals->sum));
    print_number(out, "blocks", tly_live_blocks(&totals->sum));
    print_number(out, "allocated_bytes", totals->sum.alloc_bytes);
    print_number(out, "allocated_blocks", totals->sum.alloc_blocks);
    print_number(out, "freed_bytes", totals->sum.free_bytes);
    print_number(out, "freed_blocks", totals->sum.free_blocks);
    print_number(out, "peak_bytes", totals->peak_bytes);
    print_number(out, "peak_error_bytes", totals->peak_error_bytes);
    print_number(out, "peak_ns", totals->peak_ns);
    print_number(out, "inherited_bytes", totals->inherited_bytes);
    print_number(out, "inherited_blocks", totals->inherited_blocks);
    fputc('}', out);
}

static void print_counters(FILE *out, const struct tly_snapshot_counters *counters) {
    fprintf(out, ",\"off_radar\":{\"allocations_before_start\":%" PRIu64, counters->off_radar_allocs);
    print_number(out, "unmatched_frees", counters->unmatched_frees);
    print_number(out, "untracked_allocations", counters->untracked_allocs);
    print_number(out, "missed_frees", counters->missed_frees);
    print_number(out, "pop_errors", counters->pop_errors);
    print_number(out, "cut_names", counters->cut_names);
    fprintf(out, "},\"overhead\":{\"account_bytes\":%" PRIu64, counters->own_bytes[TLY_OWN_REGION]);
    print_number(out, "block_map_bytes", counters->own_bytes[TLY_OWN_BLOCK_MAP]);
    print_number(out, "thread_bytes", counters->own_bytes[TLY_OWN_THREADS]);
    print_number(out, "other_bytes", counters->own_bytes[TLY_OWN_OTHER]);
    print_number(out, "threads", counters->threads);
    print_number(out, "spills", counters->spills);
    print_number(out, "consolidations", counters->consolidations);
    print_number(out, "index_overflow", counters->index_overflow);
    print_number(out, "nodes", counters->nodes);
    print_number(out, "sites", counters->sites);
    fputc('}', out);
}

static void print_modules(FILE *out, const struct tly_snapshot *snapshot) {
    static const char *const states[] = {"not_sought", "lines", "names", "none", "no_file", "other_build"};
    fputs(",\"modules\":[", out);
    for (uint32_t i = 0; i < snapshot->module_count; i++) {
        const struct tly_snapshot_module *module = &snapshot->modules[i];
        fprintf(out, "%s{\"id\":%u", i ? "," : "", i);
        print_bytes(out, "path", module->path);
        fputs(",\"build_id\":\"", out);
        for (uint32_t k = 0; k < module->build_id_bytes; k++)
            fprintf(out, "%02x", module->build_id[k]);
        fprintf(out, "\",\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"bias\":%" PRIu64, module->start, module->end,
                module->bias);
        fprintf(out, ",\"symbols\":\"%s\"}", states[module->symbols]);
    }
    fputc(']', out);
}

static void print_site(const struct report *report, uint32_t number) {
    const struct tly_snapshot *snapshot = report->snapshot;
    const struct tly_snapshot_site *site = &snapshot->sites[number];
    FILE *out = report->out;
    fprintf(out, "{\"id\":%u,\"kind\":\"%s\"", number, report_kind_name(site->kind));
    if (site->name.bytes) print_bytes(out, "name", site->name);
    if (site->module != TLY_NONE) print_number(out, "module", site->module);
    if (site->kind == TLY_SITE_CALLER) {
        print_number(out, "address", site->value);
        fputs(",\"frames\":[", out);
        for (uint32_t i = 0; i < site->frame_count; i++) {
            const struct tly_snapshot_frame *frame = &snapshot->frames[site->first_frame + i];
            fprintf(out, "%s{\"line\":%u", i ? "," : "", frame->line);
            print_bytes(out, "function", frame->function);
            print_bytes(out, "file", frame->file);
            fputc('}', out);
        }
        fputc(']', out);
    }
    fputc('}', out);
}

static int print_node(const struct report *report, uint32_t row, uint32_t depth) {
    const struct tly_row *at = &report->rollup.rows[row];
    FILE *out = report->out;
    char *label = report_site_label(report, at->site);
    if (!label) return -1;
    fprintf(out, "{\"id\":%u", row);
    if (row == 0)
        fputs(",\"parent\":null,\"site\":null", out);
    else
        fprintf(out, ",\"parent\":%u,\"site\":%u", at->parent, at->site);
    print_number(out, "depth", depth);
    print_bytes(out, "label", (struct tly_bytes){label, (uint32_t)strlen(label)});
    print_number(out, "bytes", tly_live_bytes(&at->inclusive));
    print_number(out, "bytes_direct", tly_live_bytes(&at->direct));
    print_number(out, "blocks", tly_live_blocks(&at->inclusive));
    print_number(out, "blocks_direct", tly_live_blocks(&at->direct));
    print_number(out, "allocated_bytes", at->inclusive.alloc_bytes);
    print_number(out, "allocated_bytes_direct", at->direct.alloc_bytes);
    print_number(out, "allocated_blocks", at->inclusive.alloc_blocks);
    print_number(out, "allocated_blocks_direct", at->direct.alloc_blocks);
    fputc('}', out);
    free(label);
    return 0;
}

static int print_nodes(const struct report *report) {
    enum tly_rollup_sort sort = report->options->sort;
    uint64_t whole = tly_rollup_figure(&report->rollup.rows[0].inclusive, sort);
    uint64_t threshold = report_threshold(report->options, whole, NULL);
    uint32_t row = 0, depth = 0, matched_depth = UINT32_MAX; /* depth of the match that we are below */
    const char *separator = "";
    fputs(",\"nodes\":[", report->out);
    do {
        const struct tly_row *at = &report->rollup.rows[row];
        bool shown = tly_rollup_figure(&at->inclusive, sort) >= threshold;
        if (depth <= matched_depth)
            matched_depth = report->options->tag && report_matches(report, row) ? depth : UINT32_MAX;
        if (shown && (!report->options->tag || matched_depth != UINT32_MAX)) {
            fputs(separator, report->out);
            separator = ",";
            if (print_node(report, row, depth) != 0) return -1;
        }
        row = report_next_row(report, 0, row, shown && depth < report->options->depth, &depth);
    } while (row != 0);
    fputc(']', report->out);
    return 0;
}

int report_json(const struct report *report) {
    const struct tly_snapshot *snapshot = report->snapshot;
    FILE *out = report->out;
    fputs("{\"format\":\"tally-report\",\"version\":1", out);
    print_bytes(out, "file", (struct tly_bytes){report->path, (uint32_t)strlen(report->path)});
    fprintf(out, ",\"exact\":%s,\"damaged_records\":%u", snapshot->exact ? "true" : "false", snapshot->damaged_records);
    print_bytes(out, "note", snapshot->note);
    print_process(out, &snapshot->process);
    print_totals(out, &snapshot->totals);
    print_counters(out, &snapshot->counters);
    print_modules(out, snapshot);
    fputs(",\"sites\":[", out);
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        if (i) fputc(',', out);
        print_site(report, i);
    }
    fputc(']', out);
    if (print_nodes(report) != 0) return -1;
    fputs("}\n", out);
    return 0;
}
