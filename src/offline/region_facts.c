/* region_facts.c - see region_facts.h. */
#define _GNU_SOURCE
#include "offline/region_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* No text of the header is longer, not even a command line. */
enum { MOST_TEXT_BYTES = 8 << 20 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t load(const _Atomic uint64_t *word) { return atomic_load_explicit(word, memory_order_acquire); }

/* A text that is not there or damaged stays unknown; false: no memory. */
static bool copy_text(const struct tly_view *view, const struct tly_text *text, struct tly_snapshot *snapshot,
                      struct tly_bytes *out) {
    if (text->bytes == 0 || text->bytes > MOST_TEXT_BYTES) return true;
    const char *bytes = tly_view_name(view, text->offset, text->bytes);
    if (!bytes) return true;
    *out = tly_snapshot_copy(snapshot, bytes, text->bytes);
    return out->bytes != NULL;
}

static bool copy_process(const struct tly_view *view, struct tly_snapshot *snapshot) {
    const struct tly_region *region = view->region;
    struct tly_process_facts *process = &snapshot->process;
    process->pid = region->pid;
    process->ppid = region->ppid;
    process->uid = region->uid;
    process->forked_from = region->forked_from;
    process->pid_namespace = region->pid_namespace;
    process->process_start_ticks = region->process_start_ticks;
    process->region_id = region->id;
    process->auto_tags = region->auto_tags;
    process->region_flags = atomic_load_explicit(&region->flags, memory_order_acquire);
    process->state = atomic_load_explicit(&region->state, memory_order_acquire);
    process->loaded_ns = region->loaded_ns;
    process->started_ns = load(&region->started_ns);
    process->cleared_ns = load(&region->cleared_ns);
    process->ended_ns = load(&region->ended_ns);
    process->taken_ns = process->ended_ns ? process->ended_ns : now_ns();
    if (process->ended_ns > process->loaded_ns) process->wall_ns = process->ended_ns - process->loaded_ns;
    if (process->region_flags & TLY_REGION_EXITED) {
        process->end_kind = TLY_END_UNKNOWN;
        snapshot->exact = snapshot->damaged_records == 0;
    } else {
        process->end_kind = TLY_END_RUNNING;
    }
    return copy_text(view, &region->program, snapshot, &process->program) &&
           copy_text(view, &region->command_line, snapshot, &process->command_line) &&
           copy_text(view, &region->directory, snapshot, &process->directory) &&
           copy_text(view, &region->host, snapshot, &process->host) &&
           copy_text(view, &region->options, snapshot, &process->options);
}

static void copy_totals(const struct tly_region *region, struct tly_snapshot_totals *totals) {
    int64_t peak = atomic_load_explicit(&region->peak_bytes, memory_order_acquire);
    totals->peak_bytes = peak > 0 ? (uint64_t)peak : 0;
    totals->peak_error_bytes =
        (uint64_t)atomic_load_explicit(&region->peak_threads, memory_order_acquire) * region->flush_bytes;
    totals->peak_ns = load(&region->peak_ns);
    totals->inherited_bytes = load(&region->inherited_bytes);
    totals->inherited_blocks = load(&region->inherited_blocks);
}

static void copy_counters(const struct tly_view *view, struct tly_snapshot_counters *counters) {
    const struct tly_region *region = view->region;
    uint32_t ledgers = tly_view_count(view, TLY_SEC_LEDGERS);
    for (uint32_t i = 0; i < ledgers; i++) {
        const struct tly_ledger *ledger = tly_view_record(view, TLY_SEC_LEDGERS, i);
        if (!ledger) break;
        if (atomic_load_explicit(&ledger->state, memory_order_acquire) == TLY_LEDGER_LIVE) counters->ledgers_live++;
        counters->threads += load(&ledger->threads);
        counters->unmatched_frees += load(&ledger->unmatched_frees);
        counters->untracked_allocs += load(&ledger->untracked_allocs);
        counters->missed_frees += load(&ledger->missed_frees);
        counters->pop_errors += load(&ledger->pop_errors);
        counters->cut_names += load(&ledger->cut_names);
    }
    counters->off_radar_allocs = load(&region->off_radar_allocs);
    counters->consolidations = load(&region->consolidations);
    counters->spills = load(&region->spills);
    counters->index_overflow = load(&region->index_overflow);
    counters->block_map_chunks = load(&region->block_map_chunks);
    for (int i = 0; i < TLY_OWN_COUNT; i++)
        counters->own_bytes[i] = load(&region->own_bytes[i]);
    counters->nodes = tly_view_count(view, TLY_SEC_NODES);
    counters->sites = tly_view_count(view, TLY_SEC_SITES);
}

int tly_region_facts(const struct tly_view *view, struct tly_snapshot *snapshot) {
    if (!copy_process(view, snapshot)) return -ENOMEM;
    copy_totals(view->region, &snapshot->totals);
    copy_counters(view, &snapshot->counters);
    return 0;
}

/* Field 22 of /proc/PID/stat, or 0. The second field may hold anything, so count from its closing bracket. */
static uint64_t start_ticks(uint32_t pid) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    char *at = strrchr(line, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

int tly_region_process_lives(const struct tly_region *region) {
    struct stat status;
    if (region->pid_namespace == 0 || stat("/proc/self/ns/pid", &status) != 0) return -1;
    if (status.st_ino != region->pid_namespace) return -1;
    if (start_ticks((uint32_t)getpid()) == 0) return -1; /* no /proc */
    return start_ticks(region->pid) == region->process_start_ticks;
}
