/* rollup.c - see rollup.h. Rows keep the order of the nodes: a parent comes before its children. */
#define _GNU_SOURCE
#include "offline/rollup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "offline/idmap.h"
#include "offline/label.h"

static bool same_row(const void *context, uint32_t id) {
    const struct tly_rollup *rollup = context;
    const struct tly_row *a = &rollup->rows[rollup->count], *b = &rollup->rows[id];
    return a->parent == b->parent && a->site == b->site;
}

static void bill_unfolded(struct tly_rollup *rollup) {
    const struct tly_snapshot *snapshot = rollup->snapshot;
    for (uint32_t i = 0; i < snapshot->node_count; i++) {
        const struct tly_snapshot_node *node = &snapshot->nodes[i];
        rollup->rows[i].site = node->site;
        rollup->rows[i].parent = node->parent;
        rollup->rows[i].direct = node->direct;
        rollup->row_of_node[i] = i;
    }
    rollup->count = snapshot->node_count;
}

/* The children of every node of the snapshot, as lists: 0 ends one. */
struct children {
    uint32_t *first, *next;
    bool *on_path; /* per site: a row of the path that is being walked has it */
};

static void bill_to_row(struct tly_rollup *rollup, struct tly_idmap *map, uint32_t node, uint32_t parent_row,
                        bool repeated) {
    const struct tly_snapshot_node *from = &rollup->snapshot->nodes[node];
    uint32_t id = parent_row;
    if (!repeated) {
        struct tly_row *row = &rollup->rows[rollup->count];
        *row = (struct tly_row){.site = from->site, .parent = parent_row};
        id = tly_idmap_put(map, tly_hash_mix(parent_row, from->site), rollup->count, same_row, rollup);
        if (id == rollup->count) rollup->count++;
    }
    rollup->row_of_node[node] = id;
    tly_balance_add(&rollup->rows[id].direct, &from->direct);
}

/* Walks the nodes depth first, with the sites of the current path marked. A node whose site is marked is billed to the
 * row of its parent. Below it, paths that were different may come together, so rows are looked up by (parent, site). */
static void walk_and_bill(struct tly_rollup *rollup, struct tly_idmap *map, struct children *children) {
    const struct tly_snapshot *snapshot = rollup->snapshot;
    const struct tly_row *rows = rollup->rows;
    uint32_t node = children->first[0];
    while (node != 0) {
        uint32_t parent = snapshot->nodes[node].parent, site = snapshot->nodes[node].site;
        bill_to_row(rollup, map, node, rollup->row_of_node[parent], children->on_path[site]);
        children->on_path[site] = true;
        if (children->first[node] != 0) {
            node = children->first[node];
            continue;
        }
        for (; node != 0; node = snapshot->nodes[node].parent) { /* leave it, and all that end with it */
            uint32_t row = rollup->row_of_node[node];
            bool own = row != rollup->row_of_node[snapshot->nodes[node].parent]; /* repeated ones share the parent's */
            if (own) children->on_path[rows[row].site] = false;
            if (children->next[node] != 0) break;
        }
        node = children->next[node];
    }
}

static int bill_folded(struct tly_rollup *rollup) {
    const struct tly_snapshot *snapshot = rollup->snapshot;
    struct tly_idmap map = {0};
    struct children children = {calloc(snapshot->node_count, sizeof(uint32_t)),
                                calloc(snapshot->node_count, sizeof(uint32_t)),
                                calloc((size_t)snapshot->site_count + 1, sizeof(bool))};
    int result = tly_idmap_make(&map, snapshot->node_count);
    if (!children.first || !children.next || !children.on_path) result = -ENOMEM;
    if (result == 0) {
        for (uint32_t i = snapshot->node_count; i-- > 1;) {
            children.next[i] = children.first[snapshot->nodes[i].parent];
            children.first[snapshot->nodes[i].parent] = i;
        }
        rollup->rows[0].site = TLY_NONE;
        rollup->rows[0].direct = snapshot->nodes[0].direct;
        rollup->count = 1;
        walk_and_bill(rollup, &map, &children);
    }
    free(children.first);
    free(children.next);
    free(children.on_path);
    tly_idmap_free(&map);
    return result;
}

static void add_up(struct tly_rollup *rollup) {
    for (uint32_t i = 0; i < rollup->count; i++)
        rollup->rows[i].inclusive = rollup->rows[i].direct;
    for (uint32_t i = rollup->count; i-- > 1;)
        tly_balance_add(&rollup->rows[rollup->rows[i].parent].inclusive, &rollup->rows[i].inclusive);
}

uint64_t tly_rollup_figure(const struct tly_balance *balance, enum tly_rollup_sort sort) {
    switch (sort) {
    case TLY_SORT_BLOCKS: return tly_live_blocks(balance);
    case TLY_SORT_ALLOCATED: return balance->alloc_bytes;
    case TLY_SORT_ALLOCATIONS: return balance->alloc_blocks;
    case TLY_SORT_BYTES:
    case TLY_SORT_NAME: break;
    }
    return tly_live_bytes(balance);
}

/* The text that a site is sorted by. */
static struct tly_bytes sort_text(const struct tly_snapshot *snapshot, const struct tly_snapshot_site *site) {
    struct tly_bytes text = site->name;
    if (site->frame_count)
        text = snapshot->frames[site->first_frame + tly_label_frame_choice(snapshot, site)].function;
    else if (site->module != TLY_NONE)
        text = tly_label_base_name(snapshot->modules[site->module].path);
    if (!text.bytes) text = (struct tly_bytes){"", 0};
    return text;
}

int tly_rollup_compare_sites(const struct tly_snapshot *snapshot, uint32_t left, uint32_t right) {
    const struct tly_snapshot_site *a = &snapshot->sites[left], *b = &snapshot->sites[right];
    struct tly_bytes x = sort_text(snapshot, a), y = sort_text(snapshot, b);
    int order = memcmp(x.bytes, y.bytes, x.length < y.length ? x.length : y.length);
    if (order) return order;
    if (x.length != y.length) return x.length < y.length ? -1 : 1;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return (left > right) - (left < right);
}

struct order {
    const struct tly_rollup *rollup;
    enum tly_rollup_sort sort;
};

/* Siblings by figure, then by live and allocated bytes, then by name: the same account always prints the same. */
static int compare_rows(const void *a, const void *b, void *context) {
    const struct order *order = context;
    const struct tly_row *left = &order->rollup->rows[*(const uint32_t *)a];
    const struct tly_row *right = &order->rollup->rows[*(const uint32_t *)b];
    if (left->parent != right->parent) return left->parent < right->parent ? -1 : 1;
    if (order->sort != TLY_SORT_NAME) {
        const enum tly_rollup_sort keys[] = {order->sort, TLY_SORT_BYTES, TLY_SORT_ALLOCATED, TLY_SORT_ALLOCATIONS};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            uint64_t x = tly_rollup_figure(&left->inclusive, keys[i]),
                     y = tly_rollup_figure(&right->inclusive, keys[i]);
            if (x != y) return x > y ? -1 : 1;
        }
    }
    return tly_rollup_compare_sites(order->rollup->snapshot, left->site, right->site);
}

static int link_children(struct tly_rollup *rollup, enum tly_rollup_sort sort) {
    uint32_t count = rollup->count - 1; /* all but the root */
    uint32_t *sorted = malloc(((size_t)count + 1) * sizeof *sorted);
    struct order order = {rollup, sort};
    if (!sorted) return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = i + 1;
    qsort_r(sorted, count, sizeof *sorted, compare_rows, &order);
    for (uint32_t i = count; i-- > 0;) {
        struct tly_row *row = &rollup->rows[sorted[i]];
        row->next_sibling = rollup->rows[row->parent].first_child;
        rollup->rows[row->parent].first_child = sorted[i];
    }
    free(sorted);
    return 0;
}

int tly_rollup_make(const struct tly_snapshot *snapshot, bool fold, enum tly_rollup_sort sort, struct tly_rollup *out) {
    *out = (struct tly_rollup){.snapshot = snapshot};
    out->rows = calloc((size_t)snapshot->node_count + 1, sizeof *out->rows);
    out->row_of_node = calloc((size_t)snapshot->node_count + 1, sizeof *out->row_of_node);
    int result = out->rows && out->row_of_node ? 0 : -ENOMEM;
    if (result == 0 && fold) result = bill_folded(out);
    if (result == 0 && !fold) bill_unfolded(out);
    if (result == 0) {
        add_up(out);
        result = link_children(out, sort);
    }
    if (result != 0) tly_rollup_free(out);
    return result;
}

void tly_rollup_free(struct tly_rollup *rollup) {
    free(rollup->rows);
    free(rollup->row_of_node);
    rollup->rows = NULL;
    rollup->row_of_node = NULL;
    rollup->count = 0;
}
