/*
 * snapshot.c - a picture of a large account, and how long it holds up a thread that allocates meanwhile.
 *
 *   snapshot NODES THREADS MILLISECONDS
 *
 * THREADS threads make NODES path nodes between them, with a live block in each, and wait. Then one of them allocates
 * and frees in its nodes without a break, for MILLISECONDS on its own and for MILLISECONDS while the main thread takes
 * snapshots (tally_tree_get) one after the other. Prints
 *     nodes, median ms of a snapshot, the same in processor time, longest us of a step of the allocating thread during
 *     snapshots, and on its own
 * A step is a free and a malloc. Its length is the time on the clock if the thread gave up the processor in it (it
 * waited for something), else the thread's processor time: what other programs do on a shared machine is no stall. At
 * the end the picture must be exact, or the program fails.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/resource.h>
#include <tally/tally.h>
#include <unistd.h>

#include "stopwatch.h"

#define BLOCK_BYTES 40
#define SNAPSHOTS_MAX 100000
#define LOOK_NS 1000 /* a step is looked into from this length on */

static long nodes_per_thread;
static pthread_barrier_t filled, finished;
static atomic_int phase; /* 0 fill, 1 allocate alone, 2 allocate during snapshots, 3 end */
static double longest_ns[4];

static long times_waited(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static double processor_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void allocate_in_all(long id, void **block) {
    char name[32];
    snprintf(name, sizeof name, "thread %ld", id);
    TALLY_TAG_COPY(name);
    for (long i = 0; i < nodes_per_thread; i++) {
        snprintf(name, sizeof name, "node %ld", i);
        TALLY_TAG_COPY(name);
        block[i] = malloc(BLOCK_BYTES);
        if (!block[i]) bench_die("malloc", ENOMEM);
    }
}

static void allocate_without_break(long id, void **block) {
    char name[32];
    snprintf(name, sizeof name, "thread %ld", id);
    TALLY_TAG_COPY(name);
    snprintf(name, sizeof name, "node %d", 0);
    TALLY_TAG_COPY(name);
    long waited = times_waited(), at = 0;
    int now_in;
    while ((now_in = atomic_load_explicit(&phase, memory_order_relaxed)) < 3) {
        double clock = bench_now_ns(), processor = processor_ns();
        free(block[at]);
        block[at] = malloc(BLOCK_BYTES);
        if (!block[at]) bench_die("malloc", ENOMEM);
        processor = processor_ns() - processor;
        clock = bench_now_ns() - clock;
        if (++at == nodes_per_thread) at = 0;
        if (clock <= LOOK_NS) continue;
        long waited_now = times_waited();
        double step = waited_now != waited ? clock : processor;
        if (step > longest_ns[now_in]) longest_ns[now_in] = step;
        waited = waited_now;
    }
}

static void *work(void *argument) {
    long id = (long)(intptr_t)argument;
    void **block = calloc((size_t)nodes_per_thread, sizeof *block);
    if (!block) bench_die("calloc", ENOMEM);
    allocate_in_all(id, block);
    pthread_barrier_wait(&filled);
    if (id == 0) allocate_without_break(id, block);
    pthread_barrier_wait(&finished);
    pthread_barrier_wait(&finished);
    for (long i = 0; i < nodes_per_thread; i++)
        free(block[i]);
    free(block);
    return NULL;
}

/* Every "thread N" subtree must hold its blocks, to the byte. */
static void check(long threads) {
    tally_tree *tree = tally_tree_get(TALLY_TREE_FULL);
    if (!tree) bench_die("tally_tree_get", errno);
    for (long id = 0; id < threads; id++) {
        char name[32];
        snprintf(name, sizeof name, "thread %ld", id);
        const char *path[] = {name};
        const tally_node *node = tally_tree_find(tree, path, 1);
        struct tally_node_info info = {.struct_bytes = sizeof info};
        uint64_t wanted = (uint64_t)nodes_per_thread * BLOCK_BYTES;
        if (!node || tally_node_get_info(node, &info) != 0 || info.bytes != wanted) {
            fprintf(stderr, "snapshot: %s holds %llu bytes instead of %llu\n", name, (unsigned long long)info.bytes,
                    (unsigned long long)wanted);
            exit(1);
        }
    }
    tally_tree_free(tree);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: snapshot NODES THREADS MILLISECONDS\n");
        return 2;
    }
    long nodes = bench_number(argc, argv, 1, "number of nodes", 10000000);
    long threads = bench_number(argc, argv, 2, "number of threads", BENCH_THREADS_MAX);
    long milliseconds = bench_number(argc, argv, 3, "milliseconds", 100000);
    if (nodes < threads || threads < 1 || milliseconds < 1) bench_die("snapshot", EINVAL);
    if (!tally_active()) {
        fprintf(stderr, "snapshot: nothing is accounted here; run it with the library preloaded\n");
        return 3;
    }
    nodes_per_thread = nodes / threads;
    pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&finished, NULL, (unsigned)threads + 1);
    atomic_store(&phase, 1);
    pthread_t thread[BENCH_THREADS_MAX];
    for (long i = 0; i < threads; i++) {
        int error = pthread_create(&thread[i], NULL, work, (void *)(intptr_t)i);
        if (error) bench_die("pthread_create", error);
    }
    pthread_barrier_wait(&filled);
    usleep((useconds_t)milliseconds * 1000);

    static double ms[SNAPSHOTS_MAX], processor_ms[SNAPSHOTS_MAX];
    size_t taken = 0;
    atomic_store(&phase, 2);
    for (double start = bench_now_ns(); bench_now_ns() - start < (double)milliseconds * 1e6 && taken < SNAPSHOTS_MAX;) {
        double before = bench_now_ns(), before_processor = processor_ns();
        tally_tree *tree = tally_tree_get(TALLY_TREE_FULL);
        processor_ms[taken] = (processor_ns() - before_processor) / 1e6;
        ms[taken++] = (bench_now_ns() - before) / 1e6;
        if (!tree) bench_die("tally_tree_get", errno);
        tally_tree_free(tree);
    }
    atomic_store(&phase, 3);
    pthread_barrier_wait(&finished);
    check(threads);
    struct tally_perf_stats stats = {.struct_bytes = sizeof stats};
    tally_perf_stats(&stats);
    pthread_barrier_wait(&finished);
    for (long i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("%llu %.3f %.3f %.1f %.1f\n", (unsigned long long)stats.nodes, bench_median(ms, taken),
           bench_median(processor_ms, taken), longest_ns[2] / 1e3, longest_ns[1] / 1e3);
    return 0;
}
