/* test_view.c - reading a region: a good one, and every kind of damage. The bytes lie at the end of a mapping, so that
 * one byte too far is a crash. */
#define _GNU_SOURCE
#define TALLY_BUILDING
#include "core_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/account.h"
#include "core/tagstack.h"
#include "region/writer.h"
#include "runtime/process.h"
#include "tally/tally.h"

enum { BLOCKS = 300 };
static char path[] = "/tmp/tally-test-view-XXXXXX";
static char *good; /* a written-out region, ending at the end of readable memory */
static size_t bytes;

static char *map_at_end(size_t count) {
    size_t whole = (count + 4095) / 4096 * 4096;
    char *memory = mmap(NULL, whole + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + whole, 4096, PROT_NONE), 0);
    return memory + (whole - count) / 64 * 64; /* regions are aligned: see region.h */
}

static int make_good(void **state) {
    (void)state;
    setenv("TALLY_CONF", "output:,consolidate_period_ms:0,quiet:true", 1);
    int fd = mkstemp(path);
    if (fd < 0 || tally_start() != 0) return -1;
    close(fd);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        char name[20];
        snprintf(name, sizeof name, "tag %d", (int)(i % 100));
        tally_push_copy(name);
        tally_push("below");
        tly_account_made(world_block(0, i * 10), i, NULL);
        if (i % 3 == 0) tly_account_gone(world_block(0, i * 10));
        tally_pop();
        tally_pop();
    }
    if (tally_snapshot_write(path) != 0) return -1;
    struct stat status;
    fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size % 64 != 0) return -1;
    bytes = (size_t)status.st_size;
    good = map_at_end(bytes);
    return read(fd, good, bytes) == (ssize_t)bytes ? close(fd) : -1;
}
static int remove_good(void **state) {
    (void)state;
    return unlink(path);
}

/* Uses everything that a view offers; what comes out does not matter. */
static uint64_t use(const struct tly_view *view) {
    uint64_t sum = 0;
    for (int id = 0; id < TLY_SEC_COUNT; id++) {
        uint32_t count = tly_view_count(view, (enum tly_section_id)id);
        const uint32_t indices[] = {0, 1, count / 2, count - 1, count, count + 1, UINT32_MAX};
        for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
            const unsigned char *record = tly_view_record(view, (enum tly_section_id)id, indices[i]);
            if (record) sum += record[0] + record[view->region->section[id].record_bytes - 1];
        }
    }
    for (uint32_t i = 0; i < tly_view_count(view, TLY_SEC_SITES); i++) {
        const struct tly_site *site = tly_view_record(view, TLY_SEC_SITES, i);
        const char *name = site ? tly_view_name(view, site->name_offset, site->name_bytes) : NULL;
        if (name && site->name_bytes) sum += (unsigned char)name[0] + (unsigned char)name[site->name_bytes - 1];
    }
    struct tly_balance balances[500];
    uint32_t nodes = tly_view_count(view, TLY_SEC_NODES);
    if (view->region->epoch % 2 == 0) /* an odd one takes a hundred milliseconds to give up */
        tly_view_balances(view, balances, nodes < 500 ? nodes : 500);
    return sum + (uint64_t)tly_view_live_bytes(view);
}

static void undamaged(void **state) {
    (void)state;
    struct tly_view views[2];
    const char *why = NULL;
    assert_int_equal(tly_view_over(good, bytes, &views[0], &why), 0);
    assert_int_equal(tly_view_open(path, &views[1], &why), 0);
    for (int v = 0; v < 2; v++) {
        struct tly_balance balances[1000], sum = {0, 0, 0, 0};
        uint32_t nodes = tly_view_count(&views[v], TLY_SEC_NODES);
        assert_int_equal(nodes, TLY_NODE_FIRST + 200);
        assert_int_equal(tly_view_balances(&views[v], balances, nodes), 0);
        uint64_t allocated = 0, freed = 0, below = 0;
        for (uint32_t i = 0; i < nodes; i++) {
            sum.alloc_bytes += balances[i].alloc_bytes;
            sum.alloc_blocks += balances[i].alloc_blocks;
            sum.free_bytes += balances[i].free_bytes;
            sum.free_blocks += balances[i].free_blocks;
            const struct tly_node *node = tly_view_record(&views[v], TLY_SEC_NODES, i);
            const struct tly_site *site =
                i < TLY_NODE_FIRST ? NULL : tly_view_record(&views[v], TLY_SEC_SITES, node->site_plus_1 - 1);
            const char *name = site ? tly_view_name(&views[v], site->name_offset, site->name_bytes) : "";
            below += site && site->name_bytes == 5 && memcmp(name, "below", 5) == 0;
        }
        for (uint64_t i = 0; i < BLOCKS; i++) {
            allocated += i;
            if (i % 3 == 0) freed += i;
        }
        assert_int_equal(below, 100);
        assert_int_equal(sum.alloc_bytes, allocated);
        assert_int_equal(sum.alloc_blocks, BLOCKS);
        assert_int_equal(sum.free_bytes, freed);
        assert_int_equal(sum.free_blocks, BLOCKS / 3);
        assert_int_equal(tly_view_live_bytes(&views[v]), allocated - freed);
        /* fewer nodes than there are: nothing is written behind the array */
        memset(balances, 0x55, sizeof balances);
        assert_int_equal(tly_view_balances(&views[v], balances, 10), 0);
        for (size_t i = 10 * sizeof *balances; i < sizeof balances; i++)
            assert_int_equal(((char *)balances)[i], 0x55);
        use(&views[v]);
    }
    tly_view_close(&views[1]);
    assert_null(views[1].region);
}

static void not_regions(void **state) {
    (void)state;
    struct tly_view view;
    const char *why;
    assert_int_equal(tly_view_open("/nonexistent/region", &view, &why), -ENOENT);
    assert_int_equal(tly_view_open("/tmp", &view, &why), -EBADMSG);
    assert_string_equal(why, "not a regular file");
    assert_int_equal(tly_view_open("/dev/null", &view, NULL), -EBADMSG);
    assert_int_equal(tly_view_open("/proc/self/exe", &view, &why), -EBADMSG);
    assert_non_null(strstr(why, "TALLYRGN"));
    char empty[] = "/tmp/tally-test-empty-XXXXXX";
    close(mkstemp(empty));
    assert_int_equal(tly_view_open(empty, &view, &why), -EBADMSG);
    assert_non_null(strstr(why, "too short"));
    unlink(empty);
    assert_null(view.region);
}

static void truncated(void **state) {
    (void)state;
    struct tly_view view;
    const char *why;
    for (size_t count = 0; count < bytes; count += count < 2048 || count > bytes - 640 ? 64 : 1024) {
        char *copy = map_at_end(count);
        memcpy(copy, good, count);
        if (tly_view_over(copy, count, &view, &why) == 0)
            use(&view); /* what was cut off was not in a section */
        else
            assert_true(why && why[0]);
        munmap((void *)((uintptr_t)copy & ~(uintptr_t)4095), (count + 4095) / 4096 * 4096 + 4096);
    }
}

/* Each word of the header set to each evil value, and random damage everywhere. */
static void damaged(void **state) {
    (void)state;
    static const uint64_t evil[] = {
        0,         1,         7,         8,         63,        64,         4096,           UINT32_MAX,
        1ul << 31, 1ul << 32, 1ul << 40, 1ul << 62, 1ul << 63, UINT64_MAX, UINT64_MAX - 7, 0x100000001};
    uint64_t random = world_seed();
    struct tly_view view;
    const char *why;
    int accepted = 0, refused = 0;
    for (size_t at = 0; at + 8 <= sizeof(struct tly_region); at += 4) {
        for (size_t e = 0; e < sizeof evil / sizeof *evil; e++) {
            uint64_t saved;
            memcpy(&saved, good + at, 8);
            memcpy(good + at, &evil[e], 8);
            if (tly_view_over(good, bytes, &view, &why) == 0) {
                use(&view);
                accepted++;
            } else {
                refused++;
                assert_true(why && why[0]);
            }
            memcpy(good + at, &saved, 8);
        }
    }
    assert_true(accepted > 1000 && refused > 500);
    for (int round = 0; round < 3000; round++) {
        size_t at[8];
        char saved[8];
        for (int i = 0; i < 8; i++) {
            at[i] = world_random(&random) % (round % 2 ? sizeof(struct tly_region) : bytes);
            saved[i] = good[at[i]];
            good[at[i]] = (char)world_random(&random);
        }
        if (tly_view_over(good, bytes, &view, NULL) == 0) use(&view);
        for (int i = 8; i-- > 0;)
            good[at[i]] = saved[i];
    }
    assert_int_equal(tly_view_over(good, bytes, &view, &why), 0);
}

/* A section that says it has handed out more than is backed by memory: a reader takes the lesser. */
static void used_beyond_committed(void **state) {
    (void)state;
    struct tly_view view;
    assert_int_equal(tly_view_over(good, bytes, &view, NULL), 0);
    struct tly_section *nodes = &((struct tly_region *)good)->section[TLY_SEC_NODES];
    uint64_t used = nodes->used_bytes, committed = nodes->committed_bytes;
    nodes->committed_bytes = 80;
    assert_int_equal(tly_view_count(&view, TLY_SEC_NODES), 10);
    assert_non_null(tly_view_record(&view, TLY_SEC_NODES, 9));
    assert_null(tly_view_record(&view, TLY_SEC_NODES, 10));
    nodes->committed_bytes = UINT64_MAX;
    nodes->used_bytes = UINT64_MAX;
    assert_int_equal(tly_view_count(&view, TLY_SEC_NODES), nodes->capacity_bytes / 8);
    nodes->used_bytes = used;
    nodes->committed_bytes = committed;
}

static void clear_under_way(void **state) {
    (void)state;
    struct tly_view view;
    struct tly_balance balances[10];
    struct tly_region *region = (struct tly_region *)good;
    assert_int_equal(tly_view_over(good, bytes, &view, NULL), 0);
    region->epoch++;
    assert_int_equal(tly_view_balances(&view, balances, 10), -EAGAIN);
    region->epoch++;
    assert_int_equal(tly_view_balances(&view, balances, 10), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undamaged), cmocka_unit_test(not_regions),           cmocka_unit_test(truncated),
        cmocka_unit_test(damaged),   cmocka_unit_test(used_beyond_committed), cmocka_unit_test(clear_under_way),
    };
    return cmocka_run_group_tests(tests, make_good, remove_good);
}
