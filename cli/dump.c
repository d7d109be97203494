/* dump.c - `tally dump`: a recording of a running process. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "collector.h"
#include "command.h"
#include "live.h"
#include "offline/rollup.h"

static const char usage[] =
    "Usage: tally dump [-o FILE] PID\n"
    "\n"
    "Writes what process PID owns now to FILE, for 'tally report'. The process is not stopped, and goes on.\n"
    "\n"
    "  -o, --output=FILE    where to; %p, %n and %h are put in as 'tally run' does (%n.%p.live.tally)\n"
    "  -h, --help           this text\n";

/* The process's own name for itself, and its host. */
static void read_facts(const struct tly_live *live, char *program, char *host, size_t bytes) {
    struct tly_view view;
    program[0] = host[0] = 0;
    if (tly_view_open(live->path, &view, NULL) == 0) {
        const struct tly_text *name = &view.region->program, *where = &view.region->host;
        const char *a = tly_view_name(&view, name->offset, name->bytes),
                   *b = tly_view_name(&view, where->offset, where->bytes);
        snprintf(program, bytes, "%.*s", a ? (int)name->bytes : 0, a ? a : "");
        snprintf(host, bytes, "%.*s", b ? (int)where->bytes : 0, b ? b : "");
        tly_view_close(&view);
    }
    if (!program[0]) snprintf(program, bytes, "program");
}

static int dump(uint32_t pid, const char *pattern) {
    struct tly_live live;
    struct tly_snapshot *snapshot = NULL;
    char error[PATH_MAX + 512], program[256], host[256], path[PATH_MAX], size[TLY_NUMBER_BYTES];
    int result = tly_live_find(pid, &live, error, sizeof error);
    if (result == 0) {
        read_facts(&live, program, host, sizeof program);
        const struct tly_output_facts facts = {pid, program, host};
        result = tly_output_name(path, sizeof path, ".", pattern, &facts);
        if (result != 0) snprintf(error, sizeof error, "%s: %s", pattern, strerror(-result));
    }
    if (result == 0) result = tly_collect_region(live.path, path, NULL, &snapshot, error, sizeof error);
    if (result == -EAGAIN)
        tly_complain("dump", "process %u: %s; begin with 'tally start %u'", pid, error, pid);
    else if (result != 0)
        tly_complain("dump", "%s", error);
    if (result != 0) return 1;
    const char *shown = strncmp(path, "./", 2) == 0 ? path + 2 : path;
    fprintf(stderr, "tally: process %u owns %s now; see it with: tally report %s\n", pid,
            tly_number_size(size, sizeof size, tly_live_bytes(&snapshot->totals.sum)), shown);
    tly_snapshot_free(snapshot);
    return 0;
}

int tly_cmd_dump(int argc, char **argv) {
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    const char *pattern = "%n.%p.live.tally";
    char name[] = "tally dump";
    argv[0] = name; /* as getopt names it in complaints */
    optind = 0;
    for (int letter; (letter = getopt_long(argc, argv, "o:h", options, NULL)) != -1;) {
        switch (letter) {
        case 'o': pattern = optarg; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs("Try 'tally dump --help'.\n", stderr); return TLY_EXIT_USAGE;
        }
    }
    if (optind + 1 != argc) return tly_misused("dump", TLY_EXIT_USAGE, "which process? Give one PID");
    uint32_t pid = tly_live_pid(argv[optind]);
    if (!pid) return tly_misused("dump", TLY_EXIT_USAGE, "'%s' is not a process id", argv[optind]);
    return dump(pid, pattern);
}
