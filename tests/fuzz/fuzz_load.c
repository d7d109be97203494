/*
 * fuzz_load.c - any bytes at all, taken for a recording, for the message in one, and for a region.
 *
 * With clang -fsanitize=fuzzer this is a libFuzzer target; otherwise replay.c runs it over the files of a corpus. What
 * is loaded must keep the promises of snapshot.h, roll up exactly, and survive being written and read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "offline/record.h"
#include "offline/recording.h"
#include "offline/rollup.h"
#include "snapshot_laws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void demand(int holds) {
    if (!holds) abort();
}

static void use(struct tly_snapshot *snapshot) {
    uint8_t *raw;
    size_t raw_bytes;
    struct tly_snapshot *again;
    const char *why;
    demand(snapshot_broken_law(snapshot) == NULL);
    for (int fold = 0; fold < 2; fold++) {
        struct tly_rollup rollup;
        if (tly_rollup_make(snapshot, fold, TLY_SORT_BYTES, &rollup) != 0) continue;
        demand(memcmp(&rollup.rows[0].inclusive, &snapshot->totals.sum, sizeof snapshot->totals.sum) == 0);
        tly_rollup_free(&rollup);
    }
    if (tly_record_pack(snapshot, &raw, &raw_bytes) == 0) {
        demand(tly_record_unpack(raw, raw_bytes, &again, &why) == 0);
        demand(snapshot_difference(snapshot, again) == NULL);
        tly_snapshot_free(again);
        free(raw);
    }
    tly_snapshot_free(snapshot);
}

static void as_region(const uint8_t *data, size_t bytes) {
    struct tly_view view;
    struct tly_snapshot *snapshot;
    char error[256];
    void *copy = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!copy) return;
    memcpy(copy, data, bytes);
    if (bytes >= sizeof(struct tly_region))
        ((struct tly_region *)copy)->epoch &= ~1u; /* no waiting for a clear to end */
    if (tly_view_over(copy, bytes, &view, NULL) == 0 &&
        tly_snapshot_from_view(&view, &snapshot, error, sizeof error) == 0)
        use(snapshot);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct tly_snapshot *snapshot;
    char error[512];
    const char *why;
    if (tly_recording_parse("fuzz", data, bytes, &snapshot, error, sizeof error) == 0) use(snapshot);
    if (tly_record_unpack(data, bytes, &snapshot, &why) == 0) use(snapshot);
    as_region(data, bytes);
    return 0;
}
