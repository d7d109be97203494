/*
 * test_symbolise.c - functions, files and lines of a program whose calls are known (symbol_sample.cpp), built by
 * several compilers in several ways, stripped, and replaced.
 *
 * Arguments: scratch directory, then KIND=PROGRAM for each build of the sample.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offline/label.h"
#include "offline/symbol_source.h"
#include "offline/symbolise.h"
#include "region_maker.h"

static const char *scratch;
static bool keep_sources; /* files change under the feet of most tests */
static int program_count;
static char **programs;

/* One line of what the sample prints. */
struct call {
    char name[32];
    unsigned long address;
    int line[3];
};

struct sample {
    uint8_t build_id[TLY_BUILD_ID_MAX];
    uint32_t build_id_bytes;
    struct call call[8];
    int count;
};

static const char *program(const char *kind) {
    for (int i = 0; i < program_count; i++) {
        size_t length = strlen(kind);
        if (strncmp(programs[i], kind, length) == 0 && programs[i][length] == '=') return programs[i] + length + 1;
    }
    return NULL;
}

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...) {
    char command[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    if (system(command) != 0) fail_msg("failed: %s", command);
}

static struct sample run_sample(const char *path) {
    struct sample sample = {0};
    char line[512];
    FILE *pipe = popen(path, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof line, pipe));
    for (const char *at = line; at[0] != '-' && at[0] != '\n'; at += 2) {
        unsigned byte;
        assert_int_equal(sscanf(at, "%2x", &byte), 1);
        sample.build_id[sample.build_id_bytes++] = (uint8_t)byte;
    }
    while (fgets(line, sizeof line, pipe)) {
        struct call *call = &sample.call[sample.count++];
        assert_int_equal(sscanf(line, "%31s %lx %d %d %d", call->name, &call->address, &call->line[0], &call->line[1],
                                &call->line[2]),
                         5);
    }
    assert_int_equal(pclose(pipe), 0);
    assert_int_equal(sample.count, 3);
    return sample;
}

/* A snapshot in which each of the sample's calls allocated something; symbolised. Site i is call i. */
static struct tly_snapshot *account(const char *path, const struct sample *sample) {
    struct region_maker *maker = region_maker_new();
    uint32_t module = region_maker_module(maker, path, sample->build_id, sample->build_id_bytes);
    struct tly_snapshot *snapshot;
    struct tly_view view;
    size_t bytes;
    for (int i = 0; i < sample->count; i++) {
        uint32_t site = region_maker_caller(maker, module, sample->call[i].address);
        region_maker_bill(maker, 1, region_maker_node(maker, 0, site), 100, 1, 0, 0);
    }
    void *image = region_maker_image(maker, &bytes);
    assert_int_equal(tly_view_over(image, bytes, &view, NULL), 0);
    assert_int_equal(tly_snapshot_from_view(&view, &snapshot, NULL, 0), 0);
    free(image);
    region_maker_free(maker);
    if (!keep_sources) tly_symbol_source_forget();
    assert_int_equal(tly_snapshot_symbolise(snapshot), 0);
    assert_true(snapshot->symbolised);
    return snapshot;
}

static const struct tly_snapshot_frame *frame(const struct tly_snapshot *snapshot, uint32_t site, uint32_t number) {
    assert_true(number < snapshot->sites[site].frame_count);
    return &snapshot->frames[snapshot->sites[site].first_frame + number];
}

static void expect_frame(const struct tly_snapshot *snapshot, uint32_t site, uint32_t number, const char *function,
                         int line) {
    const struct tly_snapshot_frame *at = frame(snapshot, site, number);
    assert_non_null(at->function.bytes);
    assert_string_equal(at->function.bytes, function);
    assert_non_null(at->file.bytes);
    const char *source = strrchr(at->file.bytes, '/');
    assert_non_null(source);
    assert_string_equal(source, "/symbol_sample.cpp");
    assert_int_equal(at->line, line);
}

static void expect_lines(const char *path, const struct sample *sample) {
    struct tly_snapshot *snapshot = account(path, sample);
    char label[128];
    assert_int_equal(snapshot->modules[0].symbols, TLY_SYMBOLS_LINES);
    assert_int_equal(snapshot->sites[0].frame_count, 3);
    expect_frame(snapshot, 0, 0, "scene::Box<long>::fill(char const*, int, int)", sample->call[0].line[0]);
    expect_frame(snapshot, 0, 1, "scene::middle(char const*, int)", sample->call[0].line[1]);
    expect_frame(snapshot, 0, 2, "scene::outer(char const*)", sample->call[0].line[2]);
    assert_int_equal(snapshot->sites[1].frame_count, 1);
    expect_frame(snapshot, 1, 0, "plain", sample->call[1].line[0]);
    expect_frame(snapshot, 2, 0, "leave", sample->call[2].line[0]); /* not the function that follows */
    tly_label_site(label, sizeof label, snapshot, 1);
    char expected[128];
    snprintf(expected, sizeof expected, "plain  symbol_sample.cpp:%d", sample->call[1].line[0]);
    assert_string_equal(label, expected);
    tly_snapshot_free(snapshot);
}

static void expect_nothing(const char *path, const struct sample *sample, enum tly_symbol_state state) {
    struct tly_snapshot *snapshot = account(path, sample);
    char label[256], expected[256];
    assert_int_equal(snapshot->modules[0].symbols, state);
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        assert_int_equal(snapshot->sites[i].frame_count, 0);
        tly_label_site(label, sizeof label, snapshot, i);
        snprintf(expected, sizeof expected, "%s+0x%lx", basename(path), sample->call[i].address);
        assert_string_equal(label, expected);
    }
    tly_snapshot_free(snapshot);
}

static void test_inlined_frames(void **state) {
    (void)state;
    int tested = 0;
    for (int i = 0; i < program_count; i++) {
        if (strncmp(programs[i], "lines", 5) != 0) continue;
        const char *path = strchr(programs[i], '=') + 1;
        print_message("%s\n", programs[i]);
        struct sample sample = run_sample(path);
        expect_lines(path, &sample);
        tested++;
    }
    assert_true(tested >= 3);
}

static void test_symbol_table_only(void **state) {
    (void)state;
    const char *path = program("names");
    struct sample sample = run_sample(path);
    struct tly_snapshot *snapshot = account(path, &sample);
    assert_int_equal(snapshot->modules[0].symbols, TLY_SYMBOLS_NAMES);
    assert_int_equal(snapshot->sites[0].frame_count, 1);
    assert_string_equal(frame(snapshot, 0, 0)->function.bytes, "scene::outer(char const*)");
    assert_null(frame(snapshot, 0, 0)->file.bytes);
    assert_string_equal(frame(snapshot, 1, 0)->function.bytes, "plain");
    assert_string_equal(frame(snapshot, 2, 0)->function.bytes, "leave");
    tly_snapshot_free(snapshot);
}

static void test_stripped(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/stripped", scratch);
    run("strip -o %s %s", path, program("lines"));
    struct sample sample = run_sample(path);
    expect_nothing(path, &sample, TLY_SYMBOLS_NONE);
}

static void test_debug_link(void **state) {
    (void)state;
    char path[512];
    static const char *const places[] = {"", ".debug/"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/linked%d", scratch, i);
        run("mkdir -p %s/.debug", scratch);
        run("cd %s && objcopy --only-keep-debug %s %slinked%d.debug", scratch, program("lines"), places[i], i);
        run("cd %s && strip -o linked%d %s", scratch, i, program("lines"));
        run("cd %s && objcopy --add-gnu-debuglink=%slinked%d.debug linked%d", scratch, places[i], i, i);
        struct sample sample = run_sample(path);
        expect_lines(path, &sample);
    }
}

/* The directory of distributions, by build-id. What lies there under the right name must still be the right build. */
static void test_debug_directory(void **state) {
    (void)state;
    char directory[512], path[512], id[2 * TLY_BUILD_ID_MAX + 1] = "";
    struct sample sample = run_sample(program("lines"));
    for (uint32_t i = 0; i < sample.build_id_bytes; i++)
        sprintf(id + 2 * i, "%02x", sample.build_id[i]);
    snprintf(directory, sizeof directory, "%s/debug", scratch);
    snprintf(path, sizeof path, "%s/distributed", scratch);
    const char *saved = tly_debug_directory;
    tly_debug_directory = directory;
    run("strip -o %s %s && mkdir -p %s/.build-id/%.2s", path, program("lines"), directory, id);
    expect_nothing(path, &sample, TLY_SYMBOLS_NONE);
    run("objcopy --only-keep-debug %s %s/.build-id/%.2s/%s.debug", program("lines"), directory, id, id + 2);
    expect_lines(path, &sample);
    run("objcopy --only-keep-debug %s %s/.build-id/%.2s/%s.debug", program("lines-no-pie"), directory, id, id + 2);
    expect_nothing(path, &sample, TLY_SYMBOLS_NONE);
    /* by the link's name, below the path of the binary */
    run("rm -r %s && mkdir -p %s%s && objcopy --only-keep-debug %s %s%s/far.debug", directory, directory, scratch,
        program("lines"), directory, scratch);
    run("cd %s%s && objcopy --add-gnu-debuglink=far.debug %s", directory, scratch, path);
    expect_lines(path, &sample);
    tly_debug_directory = saved;
}

/* The link leads to a file of the right name that belongs to another build. */
static void test_wrong_debug_link(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/mislinked", scratch);
    run("cd %s && objcopy --only-keep-debug %s mislinked.debug", scratch, program("lines"));
    run("cd %s && strip -o mislinked %s && objcopy --add-gnu-debuglink=mislinked.debug mislinked", scratch,
        program("lines"));
    run("cd %s && objcopy --only-keep-debug %s mislinked.debug", scratch, program("lines-no-pie"));
    struct sample sample = run_sample(path);
    expect_nothing(path, &sample, TLY_SYMBOLS_NONE);
}

/* The same without build-ids: the link's checksum decides. */
static void test_debug_link_checksum(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/summed", scratch);
    run("cd %s && objcopy --remove-section=.note.gnu.build-id %s plain", scratch, program("lines"));
    run("cd %s && objcopy --only-keep-debug plain summed.debug", scratch);
    run("cd %s && strip -o summed plain && objcopy --add-gnu-debuglink=summed.debug summed", scratch);
    struct sample sample = run_sample(path);
    assert_int_equal(sample.build_id_bytes, 0);
    expect_lines(path, &sample);
    run("cd %s && printf x >> summed.debug", scratch);
    expect_nothing(path, &sample, TLY_SYMBOLS_NONE);
}

static void test_replaced_file(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/replaced", scratch);
    run("cp %s %s", program("lines"), path);
    struct sample sample = run_sample(path);
    expect_lines(path, &sample);
    run("cp %s %s", program("lines-no-pie"), path);
    expect_nothing(path, &sample, TLY_SYMBOLS_OTHER);
    run("rm %s", path);
    expect_nothing(path, &sample, TLY_SYMBOLS_NO_FILE);
    run("mkfifo %s", path);
    expect_nothing(path, &sample, TLY_SYMBOLS_NO_FILE);
    run("rm %s; printf 'no ELF file' > %s", path, path);
    expect_nothing(path, &sample, TLY_SYMBOLS_NO_FILE);
}

/* Files cut short anywhere must neither crash nor give a wrong name. */
static void test_cut_off_file(void **state) {
    (void)state;
    char path[512];
    const char *whole = program("lines");
    struct sample sample = run_sample(whole);
    struct stat status;
    assert_int_equal(stat(whole, &status), 0);
    snprintf(path, sizeof path, "%s/cut", scratch);
    for (int i = 0; i < 40; i++) {
        run("cp %s %s", whole, path);
        assert_int_equal(truncate(path, status.st_size * i / 40), 0);
        struct tly_snapshot *snapshot = account(path, &sample);
        for (uint32_t k = 0; k < snapshot->site_count; k++) {
            static const char *const outermost[] = {"scene::outer(char const*)", "plain", "leave"};
            uint32_t count = snapshot->sites[k].frame_count;
            if (count == 0) continue;
            const struct tly_snapshot_frame *at = frame(snapshot, k, count - 1);
            if (at->function.bytes) assert_string_equal(at->function.bytes, outermost[k]);
        }
        tly_snapshot_free(snapshot);
    }
}

static void test_same_result_twice(void **state) {
    (void)state;
    const char *path = program("lines");
    struct sample sample = run_sample(path);
    struct tly_snapshot *first = account(path, &sample), *second = account(path, &sample);
    assert_int_equal(first->frame_count, second->frame_count);
    for (uint32_t i = 0; i < first->frame_count; i++) {
        assert_string_equal(first->frames[i].function.bytes, second->frames[i].function.bytes);
        assert_int_equal(first->frames[i].line, second->frames[i].line);
    }
    assert_int_equal(tly_snapshot_symbolise(first), 0); /* a second time: nothing to do */
    assert_int_equal(first->frame_count, second->frame_count);
    tly_snapshot_free(first);
    tly_snapshot_free(second);
}

/* More modules than are kept open, in turns; and what was kept still answers when its file is gone, another not. */
static void test_kept_sources(void **state) {
    (void)state;
    char path[24][512];
    struct sample sample[24];
    keep_sources = true;
    for (int i = 0; i < 24; i++) {
        snprintf(path[i], sizeof path[i], "%s/kept%d", scratch, i);
        run("cp %s %s", program("lines"), path[i]);
        sample[i] = run_sample(path[i]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 24; i++)
            expect_lines(path[i], &sample[i]);
        for (int i = 23; i >= 16; i--)
            expect_lines(path[i], &sample[i]);
    }
    run("rm %s %s", path[16], path[0]);
    expect_lines(path[16], &sample[16]);
    expect_nothing(path[0], &sample[0], TLY_SYMBOLS_NO_FILE);
    run("cp %s %s", program("lines-no-pie"), path[16]); /* another build at the same path */
    struct sample other = run_sample(path[16]);
    expect_lines(path[16], &other);
    keep_sources = false;
    tly_symbol_source_forget();
}

static void test_demangle(void **state) {
    (void)state;
    char *name = tly_demangle("_ZN5scene5outerEPKc");
    assert_string_equal(name, "scene::outer(char const*)");
    free(name);
    assert_null(tly_demangle("main"));
    assert_null(tly_demangle("_Zxx"));
    assert_null(tly_demangle(""));
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    scratch = argv[1];
    program_count = argc - 2;
    programs = argv + 2;
    run("rm -rf %s && mkdir -p %s", scratch, scratch);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inlined_frames),
        cmocka_unit_test(test_symbol_table_only),
        cmocka_unit_test(test_stripped),
        cmocka_unit_test(test_debug_link),
        cmocka_unit_test(test_debug_directory),
        cmocka_unit_test(test_wrong_debug_link),
        cmocka_unit_test(test_debug_link_checksum),
        cmocka_unit_test(test_replaced_file),
        cmocka_unit_test(test_cut_off_file),
        cmocka_unit_test(test_same_result_twice),
        cmocka_unit_test(test_kept_sources),
        cmocka_unit_test(test_demangle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
