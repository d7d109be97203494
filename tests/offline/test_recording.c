/* test_recording.c - writing and reading `.tally` files: whole, cut off, damaged, foreign. Argument: scratch directory. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "offline/arena.h"
#include "offline/record.h"
#include "offline/recording.h"
#include "offline/recording_file.h"
#include "region_maker.h"
#include "snapshot_laws.h"

static const char *scratch;

static const char *in_scratch(const char *name) {
    static char path[4][512];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", scratch, name);
    return out;
}

static unsigned char *read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    unsigned char *data = malloc(1 << 20);
    assert_non_null(data);
    *bytes = fread(data, 1, 1 << 20, file);
    assert_int_equal(fclose(file), 0);
    return data;
}

static void write_file(const char *path, const void *data, size_t bytes) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static struct tly_snapshot *take(struct region_maker *maker) {
    struct tly_snapshot *snapshot;
    struct tly_view view;
    size_t bytes;
    void *image = region_maker_image(maker, &bytes);
    assert_int_equal(tly_view_over(image, bytes, &view, NULL), 0);
    assert_int_equal(tly_snapshot_from_view(&view, &snapshot, NULL, 0), 0);
    free(image);
    region_maker_free(maker);
    return snapshot;
}

/* The reference with everything else that a snapshot can hold: modules, callers with frames, odd names, all facts. */
static struct tly_snapshot *rich_snapshot(void) {
    struct region_maker *maker = region_maker_reference();
    uint32_t module = region_maker_module(maker, "/usr/lib/lib.so", "abcdefghij", 10);
    uint32_t odd = region_maker_node(maker, 0, region_maker_site(maker, TLY_SITE_TAG, "a/\n\0\xff", 5, 0, 0));
    uint32_t in_module = region_maker_node(maker, odd, region_maker_site(maker, TLY_SITE_MODULE, "", 0, 0, module));
    region_maker_bill(maker, 1, region_maker_node(maker, in_module, region_maker_caller(maker, module, 0x1234)), 7, 1,
                      0, 0);
    region_maker_bill(maker, 1, region_maker_node(maker, in_module, region_maker_caller(maker, TLY_MODULE_UNKNOWN, 9)),
                      8, 2, 0, 0);
    region_maker_head(maker)->off_radar_allocs = 77;
    struct tly_snapshot *snapshot = take(maker);
    snapshot->frames = tly_arena_take(snapshot->arena, 3 * sizeof *snapshot->frames);
    snapshot->frame_count = 3;
    snapshot->frames[0] = (struct tly_snapshot_frame){{"inner", 5}, {"/src/a.c", 8}, 12};
    snapshot->frames[1] = (struct tly_snapshot_frame){{"outer", 5}, {"/src/a.c", 8}, 99};
    snapshot->frames[2] = (struct tly_snapshot_frame){{"lone", 4}, {NULL, 0}, 0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        if (snapshot->sites[i].kind != TLY_SITE_CALLER) continue;
        snapshot->sites[i].first_frame = next;
        snapshot->sites[i].frame_count = next == 0 ? 2 : 1;
        next += snapshot->sites[i].frame_count;
    }
    assert_int_equal(next, 3);
    snapshot->symbolised = true;
    snapshot->modules[0].symbols = TLY_SYMBOLS_LINES;
    snapshot->modules[0].first_seen_ns = 5;
    tly_snapshot_set_end(snapshot, TLY_END_EXITED, -1);
    snapshot->process.core_dumped = true;
    snapshot->process.user_ns = 1;
    snapshot->process.system_ns = 2;
    snapshot->process.max_rss_bytes = UINT64_MAX;
    assert_null(snapshot_broken_law(snapshot));
    return snapshot;
}

/* Writes the reference, then the rich snapshot. */
static const char *write_two(const char *name) {
    const char *path = in_scratch(name);
    char error[256] = "";
    struct tly_snapshot *first = take(region_maker_reference()), *second = rich_snapshot();
    const struct tly_snapshot *both[] = {first, second};
    int result = tly_recording_write(path, both, 2, error, sizeof error);
    assert_string_equal(error, "");
    assert_int_equal(result, 0);
    tly_snapshot_free(first);
    tly_snapshot_free(second);
    return path;
}

static void expect_refused(const char *path, int wanted, const char *word) {
    struct tly_snapshot *snapshot;
    char error[1024] = "";
    assert_int_equal(tly_snapshot_load(path, &snapshot, error, sizeof error), wanted);
    assert_null(snapshot);
    if (!strstr(error, path) || !strstr(error, word)) fail_msg("'%s' does not name %s and '%s'", error, path, word);
}

static void test_round_trip(void **state) {
    (void)state;
    const char *path = write_two("two.tally");
    struct tly_snapshot *snapshot, *wanted = rich_snapshot();
    assert_int_equal(tly_snapshot_load(path, &snapshot, NULL, 0), 0);
    assert_null(snapshot->note.bytes);
    assert_null(snapshot_broken_law(snapshot));
    assert_null(snapshot_difference(snapshot, wanted));
    tly_snapshot_free(snapshot);
    tly_snapshot_free(wanted);
}

static void test_same_bytes_twice(void **state) {
    (void)state;
    size_t first_bytes, second_bytes;
    unsigned char *first = read_file(write_two("first.tally"), &first_bytes);
    unsigned char *second = read_file(write_two("second.tally"), &second_bytes);
    assert_int_equal(first_bytes, second_bytes);
    assert_memory_equal(first, second, first_bytes);
    free(first);
    free(second);
}

/* At every byte: an error, the first snapshot with a note, or the second, with a note until the last byte is there. */
static void test_truncated_everywhere(void **state) {
    (void)state;
    size_t bytes, first_end;
    unsigned char *data = read_file(write_two("cut.tally"), &bytes);
    struct tly_snapshot *first = take(region_maker_reference()), *second = rich_snapshot();
    struct tly_record_head head;
    memcpy(&head, data + sizeof(struct tly_file_head), sizeof head);
    first_end = sizeof(struct tly_file_head) + sizeof head + head.stored_bytes;
    size_t second_end = bytes - sizeof head;
    assert_true(first_end < second_end);
    for (size_t length = 0; length <= bytes; length++) {
        struct tly_snapshot *snapshot;
        char error[1024] = "";
        unsigned char *exact = malloc(length + 1); /* exactly as long: a sanitizer sees a read beyond it */
        assert_non_null(exact);
        exact = realloc(exact, length ? length : 1);
        memcpy(exact, data, length);
        int result = tly_recording_parse("cut.tally", exact, length, &snapshot, error, sizeof error);
        free(exact);
        if (length < first_end) {
            assert_int_equal(result, -EBADMSG);
            assert_null(snapshot);
            assert_non_null(strstr(error, "cut.tally"));
            assert_non_null(strstr(error, "byte"));
            continue;
        }
        assert_int_equal(result, 0);
        assert_null(snapshot_broken_law(snapshot));
        assert_null(snapshot_difference(snapshot, length < second_end ? first : second));
        if (length < bytes)
            assert_non_null(strstr(snapshot->note.bytes, "cut off"));
        else
            assert_null(snapshot->note.bytes);
        tly_snapshot_free(snapshot);
    }
    tly_snapshot_free(first);
    tly_snapshot_free(second);
    free(data);
}

/* Not one bit can be wrong without being noticed, and whatever is still shown is right. */
static void test_every_flipped_bit(void **state) {
    (void)state;
    size_t bytes;
    unsigned char *data = read_file(write_two("flip.tally"), &bytes);
    struct tly_snapshot *first = take(region_maker_reference()), *second = rich_snapshot();
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        struct tly_snapshot *snapshot;
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (tly_recording_parse("flip.tally", data, bytes, &snapshot, NULL, 0) == 0) {
            assert_non_null(snapshot->note.bytes);
            if (snapshot_difference(snapshot, first) && snapshot_difference(snapshot, second))
                fail_msg("bit %zu goes unnoticed", bit);
            tly_snapshot_free(snapshot);
        }
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    tly_snapshot_free(first);
    tly_snapshot_free(second);
    free(data);
}

static void seal(void *head, size_t crc_at) {
    uint32_t crc = (uint32_t)crc32_z(0, head, crc_at);
    memcpy((char *)head + crc_at, &crc, sizeof crc);
}

/* Damage that the checksums vouch for: as from a hostile hand. */
static void test_hostile_messages(void **state) {
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srand(seed);
    struct tly_snapshot *rich = rich_snapshot();
    uint8_t *raw;
    size_t raw_bytes;
    int loaded = 0;
    assert_int_equal(tly_record_pack(rich, &raw, &raw_bytes), 0);
    uint8_t *mutant = malloc(raw_bytes);
    assert_non_null(mutant);
    for (int round = 0; round < 20000; round++) {
        struct tly_snapshot *snapshot;
        const char *why = NULL;
        memcpy(mutant, raw, raw_bytes);
        for (int i = rand() % 4; i >= 0; i--)
            mutant[(size_t)rand() % raw_bytes] = (uint8_t)rand();
        if (tly_record_unpack(mutant, raw_bytes, &snapshot, &why) != 0) {
            assert_non_null(why);
            assert_null(snapshot);
            continue;
        }
        assert_null(snapshot_broken_law(snapshot));
        tly_snapshot_free(snapshot);
        loaded++;
    }
    assert_true(loaded > 0);
    free(mutant);
    free(raw);
    tly_snapshot_free(rich);
}

static void test_hostile_heads(void **state) {
    (void)state;
    size_t bytes;
    unsigned char *data = read_file(write_two("heads.tally"), &bytes);
    struct tly_file_head *file = (struct tly_file_head *)(void *)data;
    struct tly_record_head *record = (struct tly_record_head *)(void *)(data + sizeof *file);
    static const uint64_t sizes[] = {0, 1, 1 << 20, (uint64_t)2 << 30, (uint64_t)3 << 30, UINT64_MAX, UINT64_MAX - 31};
    struct tly_record_head saved = *record;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int which = 0; which < 3; which++) {
            struct tly_snapshot *snapshot;
            *record = saved;
            if (which != 1) record->stored_bytes = sizes[i];
            if (which != 0) record->raw_bytes = sizes[i];
            seal(record, offsetof(struct tly_record_head, crc));
            if (tly_recording_parse("heads.tally", data, bytes, &snapshot, NULL, 0) != 0) continue;
            assert_non_null(snapshot->note.bytes);
            tly_snapshot_free(snapshot);
        }
    }
    free(data);
}

/* A later writer may add kinds of records: they are skipped. Another version is refused, by number. */
static void test_later_formats(void **state) {
    (void)state;
    size_t bytes;
    unsigned char *data = read_file(write_two("later.tally"), &bytes);
    struct tly_file_head *file = (struct tly_file_head *)(void *)data;
    struct tly_record_head *record = (struct tly_record_head *)(void *)(data + sizeof *file);
    struct tly_snapshot *snapshot, *wanted = rich_snapshot();
    record->kind = 77;
    seal(record, offsetof(struct tly_record_head, crc));
    assert_int_equal(tly_recording_parse("later.tally", data, bytes, &snapshot, NULL, 0), 0);
    assert_null(snapshot->note.bytes);
    assert_null(snapshot_difference(snapshot, wanted));
    tly_snapshot_free(snapshot);
    tly_snapshot_free(wanted);
    file->version = 2;
    seal(file, offsetof(struct tly_file_head, crc));
    const char *path = in_scratch("later.tally");
    write_file(path, data, bytes);
    expect_refused(path, -EBADMSG, "version 2");
    free(data);
}

static void test_foreign_files(void **state) {
    (void)state;
    expect_refused(in_scratch("missing"), -ENOENT, "No such file");
    write_file(in_scratch("empty"), "", 0);
    expect_refused(in_scratch("empty"), -EBADMSG, "empty");
    write_file(in_scratch("text"), "hello, world, this is no recording\n", 35);
    expect_refused(in_scratch("text"), -EBADMSG, "neither");
    expect_refused(scratch, -EINVAL, "not a regular file");
    assert_int_equal(mkfifo(in_scratch("fifo"), 0600), 0);
    expect_refused(in_scratch("fifo"), -EINVAL, "not a regular file");
    write_file(in_scratch("magic"), "TALLYREC", 8);
    expect_refused(in_scratch("magic"), -EBADMSG, "byte 8");
    write_file(in_scratch("region"), "TALLYRGN", 8);
    expect_refused(in_scratch("region"), -EBADMSG, "too short");
}

static void test_raw_region(void **state) {
    (void)state;
    const char *path = in_scratch("raw.region");
    struct region_maker *maker = region_maker_reference();
    struct tly_snapshot *snapshot;
    size_t bytes;
    region_maker_write(maker, path);
    region_maker_free(maker);
    assert_int_equal(tly_snapshot_load(path, &snapshot, NULL, 0), 0);
    assert_int_equal(snapshot->totals.sum.alloc_bytes, 450);
    assert_int_equal(snapshot->process.taken_ns, 1700000002500000000);
    tly_snapshot_free(snapshot);
    unsigned char *data = read_file(path, &bytes);
    for (size_t length = 0; length < bytes; length += 61) {
        write_file(path, data, length);
        char error[512] = "";
        assert_int_not_equal(tly_snapshot_load(path, &snapshot, error, sizeof error), 0);
        assert_non_null(strstr(error, path));
    }
    free(data);
}

/* The region of a process that was killed: flags say nothing, but nobody with this pid and start is there. */
static void test_region_of_dead_and_living(void **state) {
    (void)state;
    struct stat status;
    if (stat("/proc/self/ns/pid", &status) != 0) skip();
    for (int living = 0; living < 2; living++) {
        struct region_maker *maker = region_maker_reference();
        struct tly_region *head = region_maker_head(maker);
        struct tly_snapshot *snapshot;
        unsigned long long ticks = 0;
        FILE *file = fopen("/proc/self/stat", "r");
        assert_non_null(file);
        assert_int_equal(fscanf(file,
                                "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                                "%*d %llu",
                                &ticks),
                         1);
        fclose(file);
        head->flags = TLY_REGION_COLLECTED;
        head->ended_ns = 0;
        head->pid = (uint32_t)getpid();
        head->pid_namespace = status.st_ino;
        head->process_start_ticks = ticks + (living ? 0 : 1);
        region_maker_write(maker, in_scratch("killed.region"));
        region_maker_free(maker);
        assert_int_equal(tly_snapshot_load(in_scratch("killed.region"), &snapshot, NULL, 0), 0);
        assert_int_equal(snapshot->process.end_kind, living ? TLY_END_RUNNING : TLY_END_UNKNOWN);
        assert_int_equal(snapshot->exact, !living);
        tly_snapshot_free(snapshot);
    }
}

static int count_files(const char *directory) {
    int count = 0;
    DIR *list = opendir(directory);
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += entry->d_name[0] != '.' || entry->d_name[1] == 't';
    closedir(list);
    return count;
}

/* A write that fails leaves the old file as it was, and nothing beside it. */
static void test_failed_writes(void **state) {
    (void)state;
    struct tly_snapshot *snapshot = rich_snapshot();
    const struct tly_snapshot *one[] = {snapshot};
    char error[512] = "", content[8] = "";
    const char *directory = in_scratch("writes"), *path = in_scratch("writes/out.tally");
    assert_int_equal(mkdir(directory, 0700), 0);
    write_file(path, "before", 6);
    struct rlimit old, small = {100, 100};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int result = tly_recording_write(path, one, 1, error, sizeof error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(result, -EFBIG);
    assert_non_null(strstr(error, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(content, 1, 7, file), 6);
    fclose(file);
    assert_string_equal(content, "before");
    assert_int_equal(count_files(directory), 1);
    assert_int_equal(tly_recording_write(in_scratch("no/such/directory"), one, 1, error, sizeof error), -ENOENT);
    assert_int_equal(tly_recording_write(directory, one, 1, error, sizeof error), -EISDIR);
    assert_int_equal(tly_recording_write("/dev/full", one, 1, error, sizeof error), -ENOSPC);
    assert_non_null(strstr(error, "/dev/full"));
    assert_int_equal(tly_recording_write("/dev/null", one, 1, error, sizeof error), 0);
    struct stat status;
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    tly_snapshot_free(snapshot);
}

static void test_write_through_link(void **state) {
    (void)state;
    struct tly_snapshot *snapshot = rich_snapshot(), *back;
    const struct tly_snapshot *one[] = {snapshot};
    const char *target = in_scratch("target.tally"), *link = in_scratch("link.tally");
    struct stat status;
    write_file(target, "before", 6);
    assert_int_equal(symlink("target.tally", link), 0);
    assert_int_equal(tly_recording_write(link, one, 1, NULL, 0), 0);
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(tly_snapshot_load(target, &back, NULL, 0), 0);
    assert_null(snapshot_difference(snapshot, back));
    tly_snapshot_free(back);
    tly_snapshot_free(snapshot);
}

/* A name as long as names can be is no reason to fail. */
static void test_longest_name(void **state) {
    (void)state;
    struct tly_snapshot *snapshot = rich_snapshot();
    const struct tly_snapshot *one[] = {snapshot};
    char name[256], error[4096] = "";
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(tly_recording_write(in_scratch(name), one, 1, error, sizeof error), 0);
    tly_snapshot_free(snapshot);
}

int main(int argc, char **argv) {
    char command[1024];
    if (argc < 2) return 2;
    scratch = argv[1];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s'", scratch, scratch);
    if (system(command) != 0) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),           cmocka_unit_test(test_same_bytes_twice),
        cmocka_unit_test(test_truncated_everywhere), cmocka_unit_test(test_every_flipped_bit),
        cmocka_unit_test(test_hostile_messages),     cmocka_unit_test(test_hostile_heads),
        cmocka_unit_test(test_later_formats),        cmocka_unit_test(test_foreign_files),
        cmocka_unit_test(test_raw_region),           cmocka_unit_test(test_region_of_dead_and_living),
        cmocka_unit_test(test_failed_writes),        cmocka_unit_test(test_write_through_link),
        cmocka_unit_test(test_longest_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
