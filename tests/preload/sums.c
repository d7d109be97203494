/*
 * sums.c - prints the figures of region files, one `name=value` a line (fit for a shell's eval), and checks what holds
 * for every account at rest: no negative balance, and the running total equals the sum over the nodes.
 * Usage: sums [--nodes] FILE... Status 1 if a file cannot be read or an account does not hold.
 */
#include <stdio.h>
#include <string.h>

#include "account_of.h"

static int print(const char *path) {
    struct account a;
    if (account_of(path, &a) != 0) return 1;
    const struct {
        const char *name;
        unsigned long long value;
    } rows[] = {
        {"pid", a.pid},
        {"forked_from", a.forked_from},
        {"flags", a.flags},
        {"state", a.state},
        {"allocated_blocks", a.allocated_blocks},
        {"allocated_bytes", a.allocated_bytes},
        {"freed_blocks", a.freed_blocks},
        {"freed_bytes", a.freed_bytes},
        {"live_blocks", a.live_blocks},
        {"live_bytes", a.live_bytes},
        {"inherited_blocks", a.inherited_blocks},
        {"inherited_bytes", a.inherited_bytes},
        {"paused_live_blocks", a.paused_live_blocks},
        {"unmatched_frees", a.unmatched_frees},
        {"untracked_allocs", a.untracked_allocs},
        {"missed_frees", a.missed_frees},
        {"pop_errors", a.pop_errors},
        {"off_radar_allocs", a.off_radar_allocs},
        {"spills", a.spills},
        {"nodes", a.nodes},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%s=%llu\n", rows[i].name, rows[i].value);
    if (a.negative_nodes != 0) {
        fprintf(stderr, "%s: %u nodes with a negative balance\n", path, a.negative_nodes);
        return 1;
    }
    if (a.total_bytes < 0 || (unsigned long long)a.total_bytes != a.live_bytes) {
        fprintf(stderr, "%s: the running total is %lld, the sum over the nodes %llu bytes\n", path,
                (long long)a.total_bytes, (unsigned long long)a.live_bytes);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    int status = 0, first = 1;
    int nodes = argc > 1 && strcmp(argv[1], "--nodes") == 0;
    if (nodes) first = 2;
    if (first >= argc) {
        fprintf(stderr, "usage: sums [--nodes] FILE...\n");
        return 2;
    }
    for (int i = first; i < argc; i++)
        status |= nodes ? account_print_nodes(argv[i]) != 0 : print(argv[i]);
    return status;
}
