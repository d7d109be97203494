/*
 * heap.c - how much memory a heap of small objects takes.
 *
 *   heap MEGABYTES SIZE_MIN SIZE_MAX
 *
 * Makes blocks of SIZE_MIN .. SIZE_MAX bytes, each size equally likely, until MEGABYTES (of 2^20 bytes) are requested,
 * below 64 tags, writes all of them, and prints the process's peak resident set in KiB. The blocks hang on one chain
 * through their first word, so the program has no table of its own.
 */
#include <tally/tally.h>

#include "stopwatch.h"

static void **last; /* the chain's newest block */

static long peak_resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) bench_die("/proc/self/status", errno);
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld kB", &kib) == 1) break;
    fclose(status);
    if (kib < 0) bench_die("/proc/self/status has no VmHWM", ENOTSUP);
    return kib;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: heap MEGABYTES SIZE_MIN SIZE_MAX\n");
        return 2;
    }
    uint64_t wanted_bytes = (uint64_t)bench_number(argc, argv, 1, "number of megabytes", 1 << 20) << 20;
    long size_min = bench_number(argc, argv, 2, "smallest size", 1 << 20);
    long size_max = bench_number(argc, argv, 3, "largest size", 1 << 20);
    if (size_min < (long)sizeof(void *) || size_max < size_min) bench_die("heap", EINVAL);

    uint32_t state = 1;
    char name[16];
    for (uint64_t made_bytes = 0, blocks = 0; made_bytes < wanted_bytes; blocks++) {
        size_t size = (size_t)size_min + bench_random(&state) % (uint32_t)(size_max - size_min + 1);
        snprintf(name, sizeof name, "kind %u", (unsigned)(blocks % 64));
        TALLY_TAG_COPY(name);
        void **block = malloc(size);
        if (!block) bench_die("malloc", ENOMEM);
        memset(block, 1, size);
        *block = last;
        last = block;
        made_bytes += size;
    }
    BENCH_BARRIER();
    printf("%ld\n", peak_resident_kib());
    return last == NULL && wanted_bytes > 0;
}
