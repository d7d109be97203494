/*
 * stopwatch.h - what the benchmark programs share: a clock, a cheap random number, numbers from the command line, and
 * threads that begin together.
 */
#ifndef BENCH_STOPWATCH_H
#define BENCH_STOPWATCH_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Keeps the compiler from moving memory accesses across, or from removing what is around it. */
#define BENCH_BARRIER() __asm__ volatile("" ::: "memory")

static inline double bench_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline uint32_t bench_random(uint32_t *state) { /* xorshift32; the state must not be 0 */
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

/* Argument `index` as a number of 0 .. max; a program that gets something else says so and ends. */
static inline long bench_number(int argc, char **argv, int index, const char *what, long max) {
    char *end = NULL;
    errno = 0;
    long value = index < argc ? strtol(argv[index], &end, 10) : -1;
    if (index < argc && errno == 0 && end != argv[index] && *end == '\0' && value >= 0 && value <= max) return value;
    fprintf(stderr, "%s: argument %d must be the %s, 0 to %ld\n", argv[0], index, what, max);
    exit(2);
}

static inline void bench_die(const char *what, int error) {
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    exit(1);
}

static int bench_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static inline double bench_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, bench_compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

#define BENCH_THREADS_MAX 256

/* Runs `body` on `threads` threads at once, each with its entry of `arguments`. One thread: on the caller's own, because
 * the C library has short cuts for programs that never made a second. */
static inline void bench_together(long threads, void *(*body)(void *), void *arguments, size_t argument_bytes) {
    pthread_t thread[BENCH_THREADS_MAX];
    if (threads == 1) {
        body(arguments);
        return;
    }
    for (long i = 0; i < threads; i++) {
        int error = pthread_create(&thread[i], NULL, body, (char *)arguments + (size_t)i * argument_bytes);
        if (error) bench_die("pthread_create", error);
    }
    for (long i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
}

#endif
