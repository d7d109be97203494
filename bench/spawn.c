/*
 * spawn.c - fork and exec from a process whose account is large: 10,000 path nodes and 100,000 live blocks.
 *
 *   spawn follow|leave COUNT NODES BLOCKS
 *
 * Prints microseconds per fork, exec of /bin/true and wait, the median of COUNT, and microseconds of processor time that
 * parent and child together take for one, on average: a shared machine disturbs these less. `follow` hands the environment on, so
 * that an interposer gets into the child too; `leave` takes LD_PRELOAD out of it, which leaves the cost of the fork.
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <tally/tally.h>
#include <unistd.h>

#include "stopwatch.h"

extern char **environ;

static void **newest; /* of the blocks, which hang on one chain and live until the process ends */

/* Makes the blocks, spread over the nodes. */
static void fill(long nodes, long blocks) {
    char outer[32], inner[32];
    long per_node = nodes ? (blocks + nodes - 1) / nodes : 0;
    for (long i = 0, made = 0; i < nodes; i++) {
        snprintf(outer, sizeof outer, "outer %ld", i / 100);
        snprintf(inner, sizeof inner, "inner %ld", i % 100);
        TALLY_TAG_COPY(outer);
        TALLY_TAG_COPY(inner);
        for (long k = 0; k < per_node && made < blocks; k++, made++) {
            void **block = malloc(16 + (size_t)(made % 113));
            if (!block) bench_die("malloc", ENOMEM);
            *block = newest;
            newest = block;
        }
    }
}

static double processor_us(void) {
    double us = 0;
    for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
        struct rusage usage;
        if (getrusage(who, &usage) != 0) bench_die("getrusage", errno);
        us += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6;
        us += (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    return us;
}

static double spawn_once(char **environment) {
    char *arguments[] = {(char *)"/bin/true", NULL};
    double start = bench_now_ns();
    pid_t child = fork();
    if (child < 0) bench_die("fork", errno);
    if (child == 0) {
        execve(arguments[0], arguments, environment);
        _exit(127);
    }
    int status;
    if (waitpid(child, &status, 0) != child) bench_die("waitpid", errno);
    double ns = bench_now_ns() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "spawn: /bin/true ended with wait status %#x\n", (unsigned)status);
        exit(1);
    }
    return ns;
}

int main(int argc, char **argv) {
    if (argc != 5 || (strcmp(argv[1], "follow") != 0 && strcmp(argv[1], "leave") != 0)) {
        fprintf(stderr, "usage: spawn follow|leave COUNT NODES BLOCKS\n");
        return 2;
    }
    long count = bench_number(argc, argv, 2, "number of children", 1000000);
    long nodes = bench_number(argc, argv, 3, "number of nodes", 1000000);
    long blocks = bench_number(argc, argv, 4, "number of live blocks", 100000000);
    if (count < 1) bench_die("spawn", EINVAL);

    size_t variables = 0, kept = 0;
    while (environ[variables])
        variables++;
    char **environment = calloc(variables + 1, sizeof *environment);
    double *ns = calloc((size_t)count, sizeof *ns);
    if (!environment || !ns) bench_die("calloc", ENOMEM);
    for (size_t i = 0; i < variables; i++)
        if (strcmp(argv[1], "follow") == 0 || strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
            environment[kept++] = environ[i];

    fill(nodes, blocks);
    spawn_once(environment);
    double before_us = processor_us();
    for (long i = 0; i < count; i++)
        ns[i] = spawn_once(environment);
    double processor = (processor_us() - before_us) / (double)count;
    printf("%.2f %.2f\n", bench_median(ns, (size_t)count) / 1e3, processor);
    free(environment);
    free(ns);
    return 0;
}
