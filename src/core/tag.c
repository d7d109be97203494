/* tag.c - see tag.h. */
#include "core/tag.h"

#include <string.h>

#include "base/hash.h"
#include "base/say.h"
#include "core/blockmap.h"
#include "region/index.h"
#include "region/writer.h"

#define NO_SITE UINT32_MAX /* in site_plus_1: the root and the paused root */

struct site_key {
    enum tly_site_kind kind;
    const char *name;
    uint32_t name_bytes;
    uint32_t module;
    uint64_t value;
};
struct node_key {
    uint32_t parent, site;
};

static bool site_same(uint32_t id, const void *key) {
    const struct site_key *k = key;
    /* A forked child's copy of the index can be newer than its copy of the records. */
    if (id >= tly_site_count()) return false;
    const struct tly_site *site = tly_writer_site(id);
    if (atomic_load_explicit(&site->kind, memory_order_acquire) != k->kind || site->name_bytes != k->name_bytes ||
        site->module != k->module || site->value != k->value)
        return false;
    if (site->name_offset + k->name_bytes > tly_region->section[TLY_SEC_NAMES].used_bytes) return false; /* likewise */
    return memcmp((char *)tly_writer_base(TLY_SEC_NAMES) + site->name_offset, k->name, k->name_bytes) == 0;
}

static uint32_t site_make(const void *key, uint64_t hash) {
    const struct site_key *k = key;
    uint64_t name_offset = 0;
    if (k->name_bytes > 0) {
        name_offset = tly_writer_name(k->name, k->name_bytes);
        if (name_offset == UINT64_MAX) return TLY_NONE;
    }
    uint64_t offset = tly_writer_append(TLY_SEC_SITES, sizeof(struct tly_site));
    if (offset == UINT64_MAX) return TLY_NONE;
    uint32_t id = (uint32_t)(offset / sizeof(struct tly_site));
    struct tly_site *site = tly_writer_site(id);
    site->name_bytes = k->name_bytes;
    site->name_offset = name_offset;
    site->value = k->value;
    site->module = k->module;
    site->hash = (uint32_t)hash;
    atomic_store_explicit(&site->kind, k->kind, memory_order_release);
    return id;
}

static void site_drop(uint32_t id) {
    atomic_store_explicit(&tly_writer_site(id)->kind, TLY_SITE_NONE, memory_order_release);
}

static bool node_same(uint32_t id, const void *key) {
    const struct node_key *k = key;
    if (id >= tly_node_count() + TLY_NODE_FIRST) return false; /* as for sites */
    const struct tly_node *node = tly_writer_node(id);
    return atomic_load_explicit(&node->site_plus_1, memory_order_acquire) == k->site + 1 && node->parent == k->parent;
}

static uint32_t node_make(const void *key, uint64_t hash) {
    (void)hash;
    const struct node_key *k = key;
    uint64_t offset = tly_writer_append(TLY_SEC_NODES, sizeof(struct tly_node));
    if (offset == UINT64_MAX) return TLY_NONE;
    uint32_t id = (uint32_t)(offset / sizeof(struct tly_node));
    if (id >= TLY_MAP_NODES) return TLY_NONE;
    struct tly_node *node = tly_writer_node(id);
    node->parent = k->parent;
    atomic_store_explicit(&node->site_plus_1, k->site + 1, memory_order_release);
    return id;
}

static void node_drop(uint32_t id) {
    atomic_store_explicit(&tly_writer_node(id)->site_plus_1, 0, memory_order_release);
}

static struct tly_index site_index = {TLY_SEC_SITEIDX, (uint64_t)128 << 20, site_same, site_make, site_drop};
static struct tly_index node_index = {TLY_SEC_NODEIDX, (uint64_t)128 << 20, node_same, node_make, node_drop};

void tly_tags_init(uint64_t node_index_bytes) {
    node_index.largest_level_bytes = node_index_bytes;
    if (tly_region->section[TLY_SEC_NODES].used_bytes != 0) return; /* a child's copy of its parent's */
    for (uint32_t root = TLY_NODE_ROOT; root < TLY_NODE_FIRST; root++) {
        tly_writer_append(TLY_SEC_NODES, sizeof(struct tly_node));
        tly_writer_node(root)->parent = root;
        atomic_store_explicit(&tly_writer_node(root)->site_plus_1, NO_SITE, memory_order_release);
    }
}

static uint32_t find(const struct tly_index *index, const void *key, uint64_t hash) {
    bool overflow;
    uint32_t id = tly_index_get(index, key, hash, &overflow);
    if (overflow && atomic_fetch_add_explicit(&tly_region->index_overflow, 1, memory_order_relaxed) == 0)
        tly_say_note("the index of tags is full: each new path is now found by a slow search (nothing is lost); "
                     "raise path_node_table_mb",
                     NULL);
    return id;
}

uint32_t tly_site_of_name(enum tly_site_kind kind, const char *name, uint32_t bytes) {
    struct site_key key = {.kind = kind, .name = name, .name_bytes = bytes};
    return find(&site_index, &key, tly_hash_mix(tly_hash_bytes(name, bytes), (uint64_t)kind));
}

bool tly_site_is_tag(uint32_t id, const char *name, uint32_t bytes) {
    const struct tly_site *site = tly_writer_site(id);
    return site->name_bytes == bytes && site->kind == TLY_SITE_TAG &&
           memcmp((char *)tly_writer_base(TLY_SEC_NAMES) + site->name_offset, name, bytes) == 0;
}

uint32_t tly_site_of_code(enum tly_site_kind kind, uint32_t module, uint64_t offset) {
    struct site_key key = {.kind = kind, .name = "", .module = module, .value = offset};
    return find(&site_index, &key, tly_hash_mix(tly_hash_mix(module, offset), (uint64_t)kind));
}

uint32_t tly_node_child(uint32_t parent, uint32_t site) {
    struct node_key key = {parent, site};
    uint32_t id = site == TLY_NONE ? TLY_NONE : find(&node_index, &key, tly_hash_mix(parent, site));
    if (id != TLY_NONE) return id;
    if (atomic_fetch_add_explicit(&tly_region->index_overflow, 1, memory_order_relaxed) == 0)
        tly_say("no room for more tags: new paths are billed to their parent", NULL);
    return parent;
}

double tly_node_index_load(void) {
    uint64_t filled, slots;
    tly_index_load(&node_index, &filled, &slots);
    return slots ? (double)filled / (double)slots : 0;
}

uint32_t tly_site_count(void) {
    return (uint32_t)(tly_region->section[TLY_SEC_SITES].used_bytes / sizeof(struct tly_site));
}
uint32_t tly_node_count(void) {
    uint64_t nodes = tly_region->section[TLY_SEC_NODES].used_bytes / sizeof(struct tly_node);
    return nodes < TLY_NODE_FIRST ? 0 : (uint32_t)nodes - TLY_NODE_FIRST;
}
