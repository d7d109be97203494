/*
 * tree.c - tally_tree: one picture of the account as a tree, in one mapping of its own.
 *
 * All nodes are made from ids in one pass (a parent's id is smaller than its children's), folded by one walk with a mark
 * per call site on the path, summed backwards, and linked in the order of names by a counting sort over ranked sites:
 * linear in the number of nodes, however deep or wide the tree.
 */
#define _GNU_SOURCE
#define TALLY_BUILDING
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/say.h"
#include "region/view.h"
#include "region/writer.h"
#include "runtime/error.h"
#include "runtime/process.h"
#include "tally/tally.h"

#define NONE UINT32_MAX

struct tally_node {
    const struct tally_node *parent, *first_child, *next_sibling;
    const char *name;
    uint32_t name_bytes, kind;
    uint64_t bytes, bytes_direct, blocks, blocks_direct;
    uint64_t allocated_bytes, allocated_bytes_direct, allocated_blocks, allocated_blocks_direct;
    uint32_t site; /* NONE: the root */
};

struct site_name {
    const char *bytes;
    uint32_t count, kind;
};

struct tally_tree {
    size_t mapping_bytes, counted_bytes; /* address space; what of it was used */
    struct tally_node *nodes;
    uint32_t node_count, site_count;
    struct site_name *sites;
};

/* Scratch and result come from one reservation each; both grow only as they are touched. */
struct arena {
    char *at, *end;
};

static void *take(struct arena *arena, size_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    if (bytes > (size_t)(arena->end - arena->at)) return NULL;
    void *result = arena->at;
    arena->at += bytes;
    return result;
}

/* ---- names of sites ------------------------------------------------------------------------------------------------ */

static const char *base_name(const char *path, uint32_t *bytes) {
    for (uint32_t i = *bytes; i > 0; i--)
        if (path[i - 1] == '/') {
            *bytes -= i;
            return path + i;
        }
    return path;
}

static const char *module_name(const struct tly_view *view, uint32_t module, uint32_t *bytes) {
    const struct tly_module *m = module == TLY_MODULE_UNKNOWN ? NULL : tly_view_record(view, TLY_SEC_MODULES, module);
    const char *path = m ? tly_view_name(view, m->name_offset, m->name_bytes) : NULL;
    if (!path) {
        *bytes = 9;
        return "(unknown)";
    }
    *bytes = m->name_bytes;
    return base_name(path, bytes);
}

/* Copies the name, terminated. Callers are "file+0xoffset": the command line knows functions and lines. */
static bool name_site(const struct tly_view *view, const struct tly_site *site, struct arena *arena,
                      struct site_name *out) {
    uint32_t kind = atomic_load_explicit(&site->kind, memory_order_acquire), bytes = site->name_bytes;
    const char *name = kind == TLY_SITE_MODULE || kind == TLY_SITE_CALLER
                           ? module_name(view, site->module, &bytes)
                           : tly_view_name(view, site->name_offset, bytes);
    if (!name) name = "", bytes = 0;
    size_t room = bytes + 24;
    char *copy = take(arena, room);
    if (!copy) return false;
    struct tly_text_builder text;
    tly_text_begin(&text, copy, room);
    tly_text_add_bytes(&text, name, bytes);
    if (kind == TLY_SITE_CALLER) {
        int digits = 1;
        while (digits < 16 && site->value >> (4 * digits))
            digits++;
        tly_text_add(&text, "+0x");
        tly_text_add_hex(&text, site->value, digits);
    }
    *out = (struct site_name){copy, (uint32_t)text.length, kind};
    return true;
}

/* ---- order --------------------------------------------------------------------------------------------------------- */

struct ranked {
    uint64_t prefix; /* first key: of the names their first eight bytes, so that most comparisons are one */
    uint32_t site;
};

static bool before(const struct site_name *sites, const struct ranked *a, const struct ranked *b) {
    if (a->prefix != b->prefix) return a->prefix < b->prefix;
    const struct site_name *x = &sites[a->site], *y = &sites[b->site];
    uint32_t common = x->count < y->count ? x->count : y->count;
    int order = memcmp(x->bytes, y->bytes, common);
    if (order != 0) return order < 0;
    return x->count != y->count ? x->count < y->count : a->site < b->site;
}

/* Bottom-up merge sort: libc's may call malloc. */
static void sort_sites(const struct site_name *sites, struct ranked *items, struct ranked *spare, uint32_t count) {
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t start = 0; start < count; start += 2 * width) {
            uint64_t middle = start + width < count ? start + width : count,
                     end = start + 2 * width < count ? start + 2 * width : count;
            uint64_t a = start, b = middle;
            for (uint64_t k = start; k < end; k++)
                spare[k] = b >= end || (a < middle && !before(sites, &items[b], &items[a])) ? items[a++] : items[b++];
        }
        memcpy(items, spare, count * sizeof *items);
    }
}

/* ---- building ------------------------------------------------------------------------------------------------------ */

struct build {
    struct tly_view view;
    struct arena scratch, result;
    uint32_t ids, sites;
    struct tly_balance *balance; /* by node id */
    uint32_t *site, *parent;     /* by node id; site NONE: not to be shown */
    uint32_t *target;            /* by node id: index of the tree's node that its balance goes to */
    struct tally_tree *tree;
};

static bool is_site(const struct build *build, uint32_t site) {
    const struct tly_site *record = tly_view_record(&build->view, TLY_SEC_SITES, site);
    return record && atomic_load_explicit(&record->kind, memory_order_acquire) != TLY_SITE_NONE;
}

/* Which nodes there are: those that something was ever billed to, and what is above them. */
static void read_nodes(struct build *build) {
    for (uint32_t id = 0; id < build->ids; id++) {
        const struct tly_node *node = tly_view_record(&build->view, TLY_SEC_NODES, id);
        uint32_t site = node ? atomic_load_explicit(&node->site_plus_1, memory_order_acquire) : 0;
        build->site[id] = NONE;
        build->parent[id] = TLY_NODE_ROOT;
        if (id < TLY_NODE_FIRST || site == 0 || node->parent >= id || node->parent == TLY_NODE_PAUSED) continue;
        if (!is_site(build, site - 1)) continue;
        build->site[id] = site - 1;
        build->parent[id] = node->parent;
    }
    /* `target` first says whether the node is wanted. */
    for (uint32_t id = build->ids; id-- > TLY_NODE_FIRST;) {
        if (build->site[id] == NONE) continue;
        if (build->balance[id].alloc_blocks) build->target[id] = 1;
        if (build->target[id]) build->target[build->parent[id]] = 1;
    }
    for (uint32_t id = TLY_NODE_FIRST; id < build->ids; id++)
        if (!build->target[id]) build->site[id] = NONE;
}

static uint32_t add_node(struct build *build, uint32_t parent, uint32_t site) {
    struct tally_tree *tree = build->tree;
    uint32_t index = tree->node_count++;
    tree->nodes[index].parent = index ? &tree->nodes[parent] : NULL;
    tree->nodes[index].site = site;
    return index;
}

static void make_full(struct build *build) {
    build->target[TLY_NODE_ROOT] = add_node(build, 0, NONE);
    for (uint32_t id = TLY_NODE_FIRST; id < build->ids; id++)
        if (build->site[id] != NONE)
            build->target[id] = add_node(build, build->target[build->parent[id]], build->site[id]);
}

/* Walks the tree depth first with a mark on each site of the path; (parent, site) pairs are found by hashing. */
static bool make_folded(struct build *build) {
    uint32_t slots = 64;
    while (slots < 2 * (uint64_t)build->ids)
        slots *= 2;
    uint32_t *first = take(&build->scratch, build->ids * sizeof *first),
             *next = take(&build->scratch, build->ids * sizeof *next);
    uint32_t *table =
        take(&build->scratch, slots * sizeof *table); /* index of a node in the tree; 0: free (the root) */
    uint32_t *path = take(&build->scratch, build->ids * sizeof *path);
    uint8_t *marked = take(&build->scratch, build->sites ? build->sites : 1);
    bool *marks = take(&build->scratch, build->ids * sizeof *marks); /* did this node set its site's mark? */
    if (!first || !next || !table || !path || !marked || !marks) return false;
    for (uint32_t id = build->ids; id-- > TLY_NODE_FIRST;) {
        if (build->site[id] == NONE) continue;
        next[id] = first[build->parent[id]];
        first[build->parent[id]] = id;
    }
    struct tally_node *nodes = build->tree->nodes;
    build->target[TLY_NODE_ROOT] = add_node(build, 0, NONE);
    uint32_t depth = 0, id = first[TLY_NODE_ROOT];
    while (id != 0 || depth > 0) {
        if (id == 0) { /* all children done: up */
            id = path[--depth];
            if (marks[id]) marked[build->site[id]] = 0;
            id = next[id];
            continue;
        }
        uint32_t site = build->site[id], above = build->target[build->parent[id]];
        if (marked[site]) {
            build->target[id] = above;
        } else {
            uint64_t at = tly_hash_mix(above, site) & (slots - 1);
            while (table[at] && (nodes[table[at]].site != site || nodes[table[at]].parent != &nodes[above]))
                at = (at + 1) & (slots - 1);
            if (!table[at]) table[at] = add_node(build, above, site);
            build->target[id] = table[at];
            marked[site] = marks[id] = 1;
        }
        path[depth++] = id;
        id = first[id];
    }
    return true;
}

static void add_balances(struct build *build) {
    struct tally_node *nodes = build->tree->nodes;
    for (uint32_t id = 0; id < build->ids; id++) {
        if (id != TLY_NODE_ROOT && build->site[id] == NONE) continue;
        const struct tly_balance *balance = &build->balance[id];
        struct tally_node *node = &nodes[build->target[id]];
        node->bytes_direct += balance->alloc_bytes - balance->free_bytes;
        node->blocks_direct += balance->alloc_blocks - balance->free_blocks;
        node->allocated_bytes_direct += balance->alloc_bytes;
        node->allocated_blocks_direct += balance->alloc_blocks;
    }
    for (uint32_t i = build->tree->node_count; i-- > 0;) { /* parents come before their children */
        struct tally_node *node = &nodes[i], *parent = (struct tally_node *)node->parent;
        node->bytes += node->bytes_direct;
        node->blocks += node->blocks_direct;
        node->allocated_bytes += node->allocated_bytes_direct;
        node->allocated_blocks += node->allocated_blocks_direct;
        if (!parent) continue;
        parent->bytes += node->bytes;
        parent->blocks += node->blocks;
        parent->allocated_bytes += node->allocated_bytes;
        parent->allocated_blocks += node->allocated_blocks;
    }
}

static bool name_and_link(struct build *build) {
    struct tally_tree *tree = build->tree;
    struct ranked *items = take(&build->scratch, (build->sites + 1) * sizeof *items);
    struct ranked *spare = take(&build->scratch, (build->sites + 1) * sizeof *spare);
    uint32_t *rank = take(&build->scratch, (build->sites + 1) * sizeof *rank);
    uint32_t *start = take(&build->scratch, (build->sites + 2) * sizeof *start);
    uint32_t *order = take(&build->scratch, tree->node_count * sizeof *order);
    if (!items || !spare || !rank || !start || !order) return false;
    uint32_t used = 0;
    for (uint32_t i = 1; i < tree->node_count; i++) {
        uint32_t site = tree->nodes[i].site;
        if (tree->sites[site].bytes) continue;
        if (!name_site(&build->view, tly_view_record(&build->view, TLY_SEC_SITES, site), &build->result,
                       &tree->sites[site]))
            return false;
        uint64_t prefix = 0;
        memcpy(&prefix, tree->sites[site].bytes, tree->sites[site].count < 8 ? tree->sites[site].count : 8);
        items[used++] = (struct ranked){be64toh(prefix), site};
    }
    sort_sites(tree->sites, items, spare, used);
    for (uint32_t i = 0; i < used; i++)
        rank[items[i].site] = i;
    for (uint32_t i = 1; i < tree->node_count; i++)
        start[rank[tree->nodes[i].site] + 1]++;
    for (uint32_t i = 0; i < used; i++)
        start[i + 1] += start[i];
    for (uint32_t i = 1; i < tree->node_count; i++)
        order[start[rank[tree->nodes[i].site]]++] = i;
    for (uint32_t k = tree->node_count - 1; k-- > 0;) { /* last name first, each in front of its siblings */
        struct tally_node *node = &tree->nodes[order[k]], *parent = (struct tally_node *)node->parent;
        node->name = tree->sites[node->site].bytes;
        node->name_bytes = tree->sites[node->site].count;
        node->kind = tree->sites[node->site].kind;
        node->next_sibling = parent->first_child;
        parent->first_child = node;
    }
    tree->nodes[0].name = "__root";
    tree->nodes[0].name_bytes = 6;
    return true;
}

static int build_tree(struct build *build, unsigned flags) {
    struct tally_tree *tree = build->tree;
    build->balance = take(&build->scratch, build->ids * sizeof *build->balance);
    build->site = take(&build->scratch, build->ids * sizeof *build->site);
    build->parent = take(&build->scratch, build->ids * sizeof *build->parent);
    build->target = take(&build->scratch, build->ids * sizeof *build->target);
    if (!build->balance || !build->site || !build->parent || !build->target) return -ENOMEM;
    int result = tly_view_balances(&build->view, build->balance, build->ids);
    if (result != 0) return result;
    /* Sites may have come since; nodes read from here on refer to those below this count or are skipped. */
    build->sites = tly_view_count(&build->view, TLY_SEC_SITES);
    read_nodes(build);
    for (uint32_t id = TLY_NODE_FIRST; id < build->ids; id++)
        if (build->site[id] != NONE && build->site[id] >= build->sites) build->site[id] = NONE;
    tree->nodes = take(&build->result, (size_t)build->ids * sizeof *tree->nodes);
    tree->sites = take(&build->result, (build->sites + 1) * sizeof *tree->sites);
    tree->site_count = build->sites;
    if (!tree->nodes || !tree->sites) return -ENOMEM;
    if (flags & TALLY_TREE_SKIP_REPEATED) {
        if (!make_folded(build)) return -ENOMEM;
    } else {
        make_full(build);
    }
    add_balances(build);
    return name_and_link(build) ? 0 : -ENOMEM;
}

tally_tree *tally_tree_get(unsigned flags) {
    int result;
    if (flags & ~(unsigned)TALLY_TREE_SKIP_REPEATED) {
        errno = -tly_error(EINVAL, "tally_tree_get: unknown flag");
        return NULL;
    }
    if (!tly_process_ready()) {
        errno = -tly_error(ENOSYS, "tally_tree_get: the accounting was never started");
        return NULL;
    }
    struct build build = {.view = {tly_region, tly_region->region_bytes, NULL}};
    build.ids = tly_view_count(&build.view, TLY_SEC_NODES);
    uint64_t sites = tly_view_count(&build.view, TLY_SEC_SITES) + 65536;
    uint64_t names = tly_region->section[TLY_SEC_NAMES].used_bytes;
    size_t scratch_bytes = (size_t)build.ids * 96 + sites * 64 + 65536;
    /* Module names are copied once per caller in them. */
    size_t result_bytes =
        (size_t)build.ids * sizeof(struct tally_node) + sites * 128 + names + (uint64_t)sites * 256 + 65536;
    char *scratch = tly_map_reserve(scratch_bytes), *memory = tly_map_reserve(result_bytes);
    if (scratch && memory) {
        if (build.ids > 10000) { /* both are filled from end to end: fewer page faults */
            int saved = errno;
            madvise(scratch, scratch_bytes, MADV_HUGEPAGE);
            madvise(memory, result_bytes, MADV_HUGEPAGE);
            errno = saved;
        }
        build.scratch = (struct arena){scratch, scratch + scratch_bytes};
        build.result = (struct arena){memory, memory + result_bytes};
        build.tree = take(&build.result, sizeof *build.tree);
        build.tree->mapping_bytes = result_bytes;
        result = build_tree(&build, flags);
    } else {
        result = -ENOMEM;
    }
    if (scratch) munmap(scratch, scratch_bytes);
    if (result == 0) {
        build.tree->counted_bytes = (size_t)(build.result.at - memory);
        tly_map_count(TLY_OWN_OTHER, (int64_t)build.tree->counted_bytes);
        return build.tree;
    }
    if (memory) munmap(memory, result_bytes);
    errno =
        -tly_error(-result, result == -ENOMEM ? "tally_tree_get: no memory for the tree"
                                              : "tally_tree_get: the account was cleared again and again meanwhile");
    return NULL;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

void tally_tree_free(tally_tree *tree) {
    if (!tree) return;
    (void)tly_process_ready(); /* a forked child counts in its own region */
    tly_map_count(TLY_OWN_OTHER, -(int64_t)tree->counted_bytes);
    int saved = errno;
    munmap(tree, tree->mapping_bytes);
    errno = saved;
}

const tally_node *tally_tree_root(const tally_tree *tree) { return tree ? &tree->nodes[0] : NULL; }
const tally_node *tally_node_first_child(const tally_node *node) { return node ? node->first_child : NULL; }
const tally_node *tally_node_next_sibling(const tally_node *node) { return node ? node->next_sibling : NULL; }
const tally_node *tally_node_parent(const tally_node *node) { return node ? node->parent : NULL; }

int tally_node_get_info(const tally_node *node, struct tally_node_info *out) {
    if (!node || !out || out->struct_bytes < sizeof(struct tally_node_info))
        return tly_error(EINVAL, "tally_node_get_info: set struct_bytes to sizeof(struct tally_node_info) first");
    *out = (struct tally_node_info){
        .struct_bytes = sizeof *out,
        .name = node->name,
        .name_bytes = node->name_bytes,
        .bytes = node->bytes,
        .bytes_direct = node->bytes_direct,
        .blocks = node->blocks,
        .blocks_direct = node->blocks_direct,
        .allocated_bytes = node->allocated_bytes,
        .allocated_blocks = node->allocated_blocks,
        .allocated_bytes_direct = node->allocated_bytes_direct,
        .allocated_blocks_direct = node->allocated_blocks_direct,
        .kind = node->kind,
    };
    return 0;
}

const tally_node *tally_tree_find(const tally_tree *tree, const char *const *names, size_t count) {
    const tally_node *node = tally_tree_root(tree);
    for (size_t i = 0; node && i < count; i++) {
        const tally_node *child = node->first_child;
        while (child && strcmp(child->name, names[i]) != 0)
            child = child->next_sibling;
        node = child;
    }
    return node;
}

size_t tally_tree_sites(const tally_tree *tree, struct tally_site_info *out, size_t capacity) {
    if (!tree) return 0;
    size_t slots = tree->site_count + 1, bytes = slots * (sizeof(struct tally_site_info) + 2 * sizeof(struct ranked));
    struct tally_site_info *sums = tly_map_reserve(bytes);
    if (!sums) return 0;
    struct ranked *items = (struct ranked *)(sums + slots), *spare = items + slots;
    for (uint32_t i = 1; i < tree->node_count; i++) {
        const struct tally_node *node = &tree->nodes[i];
        struct tally_site_info *sum = &sums[node->site];
        sum->name = node->name;
        sum->name_bytes = node->name_bytes;
        sum->kind = node->kind;
        sum->bytes += node->bytes_direct;
        sum->blocks += node->blocks_direct;
    }
    uint32_t count = 0;
    for (uint32_t site = 0; site < tree->site_count; site++)
        if (sums[site].name)
            items[count++] = (struct ranked){~sums[site].bytes, site}; /* largest first, then by name */
    sort_sites(tree->sites, items, spare, count);
    for (size_t k = 0; k < capacity && k < count; k++)
        out[k] = sums[items[k].site];
    munmap(sums, bytes);
    return count;
}
