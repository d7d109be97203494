/* make_golden_regions.c - the inputs of report_golden.sh, written to the directory that is its argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "offline/arena.h"
#include "offline/recording.h"
#include "region_maker.h"

static void finish(struct region_maker *maker, const char *path) {
    region_maker_write(maker, path);
    region_maker_free(maker);
}

static uint32_t tag_node(struct region_maker *maker, uint32_t parent, const char *name, size_t length) {
    return region_maker_node(maker, parent, region_maker_site(maker, TLY_SITE_TAG, name, length, 0, 0));
}

/* Names that would break a terminal, a path, CSV or JSON if they got there as they are. */
static void make_names(const char *path) {
    static const struct {
        const char *name;
        size_t length;
    } names[] = {{"a/b", 3},
                 {"new\nline", 8},
                 {"\033[31mred", 8},
                 {"say \"hi\"", 8},
                 {"back\\slash", 10},
                 {"caf\xc3\xa9", 5},
                 {"not\xffutf8", 8},
                 {"comma,semi;", 11},
                 {" lead", 5},
                 {"nul\0inside", 10},
                 {"\xe6\x97\xa5\xe6\x9c\xac", 6}};
    struct region_maker *maker = region_maker_reference();
    uint32_t parent = tag_node(maker, 0, "names", 5);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t node = tag_node(maker, parent, names[i].name, names[i].length);
        region_maker_bill(maker, 1, node, 100 - i, 1, 0, 0);
        region_maker_bill(maker, 1, tag_node(maker, node, "below", 5), 1, 1, 0, 0);
    }
    finish(maker, path);
}

/* A, B, C, B, C. */
static void make_repeated(const char *path) {
    static const char *const order[] = {"A", "B", "C", "B", "C"};
    struct region_maker *maker = region_maker_new();
    uint32_t sites[3] = {region_maker_tag(maker, "A"), region_maker_tag(maker, "B"), region_maker_tag(maker, "C")};
    uint32_t node = 0;
    for (int i = 0; i < 5; i++) {
        node = region_maker_node(maker, node, sites[order[i][0] - 'A']);
        region_maker_bill(maker, 1, node, 10, 1, 0, 0);
    }
    finish(maker, path);
}

/* Many small ones beside a large one: the threshold and its remainder, large figures, cumulative ones. */
static void make_many(const char *path) {
    struct region_maker *maker = region_maker_new();
    char name[32];
    uint32_t large = tag_node(maker, 0, "large", 5), small = tag_node(maker, 0, "small", 5);
    region_maker_bill(maker, 1, large, 5000000000, 1234567, 1000000000, 234567);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "item %03d", i);
        region_maker_bill(maker, 1, tag_node(maker, small, name, strlen(name)), 1000000 + (uint64_t)i, 10, 1000, 1);
    }
    region_maker_bill(maker, 1, tag_node(maker, small, "heavy", 5), 90000000, 10, 1000, 1);
    region_maker_bill(maker, 1, TLY_NODE_ROOT, 4096, 2, 0, 0);
    finish(maker, path);
}

/* Forty items of the same size: a threshold cannot tell them apart, so it must not be lowered to theirs. */
static void make_equal(const char *path) {
    struct region_maker *maker = region_maker_new();
    char name[32];
    region_maker_bill(maker, 1, tag_node(maker, 0, "pool", 4), 73728, 1, 0, 0);
    region_maker_bill(maker, 1, tag_node(maker, tag_node(maker, 0, "own", 3), "little", 6), 300, 3, 0, 0);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "item %02d", i);
        region_maker_bill(maker, 1, tag_node(maker, 0, name, strlen(name)), 100, 1, 0, 0);
    }
    finish(maker, path);
}

static void make_freed(const char *path) {
    struct region_maker *maker = region_maker_new();
    struct tly_region *head = region_maker_head(maker);
    head->off_radar_allocs = 1;
    head->peak_bytes = 123456;
    head->cleared_ns = 1700000001000000000;
    head->state = TLY_STATE_STOPPED;
    struct tly_ledger *ledger = region_maker_ledger(maker, 1);
    ledger->untracked_allocs = 2;
    ledger->missed_frees = 1;
    ledger->pop_errors = 4;
    ledger->cut_names = 1;
    region_maker_bill(maker, 1, tag_node(maker, 0, "gone", 4), 123456, 789, 123456, 789);
    finish(maker, path);
}

static void make_nearly_freed(const char *path) {
    struct region_maker *maker = region_maker_new();
    region_maker_bill(maker, 1, tag_node(maker, 0, "mostly gone", 11), 100000, 100, 99000, 99);
    finish(maker, path);
}

static void make_damaged(const char *path) {
    struct region_maker *maker = region_maker_reference();
    region_maker_bill(maker, 1, region_maker_node(maker, 99, 0), 7, 1, 0, 0);
    finish(maker, path);
}

/* 200 levels: beyond what is moved to the right. */
static void make_deep(const char *path) {
    struct region_maker *maker = region_maker_new();
    uint32_t node = 0;
    char name[32];
    for (int i = 1; i <= 200; i++) {
        snprintf(name, sizeof name, "level %d", i);
        node = tag_node(maker, node, name, strlen(name));
    }
    region_maker_bill(maker, 1, node, 64, 1, 0, 0);
    finish(maker, path);
}

static struct tly_bytes text(const char *string) { return (struct tly_bytes){string, (uint32_t)strlen(string)}; }

/* A recording with modules and callers whose symbols were found, or not, when it was made. */
static void make_symbols(const char *raw, const char *path) {
    static const char label[] = "/usr/bin/program";
    struct region_maker *maker = region_maker_reference();
    struct tly_snapshot *snapshot;
    uint32_t modules[] = {region_maker_module(maker, label, "abcdefgh", 8),
                          region_maker_module(maker, "/usr/lib/libgone.so.1", "ijklmnop", 8),
                          region_maker_module(maker, "/usr/lib/libother.so.2", "qrstuvwx", 8)};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t node = region_maker_node(maker, 0, region_maker_site(maker, TLY_SITE_MODULE, "", 0, 0, modules[i]));
        region_maker_bill(maker, 1, region_maker_node(maker, node, region_maker_caller(maker, modules[i], 0x1000 + i)),
                          1000 * (3 - i), 3, 0, 0);
    }
    finish(maker, raw);
    char error[512] = "";
    if (tly_snapshot_load(raw, &snapshot, error, sizeof error) != 0) abort();
    snapshot->frames = tly_arena_take(snapshot->arena, 4 * sizeof *snapshot->frames);
    if (!snapshot->frames) abort();
    snapshot->frame_count = 4;
    snapshot->frames[0] = (struct tly_snapshot_frame){text("std::allocator<int>::allocate(unsigned long)"),
                                                      text("/usr/include/c++/12/bits/allocator.h"), 137};
    snapshot->frames[1] = (struct tly_snapshot_frame){text("std::vector<int>::reserve(unsigned long)"),
                                                      text("/usr/include/c++/12/bits/vector.tcc"), 79};
    snapshot->frames[2] = (struct tly_snapshot_frame){text("scene::load(char const*)"), text("/src/scene.cpp"), 42};
    snapshot->frames[3] = (struct tly_snapshot_frame){text("main"), text("/src/main.cpp"), 7};
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        if (snapshot->sites[i].kind == TLY_SITE_CALLER && snapshot->sites[i].module == 0)
            snapshot->sites[i].frame_count = 4;
    }
    snapshot->modules[0].symbols = TLY_SYMBOLS_LINES;
    snapshot->modules[1].symbols = TLY_SYMBOLS_NO_FILE;
    snapshot->modules[2].symbols = TLY_SYMBOLS_OTHER;
    snapshot->symbolised = true;
    snapshot->process.max_rss_bytes = 12345678;
    snapshot->process.user_ns = 2000000000;
    snapshot->process.system_ns = 300000000;
    snapshot->process.core_dumped = true;
    snapshot->totals.inherited_blocks = 2;
    snapshot->totals.inherited_bytes = 2048;
    snapshot->process.forked_from = 1200;
    tly_snapshot_set_end(snapshot, TLY_END_SIGNAL, 11);
    const struct tly_snapshot *one[] = {snapshot};
    if (tly_recording_write(path, one, 1, error, sizeof error) != 0) abort();
    tly_snapshot_free(snapshot);
}

static void cut(const char *from, const char *to, long missing) {
    char bytes[65536];
    FILE *file = fopen(from, "rb");
    if (!file) abort();
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    file = fopen(to, "wb");
    if (!file || fwrite(bytes, 1, length - (size_t)missing, file) != length - (size_t)missing || fclose(file) != 0)
        abort();
}

int main(int argc, char **argv) {
    if (argc != 2 || chdir(argv[1]) != 0) return 2;
    finish(region_maker_reference(), "reference.region");
    make_names("names.region");
    make_repeated("repeated.region");
    make_many("many.region");
    make_equal("equal.region");
    make_freed("freed.region");
    make_nearly_freed("nearly_freed.region");
    make_damaged("damaged.region");
    make_deep("deep.region");
    make_symbols("raw.region", "symbols.tally");
    cut("symbols.tally", "cut.tally", 1);
    cut("symbols.tally", "broken.tally", 100);
    return 0;
}
