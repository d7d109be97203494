/* symbolise.c - see symbolise.h. */
#include "offline/symbolise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/arena.h"
#include "offline/symbol_source.h"

struct symboliser {
    struct tly_snapshot *snapshot;
    struct tly_snapshot_frame *frames;
    size_t count, room;
    bool failed; /* no memory */
};

static struct tly_bytes copy(struct symboliser *symboliser, const char *text) {
    struct tly_bytes none = {NULL, 0};
    if (!text || !*text) return none;
    struct tly_bytes bytes = tly_snapshot_copy(symboliser->snapshot, text, strlen(text));
    if (!bytes.bytes) symboliser->failed = true;
    return bytes;
}

static struct tly_bytes readable_name(struct symboliser *symboliser, const char *linkage_name, const char *name) {
    char *demangled = linkage_name ? tly_demangle(linkage_name) : NULL;
    struct tly_bytes bytes = copy(symboliser, demangled ? demangled : name ? name : linkage_name);
    free(demangled);
    return bytes;
}

static struct tly_snapshot_frame *add_frame(struct symboliser *symboliser, struct tly_snapshot_site *site) {
    if (symboliser->count == symboliser->room) {
        size_t room = symboliser->room ? 2 * symboliser->room : 256;
        struct tly_snapshot_frame *grown = realloc(symboliser->frames, room * sizeof *grown);
        if (!grown) {
            symboliser->failed = true;
            return NULL;
        }
        symboliser->frames = grown;
        symboliser->room = room;
    }
    if (site->frame_count++ == 0) site->first_frame = (uint32_t)symboliser->count;
    struct tly_snapshot_frame *frame = &symboliser->frames[symboliser->count++];
    memset(frame, 0, sizeof *frame);
    return frame;
}

/* Some debug information (clang's -gline-tables-only) has short names alone; the symbol table then knows better. */
static bool is_mangled(const char *name) { return name[0] == '_' && name[1] == 'Z'; }

/* A return address is that of the next instruction: the call lies just before it. */
static void look_up(struct symboliser *symboliser, const struct tly_symbol_source *source,
                    struct tly_snapshot_site *site) {
    struct tly_chain_link chain[TLY_CHAIN_MOST];
    uint64_t address = site->value - 1;
    const char *symbol = tly_symbol_table_find(&source->symbols, address);
    size_t count = source->chains ? tly_chain_find(source->chains, address, chain) : 0;
    for (size_t i = 0; i < count; i++) {
        struct tly_snapshot_frame *frame = add_frame(symboliser, site);
        if (!frame) return;
        if (i + 1 == count && !chain[i].linkage_name && symbol && is_mangled(symbol)) chain[i].linkage_name = symbol;
        frame->function = readable_name(symboliser, chain[i].linkage_name, chain[i].name);
        frame->file = copy(symboliser, chain[i].file);
        frame->line = chain[i].line > 0 ? (uint32_t)chain[i].line : 0;
    }
    struct tly_snapshot_frame *outermost = count ? &symboliser->frames[symboliser->count - 1] : NULL;
    if (outermost && outermost->function.bytes) return;
    if (!symbol) return;
    if (!outermost) outermost = add_frame(symboliser, site);
    if (outermost) outermost->function = readable_name(symboliser, symbol, symbol);
}

static void symbolise_module(struct symboliser *symboliser, struct tly_snapshot_module *module,
                             struct tly_snapshot_site **sites, size_t count) {
    struct tly_symbol_source *source;
    int result = tly_symbol_source_get(module, &source);
    if (result != 0) {
        if (result == -ENOMEM) symboliser->failed = true;
        module->symbols = result == -ESTALE ? TLY_SYMBOLS_OTHER : TLY_SYMBOLS_NO_FILE;
        return;
    }
    module->symbols = source->chains ? TLY_SYMBOLS_LINES : source->symbols.count ? TLY_SYMBOLS_NAMES : TLY_SYMBOLS_NONE;
    for (size_t i = 0; i < count && !symboliser->failed; i++)
        look_up(symboliser, source, sites[i]);
    tly_symbol_source_release(source);
}

static int compare_callers(const void *a, const void *b) {
    const struct tly_snapshot_site *x = *(struct tly_snapshot_site *const *)a,
                                   *y = *(struct tly_snapshot_site *const *)b;
    if (x->module != y->module) return x->module < y->module ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* All callers inside modules, by module and address. */
static struct tly_snapshot_site **list_callers(struct tly_snapshot *snapshot, size_t *count) {
    struct tly_snapshot_site **sites = malloc(((size_t)snapshot->site_count + 1) * sizeof(struct tly_snapshot_site *));
    if (!sites) return NULL;
    *count = 0;
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        struct tly_snapshot_site *site = &snapshot->sites[i];
        if (site->kind == TLY_SITE_CALLER && site->module != TLY_NONE && site->value != 0) sites[(*count)++] = site;
    }
    qsort(sites, *count, sizeof(struct tly_snapshot_site *), compare_callers);
    return sites;
}

int tly_snapshot_symbolise(struct tly_snapshot *snapshot) {
    if (snapshot->symbolised) return 0;
    struct symboliser symboliser = {.snapshot = snapshot};
    size_t count = 0;
    struct tly_snapshot_site **sites = list_callers(snapshot, &count);
    if (!sites) return -ENOMEM;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && sites[end]->module == sites[first]->module;)
            end++;
        symbolise_module(&symboliser, &snapshot->modules[sites[first]->module], sites + first, end - first);
    }
    free(sites);
    size_t bytes = symboliser.count * sizeof *symboliser.frames;
    snapshot->frames = symboliser.failed ? NULL : tly_arena_take(snapshot->arena, bytes);
    if (snapshot->frames && bytes) memcpy(snapshot->frames, symboliser.frames, bytes);
    free(symboliser.frames);
    if (!snapshot->frames) { /* half-done work is no use: as before, without symbols */
        for (uint32_t i = 0; i < snapshot->site_count; i++)
            snapshot->sites[i].frame_count = 0;
        return -ENOMEM;
    }
    snapshot->frame_count = (uint32_t)symboliser.count;
    snapshot->symbolised = true;
    return 0;
}
