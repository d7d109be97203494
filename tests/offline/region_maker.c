/* region_maker.c - see region_maker.h. */
#include "region_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part {
    unsigned char *bytes;
    size_t used, room, record;
};

struct region_maker {
    struct tly_region head;
    struct part part[TLY_SEC_COUNT];
};

static void *append(struct region_maker *maker, enum tly_section_id id, size_t bytes) {
    struct part *part = &maker->part[id];
    if (part->room - part->used < bytes) {
        part->room = (part->used + bytes) * 2 + 1024;
        part->bytes = realloc(part->bytes, part->room);
        if (!part->bytes) abort();
    }
    void *at = part->bytes + part->used;
    memset(at, 0, bytes);
    part->used += bytes;
    return at;
}

static uint32_t count(const struct region_maker *maker, enum tly_section_id id) {
    return (uint32_t)(maker->part[id].used / maker->part[id].record);
}

static uint64_t add_name(struct region_maker *maker, const char *bytes, size_t length) {
    uint64_t offset = maker->part[TLY_SEC_NAMES].used;
    void *at = append(maker, TLY_SEC_NAMES, length);
    if (length) memcpy(at, bytes, length);
    return offset;
}

struct region_maker *region_maker_new(void) {
    static const size_t records[TLY_SEC_COUNT] = {
        [TLY_SEC_HEADER] = sizeof(struct tly_region),
        [TLY_SEC_NAMES] = 1,
        [TLY_SEC_SITES] = sizeof(struct tly_site),
        [TLY_SEC_NODES] = sizeof(struct tly_node),
        [TLY_SEC_MODULES] = sizeof(struct tly_module),
        [TLY_SEC_LEDGERS] = sizeof(struct tly_ledger),
        [TLY_SEC_SEGDIR] = sizeof(struct tly_segref),
        [TLY_SEC_SEGS] = sizeof(struct tly_seg),
        [TLY_SEC_SITEIDX] = 8,
        [TLY_SEC_NODEIDX] = 8,
    };
    struct region_maker *maker = calloc(1, sizeof *maker);
    if (!maker) abort();
    for (int i = 0; i < TLY_SEC_COUNT; i++)
        maker->part[i].record = records[i];
    memcpy(maker->head.magic, TLY_REGION_MAGIC, 8);
    maker->head.version = TLY_REGION_VERSION;
    maker->head.header_bytes = sizeof maker->head;
    maker->head.section_count = TLY_SEC_COUNT;
    maker->head.flags = TLY_REGION_WRITTEN | TLY_REGION_EXITED;
    maker->head.state = TLY_STATE_ON;
    maker->head.page_bytes = 4096;
    maker->head.loaded_ns = 1700000000000000000;
    maker->head.started_ns = 1700000000000000000;
    maker->head.ended_ns = 1700000001000000000;
    for (int i = 0; i < 2; i++) {
        struct tly_node *node = append(maker, TLY_SEC_NODES, sizeof *node);
        node->site_plus_1 = UINT32_MAX;
    }
    struct tly_ledger *shared = region_maker_ledger(maker, 0);
    shared->state = TLY_LEDGER_IS_SHARED;
    shared->threads = 0;
    return maker;
}

void region_maker_free(struct region_maker *maker) {
    for (int i = 0; i < TLY_SEC_COUNT; i++)
        free(maker->part[i].bytes);
    free(maker);
}

struct tly_region *region_maker_head(struct region_maker *maker) {
    return &maker->head;
}

void region_maker_text(struct region_maker *maker, struct tly_text *text, const char *bytes, size_t length) {
    text->offset = add_name(maker, bytes, length);
    text->bytes = (uint32_t)length;
}

uint32_t region_maker_site(struct region_maker *maker, uint32_t kind, const char *name, size_t length, uint64_t value,
                           uint32_t module) {
    uint64_t offset = add_name(maker, name, length);
    struct tly_site *site = append(maker, TLY_SEC_SITES, sizeof *site);
    site->kind = kind;
    site->name_offset = offset;
    site->name_bytes = (uint32_t)length;
    site->value = value;
    site->module = module;
    return count(maker, TLY_SEC_SITES) - 1;
}

uint32_t region_maker_tag(struct region_maker *maker, const char *name) {
    return region_maker_site(maker, TLY_SITE_TAG, name, strlen(name), 0, 0);
}

uint32_t region_maker_module(struct region_maker *maker, const char *path, const void *build_id, uint32_t length) {
    uint64_t offset = add_name(maker, path, strlen(path));
    struct tly_module *module = append(maker, TLY_SEC_MODULES, sizeof *module);
    module->name_offset = offset;
    module->name_bytes = (uint32_t)strlen(path);
    module->start = 0x10000;
    module->end = 0x20000;
    module->bias = 0x10000;
    module->build_id_bytes = length;
    if (length) memcpy(module->build_id, build_id, length);
    module->state = 1;
    return count(maker, TLY_SEC_MODULES) - 1;
}

uint32_t region_maker_caller(struct region_maker *maker, uint32_t module, uint64_t address) {
    return region_maker_site(maker, TLY_SITE_CALLER, "", 0, address, module);
}

uint32_t region_maker_node(struct region_maker *maker, uint32_t parent, uint32_t site) {
    struct tly_node *node = append(maker, TLY_SEC_NODES, sizeof *node);
    node->parent = parent;
    node->site_plus_1 = site + 1;
    return count(maker, TLY_SEC_NODES) - 1;
}

struct tly_ledger *region_maker_ledger(struct region_maker *maker, uint32_t index) {
    while (count(maker, TLY_SEC_LEDGERS) <= index) {
        struct tly_ledger *ledger = append(maker, TLY_SEC_LEDGERS, sizeof *ledger);
        ledger->state = TLY_LEDGER_LIVE;
        ledger->threads = 1;
    }
    return (struct tly_ledger *)(void *)maker->part[TLY_SEC_LEDGERS].bytes + index;
}

static struct tly_cell *cell_of(struct region_maker *maker, uint32_t ledger, uint32_t node) {
    uint32_t segments = count(maker, TLY_SEC_SEGDIR), first = node / TLY_SEG_NODES * TLY_SEG_NODES, i = segments;
    struct tly_segref *refs = (struct tly_segref *)(void *)maker->part[TLY_SEC_SEGDIR].bytes;
    while (i-- > 0) { /* the newest first: nodes are mostly billed in order */
        if (refs[i].ledger_plus_1 == ledger + 1 && refs[i].first_node == first) break;
        if (segments - i > 64) i = 0;
    }
    if (i == UINT32_MAX) {
        struct tly_segref *ref = append(maker, TLY_SEC_SEGDIR, sizeof *ref);
        ref->ledger_plus_1 = ledger + 1;
        ref->first_node = first;
        append(maker, TLY_SEC_SEGS, sizeof(struct tly_seg));
        i = segments;
    }
    struct tly_seg *segs = (struct tly_seg *)(void *)maker->part[TLY_SEC_SEGS].bytes;
    return &segs[i].cell[node - first];
}

void region_maker_bill(struct region_maker *maker, uint32_t ledger, uint32_t node, uint64_t alloc_bytes,
                       uint64_t alloc_blocks, uint64_t free_bytes, uint64_t free_blocks) {
    region_maker_ledger(maker, ledger);
    struct tly_cell *cell = cell_of(maker, ledger, node);
    cell->alloc_bytes += alloc_bytes;
    cell->alloc_blocks += alloc_blocks;
    cell->free_bytes += free_bytes;
    cell->free_blocks += free_blocks;
}

void *region_maker_image(struct region_maker *maker, size_t *bytes) {
    size_t total = 0;
    maker->part[TLY_SEC_HEADER].used = 0;
    append(maker, TLY_SEC_HEADER, sizeof maker->head);
    for (int i = 0; i < TLY_SEC_COUNT; i++) {
        struct tly_section *section = &maker->head.section[i];
        size_t used = maker->part[i].used;
        section->offset = total;
        section->capacity_bytes = (used + 63) / 64 * 64;
        section->committed_bytes = section->capacity_bytes;
        section->used_bytes = used;
        section->record_bytes = (uint32_t)maker->part[i].record;
        total += section->capacity_bytes;
    }
    maker->head.region_bytes = total;
    memcpy(maker->part[TLY_SEC_HEADER].bytes, &maker->head, sizeof maker->head);
    unsigned char *image = calloc(1, total);
    if (!image) abort();
    for (int i = 0; i < TLY_SEC_COUNT; i++) {
        if (maker->part[i].used)
            memcpy(image + maker->head.section[i].offset, maker->part[i].bytes, maker->part[i].used);
    }
    *bytes = total;
    return image;
}

void region_maker_write(struct region_maker *maker, const char *path) {
    size_t bytes;
    void *image = region_maker_image(maker, &bytes);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(image, 1, bytes, file) != bytes || fclose(file) != 0) abort();
    free(image);
}

struct region_maker *region_maker_reference(void) {
    struct region_maker *maker = region_maker_new();
    struct tly_region *head = region_maker_head(maker);
    static const char command[] = "./reference\0--with\0two words";
    head->pid = 1234;
    head->ppid = 1;
    head->uid = 1000;
    head->loaded_ns = 1700000000000000000;
    head->started_ns = 1700000000000000000;
    head->ended_ns = 1700000002500000000;
    head->peak_bytes = 500;
    head->peak_ns = 1700000001500000000;
    head->peak_threads = 1;
    head->flush_bytes = 1024;
    head->own_bytes[TLY_OWN_REGION] = 65536;
    head->own_bytes[TLY_OWN_BLOCK_MAP] = 8192;
    region_maker_text(maker, &head->program, "reference", 9);
    region_maker_text(maker, &head->command_line, command, sizeof command - 1);
    region_maker_text(maker, &head->directory, "/home/me", 8);
    region_maker_text(maker, &head->host, "box", 3);
    uint32_t top = region_maker_tag(maker, "Top"), a = region_maker_tag(maker, "A"), b = region_maker_tag(maker, "B");
    uint32_t node_top = region_maker_node(maker, 0, top);
    uint32_t node_a = region_maker_node(maker, node_top, a);
    uint32_t node_ab = region_maker_node(maker, node_a, b);
    uint32_t node_b = region_maker_node(maker, node_top, b);
    region_maker_bill(maker, 1, node_top, 100, 1, 0, 0);
    region_maker_bill(maker, 1, node_a, 100, 1, 0, 0);
    region_maker_bill(maker, 1, node_ab, 150, 2, 0, 0);
    region_maker_bill(maker, 2, node_ab, 0, 0, 50, 1); /* freed by another thread */
    region_maker_bill(maker, 1, node_b, 100, 1, 0, 0);
    region_maker_ledger(maker, 1)->unmatched_frees = 3;
    return maker;
}
