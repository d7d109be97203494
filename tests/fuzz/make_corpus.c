/* make_corpus.c - well-formed inputs to begin from: DIRECTORY is the argument. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "offline/record.h"
#include "offline/recording.h"
#include "region_maker.h"

static struct region_maker *with_callers(void) {
    struct region_maker *maker = region_maker_reference();
    uint32_t first = region_maker_module(maker, "/usr/lib/lib.so", "abcdefgh", 8);
    uint32_t again = region_maker_module(maker, "/usr/lib/lib.so", "abcdefgh", 8);
    uint32_t thread = region_maker_node(maker, 0, region_maker_site(maker, TLY_SITE_THREAD, "worker", 6, 0, 0));
    uint32_t modules[] = {first, again, TLY_MODULE_UNKNOWN};
    for (int i = 0; i < 3; i++) {
        uint32_t node =
            region_maker_node(maker, thread, region_maker_site(maker, TLY_SITE_MODULE, "", 0, 0, modules[i]));
        region_maker_bill(maker, 1, region_maker_node(maker, node, region_maker_caller(maker, modules[i], 0x1234)), 10,
                          1, 0, 0);
    }
    region_maker_bill(maker, 2, region_maker_node(maker, TLY_NODE_PAUSED, 0), 5, 1, 0, 0);
    return maker;
}

int main(int argc, char **argv) {
    char error[512] = "";
    uint8_t *raw;
    size_t bytes;
    if (argc != 2 || chdir(argv[1]) != 0) return 2;
    struct region_maker *makers[] = {region_maker_new(), region_maker_reference(), with_callers()};
    static const char *const names[][3] = {{"empty.region", "empty.recording", "empty.message"},
                                           {"reference.region", "reference.recording", "reference.message"},
                                           {"callers.region", "callers.recording", "callers.message"}};
    for (int i = 0; i < 3; i++) {
        struct tly_snapshot *snapshot;
        region_maker_write(makers[i], names[i][0]);
        region_maker_free(makers[i]);
        if (tly_snapshot_load(names[i][0], &snapshot, error, sizeof error) != 0) abort();
        const struct tly_snapshot *both[] = {snapshot, snapshot};
        if (tly_recording_write(names[i][1], both, 2, error, sizeof error) != 0) abort();
        if (tly_record_pack(snapshot, &raw, &bytes) != 0) abort();
        FILE *file = fopen(names[i][2], "wb");
        if (!file || fwrite(raw, 1, bytes, file) != bytes || fclose(file) != 0) abort();
        free(raw);
        tly_snapshot_free(snapshot);
    }
    return 0;
}
