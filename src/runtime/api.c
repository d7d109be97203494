/* api.c - the functions of tally.h that are not about trees. */
#define _GNU_SOURCE
#define TALLY_BUILDING
#include "tally/tally.h"

#include <errno.h>
#include <string.h>

#include "core/blockmap.h"
#include "core/tag.h"
#include "core/tagstack.h"
#include "core/thread.h"
#include "region/view.h"
#include "region/writer.h"
#include "runtime/error.h"
#include "runtime/process.h"
#include "runtime/writeout.h"

static __thread const char *error_text __attribute__((tls_model("initial-exec")));

int tly_error(int error, const char *text) {
    error_text = text;
    return -error;
}

const char *tally_error_text(void) { return error_text ? error_text : ""; }

int tally_version(void) { return TALLY_VERSION; }

/* ---- life ---- */

int tally_start(void) {
    tly_process_init();
    int result = tly_process_start();
    return result == 0 ? 0 : tly_error(-result, tly_process_reason());
}

int tally_stop(void) { return tly_process_stop(); }

int tally_clear(void) {
    int result = tly_process_clear();
    return result == 0 ? 0 : tly_error(-result, tly_process_reason());
}

int tally_active(void) { return atomic_load(&tly_gate_state.state) == TLY_STATE_ON && tly_process_ready(); }

uint64_t tally_bytes(void) {
    if (!tly_process_ready()) return 0;
    struct tly_view view = {tly_region, tly_region->region_bytes, NULL};
    int64_t bytes = tly_view_live_bytes(&view);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

uint64_t tally_peak_bytes(void) {
    if (!tly_process_ready()) return 0;
    uint64_t now = tally_bytes(), peak = (uint64_t)atomic_load(&tly_region->peak_bytes);
    return now > peak ? now : peak;
}

/* ---- tags ---- */

void tally_push(const char *name) { tly_tag_push(name); }
void tally_push_copy(const char *name) { tly_tag_push_copy(name); }
uint32_t tally_scope_push(const char *name) { return tly_tag_push(name); }
uint32_t tally_scope_push_copy(const char *name) { return tly_tag_push_copy(name); }

void tally_pop(void) {
    uint32_t depth = tly_self.depth;
    tly_tag_pop_to(depth ? depth - 1 : 0);
}

void tally_scope_pop(uint32_t scope) { tly_tag_pop_to(scope - 1); }

int tally_stack_get(tally_stack *out) {
    if (!out) return tly_error(EINVAL, "tally_stack_get: no place for the result");
    struct tly_position position;
    tly_tag_position(&position);
    *out = (tally_stack){position.node, position.depth, position.owner};
    return 0;
}

int tally_override_begin(const tally_stack *stack, tally_stack *mark) {
    if (!stack || !mark) return tly_error(EINVAL, "tally_override_begin: NULL");
    (void)tly_process_ready();
    tally_stack_get(mark);
    int result = tly_tag_override(stack->node);
    if (result == -EINVAL) return tly_error(EINVAL, "tally_override_begin: this is not a stack of this process");
    return result == 0 ? 0 : tly_error(-result, "tally_override_begin: the accounting was never started, or no memory");
}

static int rewind_to(const tally_stack *stack, const char *complaint) {
    if (!stack) return tly_error(EINVAL, complaint);
    const struct tly_position position = {stack->node, stack->depth, stack->owner};
    int result = tly_tag_rewind(&position);
    return result == 0 ? 0 : tly_error(-result, complaint);
}

int tally_override_end(const tally_stack *mark) {
    return rewind_to(mark, "tally_override_end: not this thread's mark, or it was left already");
}

int tally_stack_rewind(const tally_stack *stack) {
    return rewind_to(stack, "tally_stack_rewind: captured on another thread, or the stack was since popped below it");
}

void tally_pause_thread_begin(void) { tly_tag_pause_thread(); }
void tally_pause_thread_end(void) { tly_tag_resume_thread(); }
void tally_pause_all_begin(void) { tly_process_pause_all(); }
void tally_pause_all_end(void) {
    if (!tly_process_resume_all()) tly_count_pop_error();
}

/* ---- files and facts ---- */

int tally_snapshot_write(const char *path) {
    if (!path || !path[0]) return tly_error(EINVAL, "tally_snapshot_write: no path");
    if (!tly_process_ready()) return tly_error(ENOSYS, "tally_snapshot_write: the accounting was never started");
    tly_map_measure();
    int saved = errno, result = tly_writeout(path);
    errno = saved;
    return result == 0 ? 0 : tly_error(-result, "tally_snapshot_write: the file could not be written");
}

static void add_ledgers(struct tally_perf_stats *stats) {
    uint32_t count = (uint32_t)(tly_region->section[TLY_SEC_LEDGERS].used_bytes / sizeof(struct tly_ledger));
    for (uint32_t i = 0; i < count; i++) {
        const struct tly_ledger *ledger = tly_writer_ledger(i);
        uint32_t state = atomic_load(&ledger->state);
        stats->ledgers_live += state == TLY_LEDGER_LIVE;
        stats->ledgers_recycled += state == TLY_LEDGER_FREE;
        stats->unmatched_frees += ledger->unmatched_frees;
        stats->missed_frees += ledger->missed_frees;
        stats->dropped_events += ledger->untracked_allocs;
        stats->pop_errors += ledger->pop_errors;
        stats->cut_names += ledger->cut_names;
    }
}

int tally_perf_stats(struct tally_perf_stats *out) {
    if (!out || out->struct_bytes < 2 * sizeof(uint64_t))
        return tly_error(EINVAL, "tally_perf_stats: set struct_bytes to sizeof(struct tally_perf_stats) first");
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    if (tly_process_ready()) {
        uint64_t pieces;
        add_ledgers(&stats);
        tly_map_usage(&stats.block_map_pages, &pieces);
        stats.own_region_bytes = tly_map_bytes(TLY_OWN_REGION);
        stats.own_block_map_bytes = stats.block_map_pages * 4096;
        stats.own_thread_bytes = tly_map_bytes(TLY_OWN_THREADS);
        stats.own_other_bytes = tly_map_bytes(TLY_OWN_OTHER);
        stats.own_bytes =
            stats.own_region_bytes + stats.own_block_map_bytes + stats.own_thread_bytes + stats.own_other_bytes;
        stats.nodes = tly_node_count();
        stats.call_sites = tly_site_count();
        stats.consolidations = tly_region->consolidations;
        stats.spills = tly_region->spills;
        stats.off_radar_allocs = tly_region->off_radar_allocs;
        stats.index_overflow = tly_region->index_overflow;
        stats.table_load = tly_node_index_load();
        stats.peak_error_bytes = (uint64_t)tly_region->peak_threads * tly_region->flush_bytes;
    }
    size_t bytes = out->struct_bytes < sizeof stats ? out->struct_bytes : sizeof stats;
    stats.struct_bytes = bytes;
    memcpy(out, &stats, bytes);
    return 0;
}
