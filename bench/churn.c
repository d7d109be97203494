/*
 * churn.c - malloc and free as fast as they go: the worst case for whatever looks at every call.
 *
 *   churn THREADS LIVE PAIRS [SIZE_MIN SIZE_MAX]
 *
 * Each thread keeps LIVE blocks of SIZE_MIN .. SIZE_MAX bytes (16 .. 512 unless said otherwise) and PAIRS times frees
 * one at random and makes another in its place; the first byte of each is written. Prints nanoseconds per free and
 * malloc of the slower thread: the median over slices of a few thousand pairs, so that on a shared machine the slices in
 * which the thread was off its processor do not count. The filling is not timed. Everything is done under one tag.
 */
#include <tally/tally.h>

#include "stopwatch.h"

#define SLICE_PAIRS 2000

struct worker {
    long live, pairs;
    uint32_t size_min, size_span, seed;
    pthread_barrier_t *barrier;
    double ns;
};

/* A random number of 32 bits, brought to 0 .. span - 1. */
static uint32_t below(uint32_t random, uint32_t span) { return (uint32_t)((uint64_t)random * span >> 32); }

static char *make(struct worker *worker, uint32_t random) {
    char *block = malloc(worker->size_min + below(random * 2654435761u, worker->size_span));
    if (!block) bench_die("malloc", ENOMEM);
    *block = 1;
    return block;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    uint32_t state = worker->seed;
    TALLY_TAG("churn");
    char *volatile *blocks = malloc((size_t)worker->live * sizeof *blocks);
    long slices = worker->pairs / SLICE_PAIRS;
    double *ns = calloc((size_t)slices + 1, sizeof *ns);
    if (!blocks || !ns) bench_die("malloc", ENOMEM);
    for (long i = 0; i < worker->live; i++)
        blocks[i] = make(worker, bench_random(&state));
    if (worker->barrier) pthread_barrier_wait(worker->barrier);
    for (long slice = 0; slice < slices; slice++) {
        double start = bench_now_ns();
        for (long i = 0; i < SLICE_PAIRS; i++) {
            uint32_t random = bench_random(&state);
            uint32_t at = below(random, (uint32_t)worker->live);
            free(blocks[at]);
            blocks[at] = make(worker, random);
        }
        ns[slice] = (bench_now_ns() - start) / SLICE_PAIRS;
    }
    worker->ns = slices ? bench_median(ns, (size_t)slices) : 0;
    for (long i = 0; i < worker->live; i++)
        free(blocks[i]);
    free((void *)blocks);
    free(ns);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 6) {
        fprintf(stderr, "usage: churn THREADS LIVE PAIRS [SIZE_MIN SIZE_MAX]\n");
        return 2;
    }
    long threads = bench_number(argc, argv, 1, "number of threads", BENCH_THREADS_MAX);
    long live = bench_number(argc, argv, 2, "number of live blocks", 100000000);
    long pairs = bench_number(argc, argv, 3, "number of pairs", 10000000000);
    long size_min = argc > 4 ? bench_number(argc, argv, 4, "smallest size", 1 << 20) : 16;
    long size_max = argc > 4 ? bench_number(argc, argv, 5, "largest size", 1 << 20) : 512;
    if (threads < 1 || live < 1 || size_min < 1 || size_max < size_min) bench_die("churn", EINVAL);

    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    struct worker worker[BENCH_THREADS_MAX];
    for (long i = 0; i < threads; i++)
        worker[i] = (struct worker){live,
                                    pairs,
                                    (uint32_t)size_min,
                                    (uint32_t)(size_max - size_min + 1),
                                    (uint32_t)i * 7919 + 1,
                                    threads > 1 ? &barrier : NULL,
                                    0};
    bench_together(threads, work, worker, sizeof *worker);
    double slowest = worker[0].ns;
    for (long i = 1; i < threads; i++)
        if (worker[i].ns > slowest) slowest = worker[i].ns;
    printf("%.4f\n", slowest);
    return 0;
}
