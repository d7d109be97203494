/* writer.c - see writer.h. */
#define _GNU_SOURCE
#include "region/writer.h"

#include "base/page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE = TLY_PAGE, LEAST_STEP = 4 * PAGE };
#define GREATEST_STEP (1u << 20)
#define MIB ((uint64_t)1 << 20)

struct tly_region *tly_region;
static uint64_t region_bytes;
static bool in_file; /* commit by populating; anonymous memory needs no commit */
static void *parent; /* the inherited region, moved here */
static bool shielded;
/* What of each section is accessible, told apart from the region's own record of it: in a forked child this is how it
 * was at the fork, whatever the parent does meanwhile. */
static _Atomic uint64_t accessible[TLY_SEC_COUNT];
static uint64_t parent_bytes[TLY_SEC_COUNT]; /* the same of the inherited region */

/* Address space per section, at full size; halved together until the whole fits the process's limits. */
static uint64_t capacity(int id, const struct tly_writer_sizes *sizes, int halvings) {
    static const uint64_t nodes = 1u << 23, sites = 1u << 24, modules = 1u << 16, ledgers = 1u << 16;
    uint64_t shared_cells = nodes * sizeof(struct tly_cell);
    uint64_t segs = shared_cells + sizes->ledger_pool_bytes;
    uint64_t bytes = 0;
    switch (id) {
    case TLY_SEC_HEADER: return PAGE;
    case TLY_SEC_NAMES: bytes = 4096 * MIB; break;
    case TLY_SEC_SITES: bytes = sites * sizeof(struct tly_site); break;
    case TLY_SEC_NODES: bytes = nodes * sizeof(struct tly_node); break;
    case TLY_SEC_MODULES: bytes = modules * sizeof(struct tly_module); break;
    case TLY_SEC_LEDGERS: bytes = ledgers * sizeof(struct tly_ledger); break;
    case TLY_SEC_SEGDIR: bytes = segs / sizeof(struct tly_seg) * sizeof(struct tly_segref); break;
    case TLY_SEC_SEGS: bytes = segs; break;
    case TLY_SEC_SITEIDX: bytes = 256 * MIB; break;
    case TLY_SEC_NODEIDX: bytes = 2 * sizes->node_index_bytes; break;
    }
    bytes >>= halvings;
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static uint64_t lay_out(struct tly_section *section, const struct tly_writer_sizes *sizes, int halvings) {
    uint64_t offset = 0;
    for (int id = 0; id < TLY_SEC_COUNT; id++) {
        uint64_t bytes = capacity(id, sizes, halvings);
        if (section) {
            section[id].offset = offset;
            section[id].capacity_bytes = bytes;
            section[id].record_bytes = tly_record_bytes((enum tly_section_id)id);
        }
        offset += bytes;
    }
    return offset;
}

/* Most address space we may take: a quarter of `ulimit -v`, and no more than a file may have. */
static uint64_t space_limit(bool for_file) {
    struct rlimit limit;
    uint64_t most = UINT64_MAX;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) most = limit.rlim_cur / 4;
    if (for_file && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < most)
        most = limit.rlim_cur;
    return most;
}

static int create_file(const char *path, uint64_t bytes) {
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return -errno;
    if (ftruncate(fd, (off_t)bytes) != 0) {
        int error = errno;
        close(fd);
        unlink(path);
        return -error;
    }
    return fd;
}

/* Maps `bytes` of the file (or anonymous) at the region's place: inaccessible until committed, so that mlockall() does
 * not fill gigabytes. */
static int map_at_place(int fd, uint64_t bytes) {
    int flags = (fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_NORESERVE | (tly_region ? MAP_FIXED : 0);
    void *memory = mmap(tly_region, bytes, PROT_NONE, flags, fd, 0);
    if (memory == MAP_FAILED) return -errno;
    if (fd < 0) madvise(memory, bytes, MADV_NOHUGEPAGE);
    tly_region = memory;
    return 0;
}

/* Memory that nobody reads, at the region's place: what still writes there does no harm. */
static bool put_scratch(void) {
    return mmap(tly_region, region_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Something of every section, so that a file system that is full shows it now, while there is a choice. */
static bool commit_first_steps(void) {
    for (int id = TLY_SEC_HEADER + 1; id < TLY_SEC_COUNT; id++)
        if (!tly_writer_commit((enum tly_section_id)id, 1)) return false;
    return true;
}

static int create_sized(const char *path, const struct tly_writer_sizes *sizes, int halvings) {
    uint64_t bytes = lay_out(NULL, sizes, halvings);
    if (bytes > space_limit(path != NULL)) return -EFBIG;
    if (tly_region && bytes > region_bytes) return -EFBIG; /* must fit the inherited place */
    int fd = -1;
    if (path) {
        fd = create_file(path, bytes);
        if (fd < 0) return fd;
    }
    bool again = tly_region != NULL;
    int result = map_at_place(fd, bytes);
    if (fd >= 0) close(fd);
    if (result == 0 && (mprotect(tly_region, PAGE, PROT_READ | PROT_WRITE) != 0 ||
                        (path && madvise(tly_region, PAGE, MADV_POPULATE_WRITE) != 0))) {
        result = -errno;
        if (!again) munmap(tly_region, bytes);
        if (!again || !put_scratch()) tly_region = NULL;
    }
    if (result != 0) {
        if (path) unlink(path);
        return result;
    }
    if (!again) region_bytes = bytes;
    in_file = path != NULL;
    for (int id = 0; id < TLY_SEC_COUNT; id++)
        accessible[id] = 0;
    accessible[TLY_SEC_HEADER] = PAGE;
    lay_out(tly_region->section, sizes, halvings);
    tly_region->region_bytes = bytes;
    tly_region->version = TLY_REGION_VERSION;
    tly_region->header_bytes = sizeof *tly_region;
    tly_region->section_count = TLY_SEC_COUNT;
    tly_region->section[TLY_SEC_HEADER].committed_bytes = PAGE;
    tly_region->section[TLY_SEC_HEADER].used_bytes = sizeof *tly_region;
    shielded = false;
    tly_map_set(TLY_OWN_REGION, PAGE);
    if (commit_first_steps()) return 0;
    if (path) unlink(path);
    if (!again) munmap(tly_region, bytes);
    if (!again || !put_scratch()) tly_region = NULL;
    shielded = again;
    return -ENOSPC;
}

int tly_writer_create(const char *path, const struct tly_writer_sizes *sizes) {
    if (tly_region) tly_writer_shield();
    int result = -ENOMEM;
    for (int halvings = 0; halvings <= 8; halvings++) {
        result = create_sized(path, sizes, halvings);
        if (result == 0) {
            tly_map_mirror(tly_region->own_bytes);
            return 0;
        }
        if (result != -ENOMEM && result != -EFBIG) break;
    }
    return result;
}

/* Moves what the parent had committed to the same offsets of another range. */
static void *move_away(void) {
    char *away = mmap(NULL, region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (away == MAP_FAILED) return NULL;
    memset(parent_bytes, 0, sizeof parent_bytes);
    struct tly_section section[TLY_SEC_COUNT]; /* the header is the first to go */
    memcpy(section, tly_region->section, sizeof section);
    for (int id = 0; id < TLY_SEC_COUNT; id++) {
        if (id == TLY_SEC_LEDGERS || id == TLY_SEC_SEGDIR || id == TLY_SEC_SEGS || accessible[id] == 0) continue;
        char *from = (char *)tly_region + section[id].offset, *to = away + section[id].offset;
        parent_bytes[id] = accessible[id];
        if (mremap(from, accessible[id], accessible[id], MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED &&
            mprotect(to, accessible[id], PROT_READ) == 0)
            continue;
        munmap(away, region_bytes);
        return NULL;
    }
    return away;
}

void tly_writer_shield(void) {
    if (!tly_region || shielded) return;
    int saved = errno;
    tly_map_mirror(NULL);
    parent = move_away();
    if (!put_scratch()) tly_region = NULL;
    shielded = true;
    errno = saved;
}

uint64_t tly_writer_parent_bytes(enum tly_section_id id) { return parent_bytes[id]; }

const struct tly_region *tly_writer_parent(void) { return parent; }

void tly_writer_forget_parent(void) {
    if (parent) munmap(parent, region_bytes);
    parent = NULL;
}

bool tly_writer_commit(enum tly_section_id id, uint64_t bytes) {
    struct tly_section *section = &tly_region->section[id];
    uint64_t committed = atomic_load_explicit(&section->committed_bytes, memory_order_acquire);
    while (committed < bytes) {
        if (bytes > section->capacity_bytes) return false;
        uint64_t step = committed / 2 / PAGE * PAGE;
        if (step < LEAST_STEP) step = LEAST_STEP;
        if (step > GREATEST_STEP) step = GREATEST_STEP;
        uint64_t target = committed + step;
        if (target < bytes) target = (bytes + PAGE - 1) / PAGE * PAGE;
        if (target > section->capacity_bytes) target = section->capacity_bytes;
        int saved = errno;
        char *start = (char *)tly_writer_base(id) + committed;
        bool failed = mprotect(start, target - committed, PROT_READ | PROT_WRITE) != 0 ||
                      (in_file && madvise(start, target - committed, MADV_POPULATE_WRITE) != 0);
        errno = saved;
        if (failed) return false;
        uint64_t before = atomic_load(&accessible[id]);
        while (before < target && !atomic_compare_exchange_weak(&accessible[id], &before, target)) {
        }
        if (atomic_compare_exchange_strong_explicit(&section->committed_bytes, &committed, target, memory_order_acq_rel,
                                                    memory_order_acquire)) {
            tly_map_count(TLY_OWN_REGION, (int64_t)(target - committed));
            committed = target;
        }
    }
    return true;
}

uint64_t tly_writer_append(enum tly_section_id id, uint64_t bytes) {
    struct tly_section *section = &tly_region->section[id];
    uint64_t aligned = (bytes + 7) / 8 * 8;
    uint64_t used = atomic_load_explicit(&section->used_bytes, memory_order_relaxed);
    do {
        if (aligned > section->capacity_bytes - used) return UINT64_MAX;
        if (!tly_writer_commit(id, used + aligned)) return UINT64_MAX;
    } while (!atomic_compare_exchange_weak_explicit(&section->used_bytes, &used, used + aligned, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return used;
}

uint64_t tly_writer_name(const char *bytes, uint32_t count) {
    uint64_t offset = tly_writer_append(TLY_SEC_NAMES, count);
    if (offset != UINT64_MAX) memcpy((char *)tly_writer_base(TLY_SEC_NAMES) + offset, bytes, count);
    return offset;
}

void tly_writer_text(struct tly_text *text, const char *bytes, size_t count) {
    uint64_t offset = tly_writer_name(bytes, (uint32_t)count);
    if (offset == UINT64_MAX) return;
    text->offset = offset;
    text->bytes = (uint32_t)count;
}
