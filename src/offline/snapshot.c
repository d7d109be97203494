/*
 * snapshot.c - the picture itself: a region's records, checked and renumbered. See snapshot.h.
 *
 * Steps: read the balances (first, so that everything they speak of is published by the time it is looked at); decide
 * which nodes to keep; number modules, sites and nodes anew, merging those that mean the same (a library loaded twice).
 */
#include "offline/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "offline/arena.h"
#include "offline/failure.h"
#include "offline/idmap.h"
#include "offline/label.h"
#include "offline/region_facts.h"

enum fate { DROPPED = 0, KEPT = 1 }; /* of a node of the region */

/* What is needed while a picture is taken. */
struct camera {
    const struct tly_view *view;
    struct tly_snapshot *snapshot;
    uint32_t nodes, sites, modules; /* records in the region */
    struct tly_balance *balances;   /* per node */
    uint8_t *fate;                  /* per node */
    uint32_t *new_node;             /* per node: index in the snapshot */
    uint32_t *new_site;             /* per site: index in the snapshot, or TLY_NONE */
    uint32_t *new_module;           /* per module: likewise */
    uint64_t name_bytes_left;       /* names do not overlap: more than NAMES holds cannot be */
};

/* More nodes than this are no account but damage: a region has room for 2^23. */
static const uint32_t most_records = (uint32_t)1 << 24;

static int out_of_memory(char *error, size_t error_bytes) {
    return tly_failure(-ENOMEM, error, error_bytes, "not enough memory for the account");
}

static uint32_t limited(uint32_t count) { return count < most_records ? count : most_records; }

static int read_balances(struct camera *camera) {
    camera->nodes = limited(tly_view_count(camera->view, TLY_SEC_NODES));
    camera->balances = calloc((size_t)camera->nodes + 1, sizeof *camera->balances);
    camera->fate = calloc((size_t)camera->nodes + 1, 1);
    camera->new_node = calloc((size_t)camera->nodes + 1, sizeof *camera->new_node);
    if (!camera->balances || !camera->fate || !camera->new_node) return -ENOMEM;
    int result = tly_view_balances(camera->view, camera->balances, camera->nodes);
    /* counted after that: a node is billed once it is published, and what it refers to was published before it */
    camera->sites = limited(tly_view_count(camera->view, TLY_SEC_SITES));
    camera->modules = limited(tly_view_count(camera->view, TLY_SEC_MODULES));
    camera->new_site = malloc(((size_t)camera->sites + 1) * sizeof *camera->new_site);
    camera->new_module = malloc(((size_t)camera->modules + 1) * sizeof *camera->new_module);
    if (!camera->new_site || !camera->new_module) return -ENOMEM;
    memset(camera->new_site, 0xff, ((size_t)camera->sites + 1) * sizeof *camera->new_site);
    memset(camera->new_module, 0xff, ((size_t)camera->modules + 1) * sizeof *camera->new_module);
    return result;
}

static const struct tly_site *published_site(const struct camera *camera, uint32_t index) {
    if (index >= camera->sites) return NULL;
    const struct tly_site *site = tly_view_record(camera->view, TLY_SEC_SITES, index);
    if (!site) return NULL;
    uint32_t kind = atomic_load_explicit(&site->kind, memory_order_acquire);
    return kind >= TLY_SITE_TAG && kind <= TLY_SITE_CALLER ? site : NULL;
}

static bool is_zero(const struct tly_balance *balance) {
    return (balance->alloc_bytes | balance->alloc_blocks | balance->free_bytes | balance->free_blocks) == 0;
}

/* Is the record of node `i` whole, and where does it hang? */
static bool well_formed(const struct camera *camera, uint32_t i, uint32_t *parent, uint32_t *site) {
    const struct tly_node *node = tly_view_record(camera->view, TLY_SEC_NODES, i);
    uint32_t site_plus_1 = node ? atomic_load_explicit(&node->site_plus_1, memory_order_acquire) : 0;
    if (site_plus_1 == 0 || node->parent >= i || !published_site(camera, site_plus_1 - 1)) return false;
    *parent = node->parent;
    *site = site_plus_1 - 1;
    return true;
}

/* Frees never pass allocations in a whole region; in a damaged one they are held back, and that is counted. */
static void settle(struct tly_snapshot *snapshot, struct tly_balance *balance) {
    if (balance->free_bytes <= balance->alloc_bytes && balance->free_blocks <= balance->alloc_blocks) return;
    if (balance->free_bytes > balance->alloc_bytes) balance->free_bytes = balance->alloc_bytes;
    if (balance->free_blocks > balance->alloc_blocks) balance->free_blocks = balance->alloc_blocks;
    snapshot->damaged_records++;
}

/* Keeps the nodes on whose paths something was allocated; drops what is paused or damaged, and what lies below. */
static void decide_fates(struct camera *camera) {
    bool *used = (bool *)camera->fate; /* first: whether anything was billed there or below */
    struct tly_snapshot *snapshot = camera->snapshot;
    uint32_t parent, site;
    for (uint32_t i = camera->nodes; i-- > TLY_NODE_FIRST;) {
        if (!is_zero(&camera->balances[i])) used[i] = true;
        if (used[i] && well_formed(camera, i, &parent, &site)) used[parent] = true;
    }
    for (uint32_t i = 0; i < camera->nodes; i++) {
        bool keep = i == TLY_NODE_ROOT;
        if (i >= TLY_NODE_FIRST && used[i]) {
            bool whole = well_formed(camera, i, &parent, &site);
            keep = whole && camera->fate[parent] == KEPT;
            if (!whole) snapshot->damaged_records++;
            if (keep) camera->new_site[site] = 0; /* wanted; numbered later */
        }
        camera->fate[i] = keep ? KEPT : DROPPED;
        if (keep) settle(snapshot, &camera->balances[i]);
    }
}

/* ---- Modules and sites ------------------------------------------------------------------------------------------ */

static bool same_module(const void *context, uint32_t id) {
    const struct tly_snapshot *snapshot = context;
    const struct tly_snapshot_module *a = &snapshot->modules[snapshot->module_count], *b = &snapshot->modules[id];
    return a->path.length == b->path.length && memcmp(a->path.bytes, b->path.bytes, a->path.length) == 0 &&
           a->build_id_bytes == b->build_id_bytes && memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
}

static struct tly_bytes copy_name(struct camera *camera, uint64_t offset, uint32_t length) {
    struct tly_bytes none = {NULL, 0};
    const char *name = tly_view_name(camera->view, offset, length);
    if (!name || length > camera->name_bytes_left) return none;
    camera->name_bytes_left -= length;
    return tly_snapshot_copy(camera->snapshot, name, length);
}

/* A library that was loaded twice, at two places, is one module: same path, same build. */
static int number_modules(struct camera *camera) {
    struct tly_snapshot *snapshot = camera->snapshot;
    struct tly_idmap map;
    snapshot->modules = tly_arena_take(snapshot->arena, ((size_t)camera->modules + 1) * sizeof *snapshot->modules);
    if (!snapshot->modules || tly_idmap_make(&map, camera->modules) != 0) return -ENOMEM;
    for (uint32_t i = 0; i < camera->modules; i++) {
        const struct tly_module *module = tly_view_record(camera->view, TLY_SEC_MODULES, i);
        if (!module || atomic_load_explicit(&module->state, memory_order_acquire) != 1) continue;
        struct tly_snapshot_module *out = &snapshot->modules[snapshot->module_count];
        memset(out, 0, sizeof *out);
        out->path = copy_name(camera, module->name_offset, module->name_bytes);
        if (!out->path.bytes || module->build_id_bytes > TLY_BUILD_ID_MAX) {
            snapshot->damaged_records++;
            continue;
        }
        out->start = module->start;
        out->end = module->end;
        out->bias = module->bias;
        out->first_seen_ns = module->first_seen_ns;
        out->build_id_bytes = module->build_id_bytes;
        memcpy(out->build_id, module->build_id, module->build_id_bytes);
        uint64_t hash = tly_hash_mix(tly_hash_bytes(out->path.bytes, out->path.length),
                                     tly_hash_bytes((const char *)out->build_id, out->build_id_bytes));
        camera->new_module[i] = tly_idmap_put(&map, hash, snapshot->module_count, same_module, snapshot);
        if (camera->new_module[i] == snapshot->module_count) snapshot->module_count++;
    }
    tly_idmap_free(&map);
    return 0;
}

static bool same_site(const void *context, uint32_t id) {
    const struct tly_snapshot *snapshot = context;
    const struct tly_snapshot_site *a = &snapshot->sites[snapshot->site_count], *b = &snapshot->sites[id];
    return a->kind == b->kind && a->module == b->module && a->value == b->value && a->name.length == b->name.length &&
           (a->name.length == 0 || memcmp(a->name.bytes, b->name.bytes, a->name.length) == 0);
}

/* Fills `out` from a site; false if it is damaged: its node then keeps its place under a name that says so. */
static bool describe_site(struct camera *camera, const struct tly_site *site, struct tly_snapshot_site *out) {
    memset(out, 0, sizeof *out);
    out->kind = atomic_load_explicit(&site->kind, memory_order_relaxed);
    out->module = TLY_NONE;
    if (out->kind == TLY_SITE_TAG || out->kind == TLY_SITE_THREAD) {
        out->name = copy_name(camera, site->name_offset, site->name_bytes);
        if (out->name.bytes) return true;
        out->name = (struct tly_bytes){"?", 1};
        return false;
    }
    if (out->kind == TLY_SITE_CALLER) out->value = site->value;
    if (site->module == TLY_MODULE_UNKNOWN) return true;
    if (site->module < camera->modules) out->module = camera->new_module[site->module];
    return out->module != TLY_NONE;
}

static int number_sites(struct camera *camera) {
    struct tly_snapshot *snapshot = camera->snapshot;
    struct tly_idmap map;
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < camera->sites; i++)
        wanted += camera->new_site[i] != TLY_NONE;
    snapshot->sites = tly_arena_take(snapshot->arena, ((size_t)wanted + 1) * sizeof *snapshot->sites);
    if (!snapshot->sites || tly_idmap_make(&map, wanted) != 0) return -ENOMEM;
    for (uint32_t i = 0; i < camera->sites; i++) {
        if (camera->new_site[i] == TLY_NONE) continue;
        struct tly_snapshot_site *out = &snapshot->sites[snapshot->site_count];
        if (!describe_site(camera, published_site(camera, i), out)) snapshot->damaged_records++;
        uint64_t hash = tly_hash_mix((uint64_t)out->kind << 32 | out->module, out->value);
        hash = tly_hash_mix(hash, tly_hash_bytes(out->name.bytes ? out->name.bytes : "", out->name.length));
        camera->new_site[i] = tly_idmap_put(&map, hash, snapshot->site_count, same_site, snapshot);
        if (camera->new_site[i] == snapshot->site_count) snapshot->site_count++;
    }
    tly_idmap_free(&map);
    return 0;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

static bool same_node(const void *context, uint32_t id) {
    const struct tly_snapshot *snapshot = context;
    const struct tly_snapshot_node *a = &snapshot->nodes[snapshot->node_count], *b = &snapshot->nodes[id];
    return a->parent == b->parent && a->site == b->site;
}

static int number_nodes(struct camera *camera) {
    struct tly_snapshot *snapshot = camera->snapshot;
    struct tly_idmap map;
    uint32_t kept = 1, parent, site;
    for (uint32_t i = TLY_NODE_FIRST; i < camera->nodes; i++)
        kept += camera->fate[i] == KEPT;
    snapshot->nodes = tly_arena_take(snapshot->arena, (size_t)kept * sizeof *snapshot->nodes);
    if (!snapshot->nodes || tly_idmap_make(&map, kept) != 0) return -ENOMEM;
    snapshot->nodes[0].site = TLY_NONE;
    snapshot->nodes[0].direct = camera->balances[0]; /* there is always room for one */
    snapshot->node_count = 1;
    for (uint32_t i = TLY_NODE_FIRST; i < camera->nodes; i++) {
        if (camera->fate[i] != KEPT || !well_formed(camera, i, &parent, &site)) continue;
        struct tly_snapshot_node *out = &snapshot->nodes[snapshot->node_count];
        out->parent = camera->new_node[parent];
        out->site = camera->new_site[site];
        memset(&out->direct, 0, sizeof out->direct);
        uint64_t hash = tly_hash_mix(out->parent, out->site);
        uint32_t id = tly_idmap_put(&map, hash, snapshot->node_count, same_node, snapshot);
        camera->new_node[i] = id;
        tly_balance_add(&snapshot->nodes[id].direct, &camera->balances[i]);
        if (id == snapshot->node_count) snapshot->node_count++;
    }
    tly_idmap_free(&map);
    return 0;
}

static int take_picture(struct camera *camera, char *error, size_t error_bytes) {
    struct tly_snapshot *snapshot = camera->snapshot;
    int result = read_balances(camera);
    bool unquiet = result == -EAGAIN;
    if (result != 0 && !unquiet) return out_of_memory(error, error_bytes);
    if (unquiet) snapshot->damaged_records++; /* it died, or hangs, in the middle of a clear: half of it is cleared */
    camera->name_bytes_left = tly_view_count(camera->view, TLY_SEC_NAMES);
    decide_fates(camera);
    result = number_modules(camera);
    if (result == 0) result = number_sites(camera);
    if (result == 0) result = number_nodes(camera);
    if (result == 0) result = tly_region_facts(camera->view, snapshot);
    if (result != 0) return out_of_memory(error, error_bytes);
    if (unquiet) {
        static const char text[] = "a clear was under way when the account ended: figures from before it may be in it";
        snapshot->note = (struct tly_bytes){text, sizeof text - 1};
    }
    result = tly_snapshot_complete(snapshot);
    if (result == -ENOMEM) return out_of_memory(error, error_bytes);
    if (result != 0)
        return tly_failure(-EBADMSG, error, error_bytes, "damaged region: the counters add up to more than 2^63");
    return 0;
}

int tly_snapshot_from_view(const struct tly_view *view, struct tly_snapshot **out, char *error, size_t error_bytes) {
    struct camera camera = {.view = view, .snapshot = tly_snapshot_new()};
    *out = NULL;
    if (!camera.snapshot) return out_of_memory(error, error_bytes);
    int result = take_picture(&camera, error, error_bytes);
    free(camera.balances);
    free(camera.fate);
    free(camera.new_node);
    free(camera.new_site);
    free(camera.new_module);
    if (result != 0)
        tly_snapshot_free(camera.snapshot);
    else
        *out = camera.snapshot;
    return result;
}

/* ---- Any snapshot ----------------------------------------------------------------------------------------------- */

struct tly_snapshot *tly_snapshot_new(void) {
    struct tly_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot) return NULL;
    snapshot->arena = tly_arena_new();
    if (snapshot->arena) return snapshot;
    free(snapshot);
    return NULL;
}

void tly_snapshot_free(struct tly_snapshot *snapshot) {
    if (!snapshot) return;
    tly_arena_free(snapshot->arena);
    free(snapshot);
}

struct tly_bytes tly_snapshot_copy(struct tly_snapshot *snapshot, const char *bytes, size_t length) {
    struct tly_bytes copy = {tly_arena_copy(snapshot->arena, bytes, length), (uint32_t)length};
    if (!copy.bytes) copy.length = 0;
    return copy;
}

static int add_up(struct tly_snapshot *snapshot) {
    struct tly_balance sum = {0};
    for (uint32_t i = 0; i < snapshot->node_count; i++) {
        const struct tly_balance *direct = &snapshot->nodes[i].direct;
        if (direct->alloc_bytes > INT64_MAX || direct->alloc_blocks > INT64_MAX) return -EBADMSG;
        if (direct->free_bytes > direct->alloc_bytes || direct->free_blocks > direct->alloc_blocks) return -EBADMSG;
        tly_balance_add(&sum, direct);
        if (sum.alloc_bytes > INT64_MAX || sum.alloc_blocks > INT64_MAX) return -EBADMSG;
    }
    snapshot->totals.sum = sum;
    uint64_t live_bytes = sum.alloc_bytes - sum.free_bytes;
    if (snapshot->totals.peak_bytes < live_bytes) snapshot->totals.peak_bytes = live_bytes;
    return 0;
}

struct module_name {
    const struct tly_snapshot *snapshot;
    struct tly_bytes name;
    bool whole; /* the path, not the base name */
};

static struct tly_bytes name_of(const struct tly_snapshot *snapshot, uint32_t module, bool whole) {
    struct tly_bytes path = snapshot->modules[module].path;
    return whole ? path : tly_label_base_name(path);
}

static bool same_name(const void *context, uint32_t id) {
    const struct module_name *wanted = context;
    struct tly_bytes name = name_of(wanted->snapshot, id, wanted->whole);
    return name.length == wanted->name.length && memcmp(name.bytes, wanted->name.bytes, name.length) == 0;
}

static int tell_modules_apart(struct tly_snapshot *snapshot, bool whole) {
    struct tly_idmap map;
    if (tly_idmap_make(&map, snapshot->module_count) != 0) return -ENOMEM;
    for (uint32_t i = 0; i < snapshot->module_count; i++) {
        struct module_name name = {snapshot, name_of(snapshot, i, whole), whole};
        uint64_t hash = tly_hash_bytes(name.name.bytes, name.name.length);
        uint32_t first = tly_idmap_put(&map, hash, i, same_name, &name);
        if (first == i) continue;
        snapshot->modules[i].told_by = snapshot->modules[first].told_by =
            whole ? TLY_MODULE_BY_BUILD : TLY_MODULE_BY_PATH;
    }
    tly_idmap_free(&map);
    return 0;
}

int tly_snapshot_complete(struct tly_snapshot *snapshot) {
    int result = add_up(snapshot);
    if (result == 0) result = tell_modules_apart(snapshot, false);
    if (result == 0) result = tell_modules_apart(snapshot, true);
    return result;
}

void tly_snapshot_set_end(struct tly_snapshot *snapshot, enum tly_end_kind kind, int value) {
    snapshot->process.end_kind = kind;
    snapshot->process.end_value = value;
    snapshot->exact =
        kind != TLY_END_RUNNING && snapshot->damaged_records == 0 && snapshot->counters.untracked_allocs == 0;
}
