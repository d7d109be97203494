/*
 * scope.c - what a tag scope costs.
 *
 *   scope literal|dynamic THREADS ITERATIONS
 *   scope count literal|dynamic|none ITERATIONS    runs the loop once, for counting instructions
 *
 * Prints nanoseconds per push and pop: the median over slices of (a loop with the scope - the same loop without it), of
 * the slowest thread. Slices are short, so that on a shared machine most of them run undisturbed. The scopes lie inside another one, and the dynamic names alternate between sixteen buffers.
 * Whether tags are active is decided outside: without the library, with it linked or preloaded.
 */
#include <tally/tally.h>

#include "stopwatch.h"

#define SLICE 20000
#define NAMES 16

struct worker {
    long iterations;
    int dynamic;
    pthread_barrier_t *barrier;
    double ns;
};

static char names[NAMES][32];

static __attribute__((noinline)) void loop_none(long iterations) {
    for (long i = 0; i < iterations; i++)
        BENCH_BARRIER();
}
static __attribute__((noinline)) void loop_literal(long iterations) {
    for (long i = 0; i < iterations; i++) {
        TALLY_TAG("literal");
        BENCH_BARRIER();
    }
}
static __attribute__((noinline)) void loop_copy(long iterations) {
    for (long i = 0; i < iterations; i++) {
        TALLY_TAG_COPY(names[i % NAMES]);
        BENCH_BARRIER();
    }
}
/* The names' loop has an address to compute. */
static __attribute__((noinline)) void loop_names(long iterations) {
    for (long i = 0; i < iterations; i++) {
        const char *name = names[i % NAMES];
        __asm__ volatile("" ::"r"(name) : "memory");
    }
}

static double timed(void (*loop)(long), long iterations) {
    double start = bench_now_ns();
    loop(iterations);
    return bench_now_ns() - start;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    long slices = worker->iterations / SLICE + 1;
    double *ns = calloc((size_t)slices, sizeof *ns);
    if (!ns) bench_die("calloc", ENOMEM);
    TALLY_TAG("outer");
    if (worker->barrier) pthread_barrier_wait(worker->barrier);
    for (long slice = 0; slice < slices; slice++) {
        double with = timed(worker->dynamic ? loop_copy : loop_literal, SLICE);
        double without = timed(worker->dynamic ? loop_names : loop_none, SLICE);
        ns[slice] = (with - without) / SLICE;
    }
    worker->ns = bench_median(ns, (size_t)slices);
    free(ns);
    return NULL;
}

int main(int argc, char **argv) {
    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i], "dynamic name %d", i * 7);
    if (argc == 4 && strcmp(argv[1], "count") == 0) {
        long iterations = bench_number(argc, argv, 3, "number of iterations", 1000000000);
        TALLY_TAG("outer");
        (strcmp(argv[2], "literal") == 0   ? loop_literal
         : strcmp(argv[2], "dynamic") == 0 ? loop_copy
                                           : loop_none)(iterations);
        return 0;
    }
    if (argc != 4 || (strcmp(argv[1], "literal") != 0 && strcmp(argv[1], "dynamic") != 0)) {
        fprintf(stderr, "usage: scope literal|dynamic THREADS ITERATIONS\n");
        return 2;
    }
    long threads = bench_number(argc, argv, 2, "number of threads", BENCH_THREADS_MAX);
    long iterations = bench_number(argc, argv, 3, "number of iterations", 1000000000);
    if (threads < 1 || iterations < 1) bench_die("scope", EINVAL);

    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    struct worker worker[BENCH_THREADS_MAX];
    for (long i = 0; i < threads; i++)
        worker[i] = (struct worker){iterations, strcmp(argv[1], "dynamic") == 0, threads > 1 ? &barrier : NULL, 0};
    bench_together(threads, work, worker, sizeof *worker);
    double slowest = worker[0].ns;
    for (long i = 1; i < threads; i++)
        if (worker[i].ns > slowest) slowest = worker[i].ns;
    printf("%.4f\n", slowest);
    return 0;
}
