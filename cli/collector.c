/* collector.c - see collector.h. */
#define _GNU_SOURCE
#include "collector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "offline/failure.h"
#include "offline/label.h"
#include "offline/recording.h"
#include "offline/rollup.h"
#include "offline/symbolise.h"
#include "proc.h"

/* ---- one region --------------------------------------------------------------------------------------------------- */

static void fill_in_ending(struct tly_snapshot *snapshot, const struct tly_ending *ending) {
    struct tly_process_facts *process = &snapshot->process;
    tly_snapshot_set_end(snapshot, ending->kind, ending->value);
    process->core_dumped = ending->core_dumped;
    if (ending->ended_ns) process->ended_ns = ending->ended_ns;
    if (ending->kind != TLY_END_RUNNING && process->ended_ns) process->taken_ns = process->ended_ns;
    if (ending->wall_ns)
        process->wall_ns = ending->wall_ns;
    else if (ending->kind != TLY_END_RUNNING && process->ended_ns > process->loaded_ns)
        process->wall_ns = process->ended_ns - process->loaded_ns;
    process->user_ns = ending->user_ns;
    process->system_ns = ending->system_ns;
    process->max_rss_bytes = ending->max_rss_bytes;
}

int tly_collect_region(const char *region, const char *path, const struct tly_ending *ending, struct tly_snapshot **out,
                       char *error, size_t error_bytes) {
    static const struct tly_ending running = {.kind = TLY_END_RUNNING};
    struct tly_view view;
    struct tly_snapshot *snapshot = NULL;
    const char *why = "";
    int result = tly_view_open(region, &view, &why);
    if (result != 0)
        return tly_failure(result, error, error_bytes, "%s: %s", region, result == -EBADMSG ? why : strerror(-result));
    if (view.region->started_ns == 0)
        result = tly_failure(-EAGAIN, error, error_bytes, "the accounting was never started there");
    else
        result = tly_snapshot_from_view(&view, &snapshot, error, error_bytes);
    tly_view_close(&view);
    if (!snapshot) return result;
    fill_in_ending(snapshot, ending ? ending : &running);
    result = tly_snapshot_symbolise(snapshot);
    if (result != 0) tly_failure(result, error, error_bytes, "not enough memory for the symbols");
    const struct tly_snapshot *only = snapshot;
    if (result == 0) result = tly_recording_write(path, &only, 1, error, error_bytes);
    if (result == 0 && out)
        *out = snapshot;
    else
        tly_snapshot_free(snapshot);
    return result;
}

/* ---- what the summary says of it ---------------------------------------------------------------------------------- */

static char *label_of(const struct tly_snapshot *snapshot, uint32_t node) {
    size_t bytes = tly_label_node(NULL, 0, snapshot, node) + 1;
    char *label = malloc(bytes);
    if (label) tly_label_node(label, bytes, snapshot, node);
    return label;
}

static void note_top_nodes(struct tly_recorded *recorded, const struct tly_snapshot *snapshot) {
    enum { TOP = sizeof recorded->top_label / sizeof *recorded->top_label };
    uint32_t top[TOP];
    int count = 0;
    recorded->by_allocated = recorded->live_bytes == 0;
    for (uint32_t i = 0; i < snapshot->node_count; i++) {
        const struct tly_balance *direct = &snapshot->nodes[i].direct;
        uint64_t bytes = recorded->by_allocated ? direct->alloc_bytes : tly_live_bytes(direct);
        int at = count;
        while (at > 0 && recorded->top_bytes[at - 1] < bytes)
            at--;
        if (bytes == 0 || at == TOP) continue;
        for (int k = count < TOP ? count++ : TOP - 1; k > at; k--) {
            recorded->top_bytes[k] = recorded->top_bytes[k - 1];
            top[k] = top[k - 1];
        }
        recorded->top_bytes[at] = bytes;
        top[at] = i;
    }
    for (int k = 0; k < count; k++)
        recorded->top_label[k] = label_of(snapshot, top[k]);
}

static void remember(struct tly_collector *collector, const struct tly_snapshot *snapshot, const char *path,
                     const struct tly_ending *ending, bool main) {
    enum { DETAILED = 64 }; /* more are never shown */
    struct tly_recorded *more = realloc(collector->recorded, (collector->recorded_count + 1) * sizeof *more);
    if (!more) return; /* the recording is there; the summary will be shorter */
    collector->recorded = more;
    struct tly_recorded *recorded = &more[collector->recorded_count++];
    const struct tly_balance *sum = &snapshot->totals.sum;
    const struct tly_bytes *program = &snapshot->process.program;
    char name[1024] = "";
    if (program->bytes) tly_label_escape(name, sizeof name, program->bytes, program->length, false);
    *recorded = (struct tly_recorded){.path = strdup(path),
                                      .program = strdup(name),
                                      .pid = snapshot->process.pid,
                                      .end_kind = ending->kind,
                                      .end_value = ending->value,
                                      .wall_ns = snapshot->process.wall_ns,
                                      .live_bytes = tly_live_bytes(sum),
                                      .live_blocks = tly_live_blocks(sum),
                                      .peak_bytes = snapshot->totals.peak_bytes,
                                      .allocated_bytes = sum->alloc_bytes,
                                      .allocated_blocks = sum->alloc_blocks,
                                      .main = main};
    if (main || collector->recorded_count <= DETAILED) note_top_nodes(recorded, snapshot);
}

/* ---- many regions ------------------------------------------------------------------------------------------------- */

static bool has_failed(const struct tly_collector *collector, const char *name) {
    for (size_t i = 0; i < collector->failed_count; i++)
        if (strcmp(collector->failed[i], name) == 0) return true;
    return false;
}

static void failed(struct tly_collector *collector, const char *region, const char *name, const char *error) {
    if (collector->failures++ < 5)
        tly_complain(collector->command, "no recording: %s; the account stays in %s", error, region);
    void *more = realloc(collector->failed, (collector->failed_count + 1) * sizeof *collector->failed);
    if (!more) return;
    collector->failed = more;
    snprintf(collector->failed[collector->failed_count++], NAME_MAX + 1, "%s", name);
}

/* The region's texts that a file name is made of. */
static int read_names(const char *region, char *program, size_t program_bytes, char *host, size_t host_bytes) {
    struct tly_view view;
    int result = tly_view_open(region, &view, NULL);
    if (result != 0) return result;
    const struct tly_text *text[] = {&view.region->program, &view.region->host};
    char *out[] = {program, host};
    size_t room[] = {program_bytes, host_bytes};
    for (int i = 0; i < 2; i++) {
        const char *bytes = tly_view_name(&view, text[i]->offset, text[i]->bytes);
        snprintf(out[i], room[i], "%.*s", bytes ? (int)text[i]->bytes : 0, bytes ? bytes : "");
    }
    if (!program[0]) snprintf(program, program_bytes, "program");
    tly_view_close(&view);
    return 0;
}

/* Finds a name for the recording. The main program's last image has the first right to the plain one. */
static int choose_name(struct tly_collector *collector, const char *region, uint32_t pid, bool main, char *path,
                       size_t bytes) {
    char program[256], host[256], of_main[PATH_MAX];
    int result = read_names(region, program, sizeof program, host, sizeof host);
    struct tly_output_facts facts = {pid, program, host};
    struct tly_output_facts main_facts = {collector->main_pid, collector->main_program, host};
    if (result == 0) result = tly_output_name(path, bytes, collector->start_directory, collector->pattern, &facts);
    if (result != 0) return result;
    bool plain =
        collector->main_pid &&
        tly_output_name(of_main, sizeof of_main, collector->start_directory, collector->pattern, &main_facts) == 0 &&
        strcmp(of_main, path) == 0;
    if (plain && main && collector->reserved) return 0;
    if (plain && !main && !collector->reserved) {
        result = tly_output_claim(&collector->names, of_main, sizeof of_main, collector->main_pid);
        collector->reserved = result == 0;
    }
    return result ? result : tly_output_claim(&collector->names, path, bytes, pid);
}

static void record(struct tly_collector *collector, const struct tly_owner *owner, const struct tly_ending *ending,
                   bool main) {
    char region[PATH_MAX + NAME_MAX + 2], path[PATH_MAX], error[PATH_MAX + 512] = "";
    struct tly_snapshot *snapshot = NULL;
    snprintf(region, sizeof region, "%s/%s", collector->directory, owner->name);
    if (owner->started_ns != 0) { /* else never switched on: not an account */
        int result = choose_name(collector, region, owner->pid, main, path, sizeof path);
        if (result != 0) snprintf(error, sizeof error, "its name: %s", strerror(-result));
        if (result == 0) result = tly_collect_region(region, path, ending, &snapshot, error, sizeof error);
        if (result != 0 || !snapshot) {
            failed(collector, region, owner->name, error);
            return;
        }
        remember(collector, snapshot, path, ending, main);
        tly_snapshot_free(snapshot);
        if (ending->kind == TLY_END_RUNNING) tly_place_note(region, path);
    }
    if (main && owner->started_ns == 0) collector->never_started = true;
    if (ending->kind != TLY_END_RUNNING) tly_place_remove(region);
}

static void remove_broken(struct tly_collector *collector, const struct tly_owner *owner) {
    char region[PATH_MAX + NAME_MAX + 2];
    snprintf(region, sizeof region, "%s/%s", collector->directory, owner->name);
    unlink(region);
}

/* The main process may have become another program: its newest region knows. */
static void update_main_program(struct tly_collector *collector, const struct tly_owner *owners, size_t count) {
    char region[PATH_MAX + NAME_MAX + 2], program[256], host[256];
    const struct tly_owner *newest = NULL;
    for (size_t i = 0; i < count; i++)
        if (owners[i].readable && owners[i].pid == collector->main_pid) newest = &owners[i];
    if (!newest) return;
    snprintf(region, sizeof region, "%s/%s", collector->directory, newest->name);
    if (read_names(region, program, sizeof program, host, sizeof host) == 0)
        memcpy(collector->main_program, program, sizeof program);
}

/* One round over all regions. `main_ending`: the main process has ended so. `last`: those that run are recorded too.
 * Returns how many still run. */
static size_t look(struct tly_collector *collector, const struct tly_ending *main_ending, bool last) {
    struct tly_owner *owners = NULL;
    size_t count = 0, running = 0;
    uint64_t namespace = tly_proc_namespace(0);
    if (tly_place_regions(collector->directory, &owners, &count) == -ENOMEM)
        tly_complain(collector->command, "not enough memory to look at all processes");
    update_main_program(collector, owners, count);
    for (size_t i = 0; i < count; i++) {
        struct tly_owner *owner = &owners[i];
        if (has_failed(collector, owner->name)) continue;
        bool is_main = owner->pid == collector->main_pid && (!owner->readable || owner->pid_namespace == namespace);
        struct tly_ending ending = {.kind = TLY_END_UNKNOWN};
        enum tly_life life = TLY_LIFE_ENDED;
        if (i + 1 < count && tly_owner_same_process(owner, &owners[i + 1])) {
            ending.kind = TLY_END_EXEC;
            is_main = false;
        } else if (is_main) {
            life = main_ending ? TLY_LIFE_ENDED : TLY_LIFE_RUNNING;
            if (main_ending) ending = *main_ending;
        } else {
            uint64_t inode = owner->readable ? owner->pid_namespace : namespace;
            life = tly_proc_life(inode, owner->pid, owner->start_ticks, collector->descendants);
        }
        if (life != TLY_LIFE_ENDED) {
            running++;
            if (!last) continue;
            ending.kind = TLY_END_RUNNING;
        }
        if (life == TLY_LIFE_ENDED) tly_place_reread(collector->directory, owner);
        if (!owner->readable) { /* its process was stopped while it made it: there is nothing in it */
            if (life == TLY_LIFE_ENDED && last) remove_broken(collector, owner);
            continue;
        }
        record(collector, owner, &ending, is_main);
    }
    free(owners);
    collector->waiting = running;
    return running;
}

void tly_collector_look(struct tly_collector *collector) { look(collector, NULL, false); }

void tly_collector_finish(struct tly_collector *collector, const struct tly_ending *ending) {
    /* Those that end together with the main program get a moment for it. */
    for (int turn = 0; turn < 10 && look(collector, ending, false) > 0; turn++)
        usleep(10000);
    look(collector, ending, true);
}

void tly_collector_free(struct tly_collector *collector) {
    for (size_t i = 0; i < collector->recorded_count; i++) {
        struct tly_recorded *recorded = &collector->recorded[i];
        free(recorded->path);
        free(recorded->program);
        for (int k = 0; k < 3; k++)
            free(recorded->top_label[k]);
    }
    free(collector->recorded);
    free(collector->failed);
    tly_output_forget(&collector->names);
}
