/* record_pack.c - a snapshot into a protobuf message; see record.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "offline/arena.h"
#include "offline/idmap.h"
#include "offline/record.h"
#include "tally.pb-c.h"

/* All that a message under construction needs. Memory comes from the arena; `failed` is looked at once, at the end. */
struct packer {
    const struct tly_snapshot *snapshot;
    struct tly_arena *arena;
    struct tly_idmap map; /* of strings: equal ones are stored once */
    struct tly_bytes *strings;
    uint32_t string_count;
    uint64_t string_bytes;
    bool failed;
};

static void *take(struct packer *packer, size_t count, size_t bytes) {
    void *memory = tly_arena_take(packer->arena, count * bytes);
    if (!memory) packer->failed = true;
    return memory;
}

static ProtobufCBinaryData binary(struct tly_bytes bytes) {
    return (ProtobufCBinaryData){.len = bytes.bytes ? bytes.length : 0, .data = (uint8_t *)(uintptr_t)bytes.bytes};
}

static bool same_string(const void *context, uint32_t id) {
    const struct packer *packer = context;
    const struct tly_bytes *a = &packer->strings[packer->string_count], *b = &packer->strings[id];
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* The string's number plus 1; 0 for an unknown one. */
static uint32_t string_number(struct packer *packer, struct tly_bytes string) {
    if (!string.bytes) return 0;
    packer->strings[packer->string_count] = string;
    uint32_t id = tly_idmap_put(&packer->map, tly_hash_bytes(string.bytes, string.length), packer->string_count,
                                same_string, packer);
    if (id == packer->string_count) {
        packer->string_count++;
        packer->string_bytes += string.length;
    }
    return id + 1;
}

static void pack_process(const struct tly_process_facts *from, Tally__Process *to) {
    tally__process__init(to);
    to->pid = from->pid;
    to->ppid = from->ppid;
    to->uid = from->uid;
    to->forked_from = from->forked_from;
    to->pid_namespace = from->pid_namespace;
    to->process_start_ticks = from->process_start_ticks;
    to->region_id = from->region_id;
    to->program = binary(from->program);
    to->directory = binary(from->directory);
    to->host = binary(from->host);
    to->options = binary(from->options);
    to->command_line = binary(from->command_line);
    to->auto_tags = from->auto_tags;
    to->region_flags = from->region_flags;
    to->state = from->state;
    to->end_kind = from->end_kind;
    to->end_value = from->end_value;
    to->core_dumped = from->core_dumped;
    to->loaded_ns = from->loaded_ns;
    to->started_ns = from->started_ns;
    to->cleared_ns = from->cleared_ns;
    to->ended_ns = from->ended_ns;
    to->taken_ns = from->taken_ns;
    to->wall_ns = from->wall_ns;
    to->user_ns = from->user_ns;
    to->system_ns = from->system_ns;
    to->max_rss_bytes = from->max_rss_bytes;
}

static void pack_totals(const struct tly_snapshot_totals *from, Tally__Totals *to) {
    tally__totals__init(to);
    to->peak_bytes = from->peak_bytes;
    to->peak_error_bytes = from->peak_error_bytes;
    to->peak_ns = from->peak_ns;
    to->inherited_bytes = from->inherited_bytes;
    to->inherited_blocks = from->inherited_blocks;
}

static void pack_counters(const struct tly_snapshot_counters *from, Tally__Counters *to) {
    tally__counters__init(to);
    to->unmatched_frees = from->unmatched_frees;
    to->untracked_allocs = from->untracked_allocs;
    to->missed_frees = from->missed_frees;
    to->off_radar_allocs = from->off_radar_allocs;
    to->pop_errors = from->pop_errors;
    to->cut_names = from->cut_names;
    to->threads = from->threads;
    to->ledgers_live = from->ledgers_live;
    to->spills = from->spills;
    to->consolidations = from->consolidations;
    to->index_overflow = from->index_overflow;
    to->block_map_chunks = from->block_map_chunks;
    to->n_own_bytes = TLY_OWN_COUNT;
    to->own_bytes = (uint64_t *)(uintptr_t)from->own_bytes;
    to->nodes = from->nodes;
    to->sites = from->sites;
}

static void pack_modules(struct packer *packer, Tally__Snapshot *message) {
    const struct tly_snapshot *snapshot = packer->snapshot;
    message->n_modules = snapshot->module_count;
    message->modules = take(packer, snapshot->module_count, sizeof *message->modules);
    Tally__Module *modules = take(packer, snapshot->module_count, sizeof *modules);
    if (packer->failed) return;
    for (uint32_t i = 0; i < snapshot->module_count; i++) {
        struct tly_snapshot_module *from = &snapshot->modules[i];
        Tally__Module *to = message->modules[i] = &modules[i];
        tally__module__init(to);
        to->path = binary(from->path);
        to->start = from->start;
        to->end = from->end;
        to->bias = from->bias;
        to->build_id = (ProtobufCBinaryData){.len = from->build_id_bytes, .data = from->build_id};
        to->symbols = from->symbols;
        to->first_seen_ns = from->first_seen_ns;
    }
}

static void pack_sites(struct packer *packer, Tally__Sites *to) {
    const struct tly_snapshot *snapshot = packer->snapshot;
    uint32_t count = snapshot->site_count;
    tally__sites__init(to);
    to->n_kind = to->n_module_plus_1 = to->n_value = to->n_name_plus_1 = to->n_frames = count;
    to->kind = take(packer, count, sizeof *to->kind);
    to->module_plus_1 = take(packer, count, sizeof *to->module_plus_1);
    to->value = take(packer, count, sizeof *to->value);
    to->name_plus_1 = take(packer, count, sizeof *to->name_plus_1);
    to->frames = take(packer, count, sizeof *to->frames);
    if (packer->failed) return;
    for (uint32_t i = 0; i < count; i++) {
        const struct tly_snapshot_site *site = &snapshot->sites[i];
        to->kind[i] = site->kind;
        to->module_plus_1[i] = site->module + 1; /* TLY_NONE + 1 is 0 */
        to->value[i] = site->value;
        to->name_plus_1[i] = string_number(packer, site->name);
        to->frames[i] = site->frame_count;
    }
}

/* In the order of the sites, so that a count per site tells which are whose. */
static void pack_frames(struct packer *packer, Tally__Frames *to) {
    const struct tly_snapshot *snapshot = packer->snapshot;
    size_t count = 0, at = 0;
    for (uint32_t i = 0; i < snapshot->site_count; i++)
        count += snapshot->sites[i].frame_count;
    tally__frames__init(to);
    to->n_function_plus_1 = to->n_file_plus_1 = to->n_line = count;
    to->function_plus_1 = take(packer, count, sizeof *to->function_plus_1);
    to->file_plus_1 = take(packer, count, sizeof *to->file_plus_1);
    to->line = take(packer, count, sizeof *to->line);
    if (packer->failed) return;
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        const struct tly_snapshot_site *site = &snapshot->sites[i];
        for (uint32_t k = 0; k < site->frame_count; k++, at++) {
            const struct tly_snapshot_frame *frame = &snapshot->frames[site->first_frame + k];
            to->function_plus_1[at] = string_number(packer, frame->function);
            to->file_plus_1[at] = string_number(packer, frame->file);
            to->line[at] = frame->line;
        }
    }
}

static void pack_nodes(struct packer *packer, Tally__Nodes *to) {
    const struct tly_snapshot *snapshot = packer->snapshot;
    uint32_t count = snapshot->node_count;
    tally__nodes__init(to);
    to->n_up = to->n_site_plus_1 = count;
    to->n_alloc_bytes = to->n_alloc_blocks = to->n_free_bytes = to->n_free_blocks = count;
    to->up = take(packer, count, sizeof *to->up);
    to->site_plus_1 = take(packer, count, sizeof *to->site_plus_1);
    to->alloc_bytes = take(packer, count, sizeof *to->alloc_bytes);
    to->alloc_blocks = take(packer, count, sizeof *to->alloc_blocks);
    to->free_bytes = take(packer, count, sizeof *to->free_bytes);
    to->free_blocks = take(packer, count, sizeof *to->free_blocks);
    if (packer->failed) return;
    for (uint32_t i = 0; i < count; i++) {
        const struct tly_snapshot_node *node = &snapshot->nodes[i];
        to->up[i] = i - node->parent;
        to->site_plus_1[i] = node->site + 1; /* TLY_NONE + 1 is 0 */
        to->alloc_bytes[i] = node->direct.alloc_bytes;
        to->alloc_blocks[i] = node->direct.alloc_blocks;
        to->free_bytes[i] = node->direct.free_bytes;
        to->free_blocks[i] = node->direct.free_blocks;
    }
}

static void pack_strings(struct packer *packer, Tally__Strings *to) {
    tally__strings__init(to);
    to->n_length = packer->string_count;
    to->length = take(packer, packer->string_count, sizeof *to->length);
    char *text = take(packer, packer->string_bytes, 1);
    if (packer->failed) return;
    to->text = (ProtobufCBinaryData){.len = packer->string_bytes, .data = (uint8_t *)text};
    for (uint32_t i = 0; i < packer->string_count; i++) {
        const struct tly_bytes *string = &packer->strings[i];
        to->length[i] = string->length;
        memcpy(text, string->bytes, string->length);
        text += string->length;
    }
}

static int pack_message(struct packer *packer, uint8_t **out, size_t *out_bytes) {
    const struct tly_snapshot *snapshot = packer->snapshot;
    Tally__Snapshot message = TALLY__SNAPSHOT__INIT;
    Tally__Process process;
    Tally__Totals totals;
    Tally__Counters counters;
    Tally__Strings strings;
    Tally__Sites sites;
    Tally__Frames frames;
    Tally__Nodes nodes;
    pack_process(&snapshot->process, &process);
    pack_totals(&snapshot->totals, &totals);
    pack_counters(&snapshot->counters, &counters);
    pack_modules(packer, &message);
    pack_sites(packer, &sites);
    pack_frames(packer, &frames);
    pack_nodes(packer, &nodes);
    pack_strings(packer, &strings); /* last: the others have numbered them */
    if (packer->failed) return -ENOMEM;
    message.process = &process;
    message.totals = &totals;
    message.counters = &counters;
    message.strings = &strings;
    message.sites = &sites;
    message.frames = &frames;
    message.nodes = &nodes;
    message.exact = snapshot->exact;
    message.symbolised = snapshot->symbolised;
    message.damaged_records = snapshot->damaged_records;
    message.note = binary(snapshot->note);
    *out_bytes = tally__snapshot__get_packed_size(&message);
    *out = malloc(*out_bytes);
    if (!*out) return -ENOMEM;
    tally__snapshot__pack(&message, *out);
    return 0;
}

int tly_record_pack(const struct tly_snapshot *snapshot, uint8_t **out, size_t *out_bytes) {
    struct packer packer = {.snapshot = snapshot, .arena = tly_arena_new()};
    uint64_t most_strings = (uint64_t)snapshot->site_count + 1;
    for (uint32_t i = 0; i < snapshot->site_count; i++)
        most_strings += 2 * (uint64_t)snapshot->sites[i].frame_count;
    int result = -ENOMEM;
    if (packer.arena && most_strings < UINT32_MAX) {
        packer.strings = take(&packer, most_strings, sizeof *packer.strings);
        if (packer.strings) result = tly_idmap_make(&packer.map, (uint32_t)most_strings);
    }
    if (result == 0) result = pack_message(&packer, out, out_bytes);
    tly_idmap_free(&packer.map);
    tly_arena_free(packer.arena);
    return result;
}
