/* test_writer.c - making a region, appending to it, and the limits of the process and of the file system. */
#define _GNU_SOURCE
#include "core_world.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region/writer.h"

static const struct tly_writer_sizes sizes = {(uint64_t)256 << 20, (uint64_t)128 << 20};
static char path[200], folder[100];

/* Every test makes regions in a process of its own: there is one per process. */
static void limits(int which, rlim_t bytes) {
    const struct rlimit limit = {bytes, bytes};
    CHECK(setrlimit(which, &limit) == 0);
}

static void check_layout(void) {
    uint64_t end = 0;
    CHECK(tly_region->version == TLY_REGION_VERSION && tly_region->section_count == TLY_SEC_COUNT);
    CHECK(tly_region->magic[0] == 0); /* the owner writes it, last */
    for (int id = 0; id < TLY_SEC_COUNT; id++) {
        const struct tly_section *section = &tly_region->section[id];
        CHECK(section->offset == end && section->offset % 64 == 0 && section->record_bytes > 0);
        CHECK(section->used_bytes <= section->committed_bytes && section->committed_bytes <= section->capacity_bytes);
        end = section->offset + section->capacity_bytes;
    }
    CHECK(end == tly_region->region_bytes);
    CHECK(tly_region->section[TLY_SEC_HEADER].capacity_bytes >= sizeof(struct tly_region));
}

static void fill_some(void) {
    uint64_t last = 0;
    for (int i = 0; i < 5000; i++) {
        uint64_t at = tly_writer_append(TLY_SEC_NAMES, 1 + i % 100);
        CHECK(at != UINT64_MAX && at % 8 == 0 && (i == 0 || at >= last));
        char *bytes = (char *)tly_writer_base(TLY_SEC_NAMES) + at;
        for (int k = 0; k < 1 + i % 100; k++) {
            CHECK(bytes[k] == 0);
            bytes[k] = 'x';
        }
        last = at + 1 + i % 100;
    }
    CHECK(tly_writer_commit(TLY_SEC_SITEIDX, 1 << 20));
    CHECK(tly_region->section[TLY_SEC_SITEIDX].committed_bytes >= 1 << 20);
    CHECK(tly_region->section[TLY_SEC_SITEIDX].used_bytes == 0);
    memset(tly_writer_base(TLY_SEC_SITEIDX), 1, 1 << 20);
}

static void anonymous_part(void) {
    CHECK(tly_writer_create(NULL, &sizes) == 0);
    check_layout();
    fill_some();
    CHECK(tly_map_bytes(TLY_OWN_REGION) > 1 << 20);
    CHECK(tly_region->own_bytes[TLY_OWN_REGION] == tly_map_bytes(TLY_OWN_REGION));
}

static void file_part(void) {
    CHECK(tly_writer_create(path, &sizes) == 0);
    check_layout();
    fill_some();
    struct stat status;
    CHECK(stat(path, &status) == 0 && (status.st_mode & 07777) == 0600);
    CHECK((uint64_t)status.st_size == tly_region->region_bytes);
    CHECK((uint64_t)status.st_blocks * 512 < 8 << 20); /* sparse */
    const char *why;
    struct tly_view view;
    memcpy(tly_region->magic, TLY_REGION_MAGIC, sizeof tly_region->magic);
    CHECK(tly_view_open(path, &view, &why) == 0);
    CHECK(tly_view_count(&view, TLY_SEC_NAMES) == tly_region->section[TLY_SEC_NAMES].used_bytes);
    CHECK(tly_view_name(&view, 0, 1) && *tly_view_name(&view, 0, 1) == 'x');
    tly_view_close(&view);
}

static void not_over_a_file_part(void) {
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && write(fd, "mine", 4) == 4);
    close(fd);
    CHECK(tly_writer_create(path, &sizes) == -EEXIST && tly_region == NULL);
    struct stat status;
    CHECK(stat(path, &status) == 0 && status.st_size == 4);
    CHECK(unlink(path) == 0 && symlink("/etc/passwd", path) == 0);
    CHECK(tly_writer_create(path, &sizes) < 0 && tly_region == NULL);
    unlink(path);
    CHECK(tly_writer_create("/nonexistent/region", &sizes) == -ENOENT && tly_region == NULL);
    CHECK(tly_writer_create(NULL, &sizes) == 0); /* the fall-back still works */
    check_layout();
}

static void file_limit_part(void) { /* halved until it fits; SIGXFSZ would kill us */
    limits(RLIMIT_FSIZE, (rlim_t)1 << 30);
    CHECK(tly_writer_create(path, &sizes) == 0);
    CHECK(tly_region->region_bytes <= 1 << 30);
    check_layout();
    fill_some();
}

static void small_file_limit_part(void) {
    limits(RLIMIT_FSIZE, 4096);
    CHECK(tly_writer_create(path, &sizes) == -EFBIG);
    CHECK(access(path, F_OK) != 0);
    CHECK(tly_writer_create(NULL, &sizes) == 0);
    fill_some();
}

static void space_limit_part(void) { /* a quarter of `ulimit -v` at most */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return; /* their shadow memory is beyond any limit */
#endif
    limits(RLIMIT_AS, (rlim_t)2 << 30);
    CHECK(tly_writer_create(NULL, &sizes) == 0);
    CHECK(tly_region->region_bytes <= (uint64_t)512 << 20);
    check_layout();
    fill_some();
}

static void capacity_part(void) {
    CHECK(tly_writer_create(NULL, &sizes) == 0);
    const struct tly_section *modules = &tly_region->section[TLY_SEC_MODULES];
    CHECK(tly_writer_append(TLY_SEC_MODULES, modules->capacity_bytes + 8) == UINT64_MAX);
    CHECK(modules->used_bytes == 0);
    CHECK(tly_writer_append(TLY_SEC_MODULES, modules->capacity_bytes - 8) == 0);
    CHECK(tly_writer_append(TLY_SEC_MODULES, 16) == UINT64_MAX);
    CHECK(modules->used_bytes == modules->capacity_bytes - 8);
    CHECK(tly_writer_append(TLY_SEC_MODULES, 1) == modules->capacity_bytes - 8);
    CHECK(tly_writer_append(TLY_SEC_MODULES, 1) == UINT64_MAX);
    CHECK(!tly_writer_commit(TLY_SEC_MODULES, modules->capacity_bytes + 1));
}

/* ---- a full file system ------------------------------------------------------------------------------------------ */

static void full_part(void) {
    char place[220];
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        printf("  (no mount namespace to be had: the part on a full tmpfs is left out)\n");
        fflush(stdout);
        return;
    }
    CHECK(mount("tally-test", folder, "tmpfs", 0, "size=256k") == 0);
    snprintf(place, sizeof place, "%s/full.region", folder);
    CHECK(tly_writer_create(place, &sizes) == 0);
    uint64_t count = 0, at;
    while ((at = tly_writer_append(TLY_SEC_NAMES, 64)) != UINT64_MAX) {
        memset((char *)tly_writer_base(TLY_SEC_NAMES) + at, 'y', 64); /* SIGBUS if it is not there */
        CHECK(++count < 1 << 20);
    }
    CHECK(count > 64 && count * 64 < 256 << 10);
    const struct tly_section *names = &tly_region->section[TLY_SEC_NAMES];
    CHECK(names->used_bytes == count * 64 && names->used_bytes <= names->committed_bytes);
    errno = 77;
    CHECK(tly_writer_append(TLY_SEC_NAMES, 65536) == UINT64_MAX && errno == 77);
    CHECK(tly_writer_append(TLY_SEC_SITES, 1 << 20) == UINT64_MAX);
    /* nothing at all to be had: no region, and no file left behind */
    char blob[4096] = {1};
    snprintf(place, sizeof place, "%s/ballast", folder);
    int fd = open(place, O_CREAT | O_WRONLY, 0600);
    while (write(fd, blob, sizeof blob) == sizeof blob) {
    }
    close(fd);
    snprintf(place, sizeof place, "%s/second.region", folder);
    CHECK(tly_writer_create(place, &sizes) < 0);
    CHECK(access(place, F_OK) != 0);
}

/* ---- a child ----------------------------------------------------------------------------------------------------- */

static uint64_t checksum(const void *bytes, uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum = sum * 31 + ((const unsigned char *)bytes)[i];
    return sum;
}

static void fork_part_with(const char *parent_path, const char *child_path) {
    CHECK(tly_writer_create(parent_path, &sizes) == 0);
    fill_some();
    void *place = tly_region;
    uint64_t names_bytes = tly_region->section[TLY_SEC_NAMES].used_bytes;
    uint64_t sum = checksum(tly_region, 4096) ^ checksum(tly_writer_base(TLY_SEC_NAMES), names_bytes);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(tly_writer_parent() == NULL);
        tly_writer_shield();
        tly_writer_shield();
        CHECK(tly_region == place && tly_region->region_bytes == 0); /* scratch at the same address */
        memset(tly_region, 0x55, 1 << 20);
        const struct tly_region *parent = tly_writer_parent();
        CHECK(parent && parent != place && parent->section[TLY_SEC_NAMES].used_bytes == names_bytes);
        CHECK(tly_writer_create(child_path, &sizes) == 0);
        CHECK(tly_region == place);
        check_layout();
        CHECK(tly_region->section[TLY_SEC_NAMES].used_bytes == 0);
        fill_some();
        CHECK(tly_writer_append(TLY_SEC_NAMES, 100000) != UINT64_MAX);
        CHECK(((const char *)parent)[parent->section[TLY_SEC_NAMES].offset] == 'x');
        tly_writer_forget_parent();
        CHECK(tly_writer_parent() == NULL);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK((checksum(tly_region, 4096) ^ checksum(tly_writer_base(TLY_SEC_NAMES), names_bytes)) == sum);
    CHECK(tly_region->section[TLY_SEC_NAMES].used_bytes == names_bytes);
}

static void fork_file_part(void) {
    char second[220];
    snprintf(second, sizeof second, "%s.child", path);
    unlink(second);
    fork_part_with(path, second);
    unlink(second);
}
static void fork_anonymous_part(void) { fork_part_with(NULL, NULL); }
static void fork_to_anonymous_part(void) { fork_part_with(path, NULL); }

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 6, APPENDS = 20000 };
static uint64_t offsets[THREADS][APPENDS];

static void *append_all(void *number) {
    for (int i = 0; i < APPENDS; i++) {
        uint64_t at = tly_writer_append(TLY_SEC_NAMES, 16);
        CHECK(at != UINT64_MAX);
        uint64_t *words = (uint64_t *)((char *)tly_writer_base(TLY_SEC_NAMES) + at);
        CHECK(words[0] == 0 && words[1] == 0);
        words[0] = (size_t)number + 1;
        words[1] = (uint64_t)i;
        offsets[(size_t)number][i] = at;
        if (i % 100 == 0) CHECK(tly_writer_commit(TLY_SEC_SITEIDX, (uint64_t)i * 200));
    }
    return NULL;
}

static void threads_part(void) {
    CHECK(tly_writer_create(path, &sizes) == 0);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, append_all, (void *)i) == 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(tly_region->section[TLY_SEC_NAMES].used_bytes == (uint64_t)THREADS * APPENDS * 16);
    for (size_t t = 0; t < THREADS; t++)
        for (uint64_t i = 0; i < APPENDS; i++) {
            const uint64_t *words = (uint64_t *)((char *)tly_writer_base(TLY_SEC_NAMES) + offsets[t][i]);
            CHECK(words[0] == t + 1 && words[1] == i); /* nobody else was given the same room */
        }
    uint64_t committed = 0;
    for (int id = 0; id < TLY_SEC_COUNT; id++)
        committed += tly_region->section[id].committed_bytes;
    CHECK(tly_map_bytes(TLY_OWN_REGION) == committed);
}

#define IN_CHILD(NAME)                                                                                                 \
    static void NAME(void **state) {                                                                                   \
        (void)state;                                                                                                   \
        unlink(path);                                                                                                  \
        world_in_child(NAME##_part);                                                                                   \
        unlink(path);                                                                                                  \
    }
IN_CHILD(anonymous)
IN_CHILD(file)
IN_CHILD(not_over_a_file)
IN_CHILD(file_limit)
IN_CHILD(small_file_limit)
IN_CHILD(space_limit)
IN_CHILD(capacity)
IN_CHILD(full)
IN_CHILD(fork_file)
IN_CHILD(fork_anonymous)
IN_CHILD(fork_to_anonymous)
IN_CHILD(threads)

int main(void) {
    /* a file system where memory can be populated and files are sparse: any will do */
    snprintf(folder, sizeof folder, "%s/tally-test-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/test.region", folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anonymous),         cmocka_unit_test(file),
        cmocka_unit_test(not_over_a_file),   cmocka_unit_test(file_limit),
        cmocka_unit_test(small_file_limit),  cmocka_unit_test(space_limit),
        cmocka_unit_test(capacity),          cmocka_unit_test(full),
        cmocka_unit_test(fork_file),         cmocka_unit_test(fork_anonymous),
        cmocka_unit_test(fork_to_anonymous), cmocka_unit_test(threads),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
