/* record_unpack.c - a protobuf message into a snapshot, trusting nothing in it; see record.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "offline/arena.h"
#include "offline/idmap.h"
#include "offline/record.h"
#include "tally.pb-c.h"

struct unpacker {
    struct tly_snapshot *snapshot;
    const Tally__Snapshot *message;
    struct tly_bytes *strings;
    uint32_t string_count;
};

static const char no_memory[] = "not enough memory";

static struct tly_bytes copy(struct unpacker *unpacker, ProtobufCBinaryData from) {
    struct tly_bytes none = {NULL, 0};
    if (from.len == 0 || from.len > UINT32_MAX) return none;
    return tly_snapshot_copy(unpacker->snapshot, (const char *)from.data, from.len);
}

static void unpack_process(struct unpacker *unpacker, const Tally__Process *from) {
    struct tly_process_facts *to = &unpacker->snapshot->process;
    to->pid = from->pid;
    to->ppid = from->ppid;
    to->uid = from->uid;
    to->forked_from = from->forked_from;
    to->pid_namespace = from->pid_namespace;
    to->process_start_ticks = from->process_start_ticks;
    to->region_id = from->region_id;
    to->program = copy(unpacker, from->program);
    to->directory = copy(unpacker, from->directory);
    to->host = copy(unpacker, from->host);
    to->options = copy(unpacker, from->options);
    to->command_line = copy(unpacker, from->command_line);
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

static void unpack_totals(const Tally__Totals *from, struct tly_snapshot_totals *to) {
    to->peak_bytes = from->peak_bytes;
    to->peak_error_bytes = from->peak_error_bytes;
    to->peak_ns = from->peak_ns;
    to->inherited_bytes = from->inherited_bytes;
    to->inherited_blocks = from->inherited_blocks;
}

static void unpack_counters(const Tally__Counters *from, struct tly_snapshot_counters *to) {
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
    for (size_t i = 0; i < from->n_own_bytes && i < TLY_OWN_COUNT; i++)
        to->own_bytes[i] = from->own_bytes[i];
    to->nodes = from->nodes;
    to->sites = from->sites;
}

/* NULL when all is well, as in all that follows. */
static const char *unpack_strings(struct unpacker *unpacker, const Tally__Strings *from) {
    if (from->n_length >= UINT32_MAX) return "too many strings";
    char *text = tly_arena_take(unpacker->snapshot->arena, from->text.len + from->n_length);
    unpacker->strings = tly_arena_take(unpacker->snapshot->arena, from->n_length * sizeof *unpacker->strings);
    if (!text || !unpacker->strings) return no_memory;
    size_t left = from->text.len;
    const uint8_t *at = from->text.data;
    for (size_t i = 0; i < from->n_length; i++) {
        uint32_t length = from->length[i];
        if (length > left) return "a string lies outside its table";
        if (length) memcpy(text, at, length);
        unpacker->strings[i] = (struct tly_bytes){text, length};
        text += length + 1; /* the arena is zeroed: a NUL follows */
        at += length;
        left -= length;
    }
    unpacker->string_count = (uint32_t)from->n_length;
    return NULL;
}

static bool string(const struct unpacker *unpacker, uint32_t number_plus_1, struct tly_bytes *out) {
    if (number_plus_1 == 0) return true;
    if (number_plus_1 > unpacker->string_count) return false;
    *out = unpacker->strings[number_plus_1 - 1];
    return true;
}

static const char *unpack_modules(struct unpacker *unpacker) {
    struct tly_snapshot *snapshot = unpacker->snapshot;
    size_t count = unpacker->message->n_modules;
    if (count >= UINT32_MAX) return "too many modules";
    snapshot->modules = tly_arena_take(snapshot->arena, count * sizeof *snapshot->modules);
    if (!snapshot->modules) return no_memory;
    for (size_t i = 0; i < count; i++) {
        const Tally__Module *from = unpacker->message->modules[i];
        struct tly_snapshot_module *to = &snapshot->modules[i];
        if (from->build_id.len > TLY_BUILD_ID_MAX) return "a build-id is too long";
        if (from->symbols > TLY_SYMBOLS_OTHER) return "a module's symbol state is unknown";
        to->path = copy(unpacker, from->path);
        if (!to->path.bytes) to->path = (struct tly_bytes){"", 0};
        to->start = from->start;
        to->end = from->end;
        to->bias = from->bias;
        to->symbols = from->symbols;
        to->first_seen_ns = from->first_seen_ns;
        to->build_id_bytes = (uint32_t)from->build_id.len;
        if (from->build_id.len) memcpy(to->build_id, from->build_id.data, from->build_id.len);
    }
    snapshot->module_count = (uint32_t)count;
    return NULL;
}

static const char *unpack_frames(struct unpacker *unpacker, const Tally__Frames *from) {
    struct tly_snapshot *snapshot = unpacker->snapshot;
    size_t count = from->n_line;
    if (count >= UINT32_MAX || from->n_function_plus_1 != count || from->n_file_plus_1 != count)
        return "columns of frames differ in length";
    snapshot->frames = tly_arena_take(snapshot->arena, count * sizeof *snapshot->frames);
    if (!snapshot->frames) return no_memory;
    for (size_t i = 0; i < count; i++) {
        struct tly_snapshot_frame *to = &snapshot->frames[i];
        if (!string(unpacker, from->function_plus_1[i], &to->function) ||
            !string(unpacker, from->file_plus_1[i], &to->file))
            return "a frame's name does not exist";
        to->line = from->line[i];
    }
    snapshot->frame_count = (uint32_t)count;
    return NULL;
}

static const char *unpack_sites(struct unpacker *unpacker, const Tally__Sites *from) {
    struct tly_snapshot *snapshot = unpacker->snapshot;
    size_t count = from->n_kind;
    uint32_t next_frame = 0;
    if (count >= UINT32_MAX || from->n_module_plus_1 != count || from->n_value != count ||
        from->n_name_plus_1 != count || from->n_frames != count)
        return "columns of call sites differ in length";
    snapshot->sites = tly_arena_take(snapshot->arena, count * sizeof *snapshot->sites);
    if (!snapshot->sites) return no_memory;
    for (size_t i = 0; i < count; i++) {
        struct tly_snapshot_site *to = &snapshot->sites[i];
        to->kind = from->kind[i];
        to->module = from->module_plus_1[i] - 1; /* 0 becomes TLY_NONE */
        to->value = from->value[i];
        to->first_frame = next_frame;
        to->frame_count = from->frames[i];
        bool named = to->kind == TLY_SITE_TAG || to->kind == TLY_SITE_THREAD;
        if (to->kind < TLY_SITE_TAG || to->kind > TLY_SITE_CALLER) return "a call site of unknown kind";
        if (from->module_plus_1[i] > snapshot->module_count) return "a call site's module does not exist";
        if (!string(unpacker, from->name_plus_1[i], &to->name) || (named && !to->name.bytes))
            return "a call site's name does not exist";
        if (to->frame_count > snapshot->frame_count - next_frame) return "a call site's frames do not exist";
        next_frame += to->frame_count;
    }
    snapshot->site_count = (uint32_t)count;
    return NULL;
}

static bool same_node(const void *context, uint32_t id) {
    const struct tly_snapshot *snapshot = context;
    const struct tly_snapshot_node *a = &snapshot->nodes[snapshot->node_count], *b = &snapshot->nodes[id];
    return a->parent == b->parent && a->site == b->site;
}

static const char *unpack_nodes(struct unpacker *unpacker, const Tally__Nodes *from) {
    struct tly_snapshot *snapshot = unpacker->snapshot;
    struct tly_idmap map;
    size_t count = from->n_up;
    const char *why = NULL;
    if (count == 0 || count >= UINT32_MAX / 4) return "no root, or too many nodes";
    if (from->n_site_plus_1 != count || from->n_alloc_bytes != count || from->n_alloc_blocks != count ||
        from->n_free_bytes != count || from->n_free_blocks != count)
        return "columns of nodes differ in length";
    snapshot->nodes = tly_arena_take(snapshot->arena, count * sizeof *snapshot->nodes);
    if (!snapshot->nodes || tly_idmap_make(&map, (uint32_t)count) != 0) return no_memory;
    for (uint32_t i = 0; i < count && !why; i++) {
        struct tly_snapshot_node *to = &snapshot->nodes[i];
        uint32_t up = from->up[i], site_plus_1 = from->site_plus_1[i];
        to->parent = i - up;
        to->site = site_plus_1 - 1; /* 0 becomes TLY_NONE */
        to->direct.alloc_bytes = from->alloc_bytes[i];
        to->direct.alloc_blocks = from->alloc_blocks[i];
        to->direct.free_bytes = from->free_bytes[i];
        to->direct.free_blocks = from->free_blocks[i];
        if (i == 0 && (up != 0 || site_plus_1 != 0)) why = "the first node is not the root";
        if (i != 0 && (up == 0 || up > i)) why = "a node's parent does not exist";
        if (i != 0 && (site_plus_1 == 0 || site_plus_1 > snapshot->site_count)) why = "a node's site does not exist";
        snapshot->node_count = i; /* same_node compares with the one that is being added */
        if (tly_idmap_put(&map, tly_hash_mix(to->parent, to->site), i, same_node, snapshot) != i)
            why = "a node is there twice";
    }
    snapshot->node_count = (uint32_t)count;
    tly_idmap_free(&map);
    return why;
}

static const char *unpack_message(struct unpacker *unpacker) {
    const Tally__Snapshot *message = unpacker->message;
    struct tly_snapshot *snapshot = unpacker->snapshot;
    const char *why = NULL;
    if (!message->process || !message->totals || !message->counters || !message->strings || !message->sites ||
        !message->frames || !message->nodes)
        return "a part of the snapshot is missing";
    unpack_process(unpacker, message->process);
    unpack_totals(message->totals, &snapshot->totals);
    unpack_counters(message->counters, &snapshot->counters);
    why = unpack_strings(unpacker, message->strings);
    if (!why) why = unpack_modules(unpacker);
    if (!why) why = unpack_frames(unpacker, message->frames);
    if (!why) why = unpack_sites(unpacker, message->sites);
    if (!why) why = unpack_nodes(unpacker, message->nodes);
    if (why) return why;
    snapshot->exact = message->exact && message->damaged_records == 0;
    snapshot->symbolised = message->symbolised;
    snapshot->damaged_records = message->damaged_records;
    snapshot->note = copy(unpacker, message->note);
    int result = tly_snapshot_complete(snapshot);
    return result == 0 ? NULL : result == -ENOMEM ? no_memory : "the counters are impossible";
}

int tly_record_unpack(const uint8_t *data, size_t bytes, struct tly_snapshot **out, const char **why) {
    *out = NULL;
    *why = "its contents are not what Tally writes";
    Tally__Snapshot *message = tally__snapshot__unpack(NULL, bytes, data);
    if (!message) return -EBADMSG;
    struct unpacker unpacker = {.snapshot = tly_snapshot_new(), .message = message};
    const char *problem = unpacker.snapshot ? unpack_message(&unpacker) : no_memory;
    tally__snapshot__free_unpacked(message, NULL);
    if (!problem) {
        *out = unpacker.snapshot;
        return 0;
    }
    tly_snapshot_free(unpacker.snapshot);
    *why = problem;
    return problem == no_memory ? -ENOMEM : -EBADMSG;
}
