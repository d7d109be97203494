/* label.c - see label.h. */
#include "offline/label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text that is being written, as snprintf counts: `length` goes on when the buffer is full. */
struct writer {
    char *out;
    size_t bytes, length;
    bool full; /* something did not fit: nothing is added any more, so that no later piece follows a gap */
};

static void add(struct writer *writer, const char *piece, size_t count) {
    if (!writer->full && writer->length + count < writer->bytes)
        memcpy(writer->out + writer->length, piece, count);
    else if (!writer->full) {
        writer->full = true;
        if (writer->bytes) writer->out[writer->length < writer->bytes ? writer->length : writer->bytes - 1] = '\0';
    }
    writer->length += count;
}

static size_t finish(struct writer *writer) {
    if (!writer->full && writer->bytes) writer->out[writer->length] = '\0';
    return writer->length;
}

size_t tly_utf8_length(const char *bytes, size_t count) {
    const unsigned char *b = (const unsigned char *)bytes;
    if (count == 0) return 0;
    if (b[0] < 0x80) return 1;
    size_t length = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
    if (b[0] < 0xc2 || b[0] > 0xf4 || length > count) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((b[i] & 0xc0) != 0x80) return 0;
    }
    /* overlong forms, surrogates, beyond U+10FFFF */
    if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f)) return 0;
    if ((b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f)) return 0;
    return length;
}

/* Characters that would let a name steer a terminal or reorder its line: C1 controls (U+0080..9F), line and paragraph
 * separators, directional marks, embeddings and isolates, the byte order mark. */
static bool steers(const char *bytes, size_t length) {
    const unsigned char *b = (const unsigned char *)bytes;
    if (length == 2) return b[0] == 0xc2 && b[1] < 0xa0;
    if (length != 3) return false;
    if (b[0] == 0xe2 && b[1] == 0x80) return (b[2] >= 0x8b && b[2] <= 0x8f) || (b[2] >= 0xa8 && b[2] <= 0xae);
    if (b[0] == 0xe2 && b[1] == 0x81) return b[2] >= 0xa0 && b[2] <= 0xaf;
    return b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf;
}

static void add_escaped(struct writer *writer, const char *name, size_t length, bool in_path) {
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)name[i];
        size_t character = tly_utf8_length(name + i, length - i);
        char code[8];
        if (c == '\\') {
            add(writer, "\\\\", 2);
        } else if (c == '\n') {
            add(writer, "\\n", 2);
        } else if (c == '\t') {
            add(writer, "\\t", 2);
        } else if (c == '\r') {
            add(writer, "\\r", 2);
        } else if (c == '/' && in_path) {
            add(writer, "\\/", 2);
        } else if (c < 0x20 || c == 0x7f || character == 0 || steers(name + i, character)) {
            size_t count = character ? character : 1;
            for (size_t k = 0; k < count; k++) {
                snprintf(code, sizeof code, "\\x%02x", (unsigned char)name[i + k]);
                add(writer, code, 4);
            }
        } else {
            add(writer, name + i, character);
        }
        i += character ? character : 1;
    }
}

size_t tly_label_escape(char *out, size_t bytes, const char *name, size_t length, bool in_path) {
    struct writer writer = {.out = out, .bytes = bytes};
    add_escaped(&writer, name, length, in_path);
    return finish(&writer);
}

struct tly_bytes tly_label_base_name(struct tly_bytes path) {
    for (uint32_t i = path.length; i-- > 0;) {
        if (path.bytes[i] == '/' && i + 1 < path.length)
            return (struct tly_bytes){path.bytes + i + 1, path.length - i - 1};
    }
    return path;
}

static void add_module(struct writer *writer, const struct tly_snapshot *snapshot, uint32_t module, bool in_path) {
    if (module == TLY_NONE) {
        add(writer, "?", 1);
        return;
    }
    const struct tly_snapshot_module *at = &snapshot->modules[module];
    struct tly_bytes name = at->told_by == TLY_MODULE_BY_BASE_NAME ? tly_label_base_name(at->path) : at->path;
    add_escaped(writer, name.bytes, name.length, in_path);
    if (at->told_by != TLY_MODULE_BY_BUILD) return;
    char build[32] = " (no build-id)";
    if (at->build_id_bytes >= 4)
        snprintf(build, sizeof build, " (build %02x%02x%02x%02x)", at->build_id[0], at->build_id[1], at->build_id[2],
                 at->build_id[3]);
    add(writer, build, strlen(build));
}

static void add_address(struct writer *writer, const struct tly_snapshot *snapshot,
                        const struct tly_snapshot_site *site, bool in_path) {
    char text[32];
    if (site->module != TLY_NONE) add_module(writer, snapshot, site->module, in_path);
    int length =
        snprintf(text, sizeof text, "%s0x%llx", site->module != TLY_NONE ? "+" : "", (unsigned long long)site->value);
    add(writer, text, (size_t)length);
}

/* Length of "<...>" at `at`, with what is nested in it; 0: it does not end. */
static size_t bracket_length(const char *at, size_t count) {
    int depth = 0;
    for (size_t i = 0; i < count; i++) {
        if (at[i] == '<') depth++;
        if (at[i] == '>' && --depth == 0) return i + 1;
    }
    return 0;
}

static bool begins(const char *at, size_t count, const char *with) {
    size_t length = strlen(with);
    return length <= count && memcmp(at, with, length) == 0;
}

/* How many of the `count` bytes at `at` stand for `*shorter` (may be ""); 0: none. */
static size_t shorten(const char *at, size_t count, const char **shorter) {
    static const char allocator[] = ", std::allocator<", inner[] = "std::__cxx11::";
    static const struct {
        const char *name, *shorter;
    } names[] = {
        {"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
        {"std::basic_string_view<char, std::char_traits<char> >", "std::string_view"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *shorter = names[i].shorter;
        if (begins(at, count, names[i].name)) return strlen(names[i].name);
    }
    *shorter = "std::";
    if (begins(at, count, inner)) return strlen(inner);
    *shorter = "";
    if (!begins(at, count, allocator)) return 0;
    size_t before = sizeof allocator - 2, length = before + bracket_length(at + before, count - before);
    bool last =
        length > before && (begins(at + length, count - length, ">") || begins(at + length, count - length, " >"));
    return last ? length : 0; /* the last argument of a template, and not a parameter of a function */
}

static void add_function(struct writer *writer, struct tly_bytes name, bool in_path) {
    size_t plain = 0, length; /* from here on nothing was shortened */
    for (size_t i = 0; i < name.length; i += length) {
        const char *shorter;
        bool space =
            name.bytes[i] == ' ' && i > 0 && name.bytes[i - 1] == '>' && begins(name.bytes + i, name.length - i, " >");
        length = space ? 1 : shorten(name.bytes + i, name.length - i, &shorter);
        if (length == 0) {
            length = 1;
            continue;
        }
        add_escaped(writer, name.bytes + plain, i - plain, in_path);
        if (!space) add(writer, shorter, strlen(shorter));
        plain = i + length;
    }
    add_escaped(writer, name.bytes + plain, name.length - plain, in_path);
}

static void add_frame(struct writer *writer, const struct tly_snapshot_frame *frame, bool in_path) {
    char line[16];
    if (frame->function.bytes)
        add_function(writer, frame->function, in_path);
    else
        add(writer, "?", 1);
    if (!frame->file.bytes) return;
    struct tly_bytes file = tly_label_base_name(frame->file);
    add(writer, "  ", 2);
    add_escaped(writer, file.bytes, file.length, in_path);
    if (frame->line == 0) return;
    int length = snprintf(line, sizeof line, ":%u", frame->line);
    add(writer, line, (size_t)length);
}

static bool tool_chain_source(struct tly_bytes file) {
    return file.bytes &&
           (strncmp(file.bytes, "/usr/include/", 13) == 0 || strncmp(file.bytes, "/usr/lib/gcc", 12) == 0);
}

/* malloc and its like, where a program has inlined a wrapper of that name. */
static bool is_allocator(struct tly_bytes function) {
    static const char *const names[] = {"malloc",   "calloc",        "realloc",       "reallocarray",
                                        "memalign", "aligned_alloc", "posix_memalign"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(function.bytes, names[i]) == 0) return true;
    }
    return strncmp(function.bytes, "operator new", 12) == 0;
}

uint32_t tly_label_frame_choice(const struct tly_snapshot *snapshot, const struct tly_snapshot_site *site) {
    for (uint32_t i = 0; i < site->frame_count; i++) {
        const struct tly_snapshot_frame *frame = &snapshot->frames[site->first_frame + i];
        if (!frame->function.bytes || !frame->file.bytes || tool_chain_source(frame->file)) continue;
        if (!is_allocator(frame->function)) return i;
    }
    return site->frame_count ? site->frame_count - 1 : 0;
}

static void add_site(struct writer *writer, const struct tly_snapshot *snapshot, uint32_t number, bool in_path) {
    const struct tly_snapshot_site *site = &snapshot->sites[number];
    switch (site->kind) {
    case TLY_SITE_MODULE: add_module(writer, snapshot, site->module, in_path); break;
    case TLY_SITE_CALLER:
        if (site->frame_count)
            add_frame(writer, &snapshot->frames[site->first_frame + tly_label_frame_choice(snapshot, site)], in_path);
        else
            add_address(writer, snapshot, site, in_path);
        break;
    default: add_escaped(writer, site->name.bytes, site->name.length, in_path); break;
    }
}

size_t tly_label_site(char *out, size_t bytes, const struct tly_snapshot *snapshot, uint32_t site) {
    struct writer writer = {.out = out, .bytes = bytes};
    if (site == TLY_NONE)
        add(&writer, "__root", 6);
    else
        add_site(&writer, snapshot, site, false);
    return finish(&writer);
}

size_t tly_label_frame(char *out, size_t bytes, const struct tly_snapshot_frame *frame) {
    struct writer writer = {.out = out, .bytes = bytes};
    add_frame(&writer, frame, false);
    return finish(&writer);
}

size_t tly_label_module(char *out, size_t bytes, const struct tly_snapshot *snapshot, uint32_t module) {
    struct writer writer = {.out = out, .bytes = bytes};
    add_module(&writer, snapshot, module, false);
    return finish(&writer);
}

size_t tly_label_path(char *out, size_t bytes, const struct tly_snapshot *snapshot, const uint32_t *sites,
                      size_t count) {
    struct writer writer = {.out = out, .bytes = bytes};
    if (count == 0) add(&writer, "__root", 6);
    for (size_t i = 0; i < count; i++) {
        if (i) add(&writer, "/", 1);
        add_site(&writer, snapshot, sites[i], true);
    }
    return finish(&writer);
}

size_t tly_label_node(char *out, size_t bytes, const struct tly_snapshot *snapshot, uint32_t node) {
    size_t depth = 0, length;
    for (uint32_t i = node; i != 0; i = snapshot->nodes[i].parent)
        depth++;
    uint32_t *sites = malloc((depth + 1) * sizeof *sites);
    if (!sites) return tly_label_path(out, bytes, snapshot, NULL, 0);
    for (uint32_t i = node, at = (uint32_t)depth; i != 0; i = snapshot->nodes[i].parent)
        sites[--at] = snapshot->nodes[i].site;
    length = tly_label_path(out, bytes, snapshot, sites, depth);
    free(sites);
    return length;
}
