/* snapshot_laws.c - see snapshot_laws.h. */
#include "snapshot_laws.h"

#include <stdlib.h>
#include <string.h>

/* Terminated and readable? */
static bool sound(struct tly_bytes text) {
    volatile unsigned sum = 0;
    if (!text.bytes) return text.length == 0;
    for (uint32_t i = 0; i < text.length; i++)
        sum += (unsigned char)text.bytes[i];
    (void)sum;
    return text.bytes[text.length] == '\0';
}

static int compare_words(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static const char *broken_nodes(const struct tly_snapshot *snapshot) {
    struct tly_balance sum = {0};
    uint64_t *pairs = calloc((size_t)snapshot->node_count + 1, sizeof *pairs);
    const char *broken = NULL;
    if (!pairs) return "no memory";
    if (snapshot->node_count == 0) broken = "no root";
    for (uint32_t i = 0; i < snapshot->node_count; i++) {
        const struct tly_snapshot_node *node = &snapshot->nodes[i];
        if (i == 0 ? node->parent != 0 || node->site != TLY_NONE : node->parent >= i) broken = "parent before child";
        if (i != 0 && node->site >= snapshot->site_count) broken = "a node's site exists";
        if (node->direct.free_bytes > node->direct.alloc_bytes || node->direct.free_blocks > node->direct.alloc_blocks)
            broken = "free <= alloc";
        sum.alloc_bytes += node->direct.alloc_bytes;
        sum.alloc_blocks += node->direct.alloc_blocks;
        sum.free_bytes += node->direct.free_bytes;
        sum.free_blocks += node->direct.free_blocks;
        if (sum.alloc_bytes > INT64_MAX || sum.alloc_blocks > INT64_MAX) broken = "sums fit";
        pairs[i] = (uint64_t)node->parent << 32 | node->site;
    }
    qsort(pairs, snapshot->node_count, sizeof *pairs, compare_words);
    for (uint32_t i = 1; i < snapshot->node_count; i++) {
        if (pairs[i] == pairs[i - 1]) broken = "no node twice";
    }
    free(pairs);
    if (memcmp(&sum, &snapshot->totals.sum, sizeof sum) != 0) broken = "the total is the sum";
    if (snapshot->totals.peak_bytes < sum.alloc_bytes - sum.free_bytes) broken = "no more lives than at the peak";
    return broken;
}

const char *snapshot_broken_law(const struct tly_snapshot *snapshot) {
    const struct tly_process_facts *process = &snapshot->process;
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        const struct tly_snapshot_site *site = &snapshot->sites[i];
        if (site->kind < TLY_SITE_TAG || site->kind > TLY_SITE_CALLER) return "a site's kind is known";
        if (site->module != TLY_NONE && site->module >= snapshot->module_count) return "a site's module exists";
        if ((site->kind == TLY_SITE_TAG || site->kind == TLY_SITE_THREAD) && !site->name.bytes)
            return "tags have names";
        if (!sound(site->name)) return "names are terminated";
        if ((uint64_t)site->first_frame + site->frame_count > snapshot->frame_count) return "a site's frames exist";
    }
    for (uint32_t i = 0; i < snapshot->module_count; i++) {
        if (!snapshot->modules[i].path.bytes || !sound(snapshot->modules[i].path)) return "modules have paths";
        if (snapshot->modules[i].build_id_bytes > TLY_BUILD_ID_MAX) return "build-ids fit";
        if (snapshot->modules[i].symbols > TLY_SYMBOLS_OTHER) return "symbol states are known";
    }
    for (uint32_t i = 0; i < snapshot->frame_count; i++) {
        if (!sound(snapshot->frames[i].function) || !sound(snapshot->frames[i].file)) return "frames are terminated";
    }
    if (!sound(process->program) || !sound(process->directory) || !sound(process->host) || !sound(process->options) ||
        !sound(process->command_line))
        return "facts are terminated";
    if (snapshot->damaged_records && snapshot->exact) return "damaged is not exact";
    return broken_nodes(snapshot);
}

static bool same(struct tly_bytes a, struct tly_bytes b) {
    return a.length == b.length && !a.bytes == !b.bytes && (!a.bytes || memcmp(a.bytes, b.bytes, a.length) == 0);
}

static const char *sites_difference(const struct tly_snapshot *a, const struct tly_snapshot *b) {
    for (uint32_t i = 0; i < a->site_count; i++) {
        const struct tly_snapshot_site *x = &a->sites[i], *y = &b->sites[i];
        if (x->kind != y->kind || x->module != y->module || x->value != y->value || !same(x->name, y->name))
            return "sites";
        if (x->frame_count != y->frame_count) return "frame counts";
        for (uint32_t k = 0; k < x->frame_count; k++) {
            const struct tly_snapshot_frame *f = &a->frames[x->first_frame + k], *g = &b->frames[y->first_frame + k];
            if (!same(f->function, g->function) || !same(f->file, g->file) || f->line != g->line) return "frames";
        }
    }
    return NULL;
}

const char *snapshot_difference(const struct tly_snapshot *a, const struct tly_snapshot *b) {
    const struct tly_process_facts *p = &a->process, *q = &b->process;
    if (p->pid != q->pid || p->ppid != q->ppid || p->uid != q->uid || p->forked_from != q->forked_from) return "ids";
    if (p->pid_namespace != q->pid_namespace || p->process_start_ticks != q->process_start_ticks ||
        p->region_id != q->region_id)
        return "identity";
    if (!same(p->program, q->program) || !same(p->directory, q->directory) || !same(p->host, q->host) ||
        !same(p->options, q->options) || !same(p->command_line, q->command_line))
        return "texts";
    if (p->auto_tags != q->auto_tags || p->region_flags != q->region_flags || p->state != q->state) return "state";
    if (p->end_kind != q->end_kind || p->end_value != q->end_value || p->core_dumped != q->core_dumped) return "end";
    if (p->loaded_ns != q->loaded_ns || p->started_ns != q->started_ns || p->cleared_ns != q->cleared_ns ||
        p->ended_ns != q->ended_ns || p->taken_ns != q->taken_ns || p->wall_ns != q->wall_ns)
        return "times";
    if (p->user_ns != q->user_ns || p->system_ns != q->system_ns || p->max_rss_bytes != q->max_rss_bytes)
        return "usage";
    if (memcmp(&a->totals, &b->totals, sizeof a->totals) != 0) return "totals";
    if (memcmp(&a->counters, &b->counters, sizeof a->counters) != 0) return "counters";
    if (a->node_count != b->node_count || a->site_count != b->site_count || a->module_count != b->module_count)
        return "sizes";
    if (memcmp(a->nodes, b->nodes, a->node_count * sizeof *a->nodes) != 0) return "nodes";
    for (uint32_t i = 0; i < a->module_count; i++) {
        const struct tly_snapshot_module *m = &a->modules[i], *n = &b->modules[i];
        if (!same(m->path, n->path) || m->start != n->start || m->end != n->end || m->bias != n->bias ||
            m->told_by != n->told_by || m->first_seen_ns != n->first_seen_ns || m->symbols != n->symbols ||
            m->build_id_bytes != n->build_id_bytes || memcmp(m->build_id, n->build_id, m->build_id_bytes) != 0)
            return "modules";
    }
    if (a->exact != b->exact || a->symbolised != b->symbolised || a->damaged_records != b->damaged_records)
        return "marks";
    return sites_difference(a, b);
}
