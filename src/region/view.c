/* view.c - see view.h. Every bound is checked once, at open; live growth is bounded by what was checked then. */
#include "region/view.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int fail(const char **why, const char *text) {
    if (why) *why = text;
    return -EBADMSG;
}

int tly_view_over(const void *base, uint64_t bytes, struct tly_view *out, const char **why) {
    const struct tly_region *region = base;
    memset(out, 0, sizeof *out);
    if (bytes < sizeof *region) return fail(why, "too short for the header of a region");
    if (memcmp(region->magic, TLY_REGION_MAGIC, sizeof region->magic) != 0)
        return fail(why, "not a region: it does not begin with TALLYRGN");
    if (region->version != TLY_REGION_VERSION) return fail(why, "a region of another version of Tally");
    if (region->section_count < TLY_SEC_COUNT || region->header_bytes < sizeof *region)
        return fail(why, "damaged region: sections are missing");
    for (int i = 0; i < TLY_SEC_COUNT; i++) {
        const struct tly_section *section = &region->section[i];
        if (section->offset % 8 != 0 || section->offset > bytes || section->capacity_bytes > bytes - section->offset)
            return fail(why, "truncated or damaged region: a section lies outside the file");
        if (section->record_bytes < tly_record_bytes((enum tly_section_id)i) ||
            section->record_bytes % tly_record_bytes((enum tly_section_id)i) % 8 != 0)
            return fail(why, "damaged region: a section has records of an impossible size");
    }
    out->region = region;
    out->bytes = bytes;
    return 0;
}

int tly_view_open(const char *path, struct tly_view *out, const char **why) {
    memset(out, 0, sizeof *out);
    if (why) *why = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return -errno;
    struct stat status;
    int result = fstat(fd, &status) == 0 ? 0 : -errno;
    if (result == 0 && !S_ISREG(status.st_mode)) result = fail(why, "not a regular file");
    if (result == 0 && (uint64_t)status.st_size < sizeof(struct tly_region))
        result = fail(why, "too short for the header of a region");
    void *mapping = MAP_FAILED;
    if (result == 0) {
        mapping = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (mapping == MAP_FAILED) result = -errno;
    }
    close(fd);
    if (result != 0) return result;
    result = tly_view_over(mapping, (uint64_t)status.st_size, out, why);
    if (result != 0) {
        munmap(mapping, (size_t)status.st_size);
        return result;
    }
    out->mapping = mapping;
    return 0;
}

void tly_view_close(struct tly_view *view) {
    if (view->mapping) munmap(view->mapping, view->bytes);
    memset(view, 0, sizeof *view);
}

static uint64_t readable_bytes(const struct tly_view *view, enum tly_section_id id) {
    const struct tly_section *section = &view->region->section[id];
    uint64_t used = atomic_load_explicit(&section->used_bytes, memory_order_acquire);
    uint64_t committed = atomic_load_explicit(&section->committed_bytes, memory_order_acquire);
    if (used > committed) used = committed;
    return used < section->capacity_bytes ? used : section->capacity_bytes;
}

uint32_t tly_view_count(const struct tly_view *view, enum tly_section_id id) {
    uint64_t count = readable_bytes(view, id) / view->region->section[id].record_bytes;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

const void *tly_view_record(const struct tly_view *view, enum tly_section_id id, uint32_t index) {
    if (index >= tly_view_count(view, id)) return NULL;
    const struct tly_section *section = &view->region->section[id];
    return (const char *)view->region + section->offset + (uint64_t)index * section->record_bytes;
}

const char *tly_view_name(const struct tly_view *view, uint64_t offset, uint32_t bytes) {
    uint64_t readable = readable_bytes(view, TLY_SEC_NAMES);
    if (offset > readable || bytes > readable - offset) return NULL;
    return (const char *)view->region + view->region->section[TLY_SEC_NAMES].offset + offset;
}

static uint64_t load(const _Atomic uint64_t *word) { return atomic_load_explicit(word, memory_order_acquire); }

/* One pass over all segments, adding up either the frees or the allocations. */
static void add_up(const struct tly_view *view, struct tly_balance *out, uint32_t nodes, uint32_t segs, bool frees) {
    for (uint32_t i = 0; i < segs; i++) {
        const struct tly_segref *ref = tly_view_record(view, TLY_SEC_SEGDIR, i);
        const struct tly_seg *seg = tly_view_record(view, TLY_SEC_SEGS, i);
        if (!ref || !seg) break;
        if (atomic_load_explicit(&ref->ledger_plus_1, memory_order_acquire) == 0) continue;
        uint32_t first = ref->first_node;
        if (first >= nodes) continue;
        uint32_t count = nodes - first < TLY_SEG_NODES ? nodes - first : TLY_SEG_NODES;
        for (uint32_t k = 0; k < count; k++) {
            if (frees) {
                out[first + k].free_bytes += load(&seg->cell[k].free_bytes);
                out[first + k].free_blocks += load(&seg->cell[k].free_blocks);
            } else {
                out[first + k].alloc_bytes += load(&seg->cell[k].alloc_bytes);
                out[first + k].alloc_blocks += load(&seg->cell[k].alloc_blocks);
            }
        }
    }
}

/* All frees before any allocation: no balance of a running process can be negative. */
static void add_up_all(const struct tly_view *view, struct tly_balance *out, uint32_t nodes) {
    memset(out, 0, nodes * sizeof *out);
    add_up(view, out, nodes, tly_view_count(view, TLY_SEC_SEGS), true);
    atomic_thread_fence(memory_order_seq_cst);
    add_up(view, out, nodes, tly_view_count(view, TLY_SEC_SEGS), false);
    atomic_thread_fence(memory_order_acquire);
}

int tly_view_balances(const struct tly_view *view, struct tly_balance *out, uint32_t nodes) {
    for (int attempt = 0; attempt < 100; attempt++) {
        struct timespec pause = {0, 1000000};
        if (attempt > 0) nanosleep(&pause, NULL);
        uint32_t epoch = atomic_load_explicit(&view->region->epoch, memory_order_acquire);
        if (epoch % 2 != 0) continue; /* a clear is under way, or was when the process was killed */
        add_up_all(view, out, nodes);
        if (atomic_load_explicit(&view->region->epoch, memory_order_relaxed) == epoch) return 0;
    }
    add_up_all(view, out, nodes); /* what is there */
    return -EAGAIN;
}

int64_t tly_view_live_bytes(const struct tly_view *view) {
    int64_t total = atomic_load_explicit(&view->region->total_bytes, memory_order_acquire);
    uint32_t count = tly_view_count(view, TLY_SEC_LEDGERS);
    for (uint32_t i = 0; i < count; i++) {
        const struct tly_ledger *ledger = tly_view_record(view, TLY_SEC_LEDGERS, i);
        if (!ledger || atomic_load_explicit(&ledger->state, memory_order_acquire) == TLY_LEDGER_UNUSED) continue;
        total += atomic_load_explicit(&ledger->alloc_quota, memory_order_relaxed) -
                 atomic_load_explicit(&ledger->alloc_left, memory_order_relaxed);
        total -= atomic_load_explicit(&ledger->free_quota, memory_order_relaxed) -
                 atomic_load_explicit(&ledger->free_left, memory_order_relaxed);
    }
    return total;
}
