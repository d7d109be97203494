/*
 * collector.h - makes recordings of regions, from outside the processes.
 *
 * One thread. No descriptor is kept open from one call to the next, however many processes there are.
 */
#ifndef TLY_COLLECTOR_H
#define TLY_COLLECTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offline/snapshot.h"
#include "output.h"
#include "place.h"

/* What is known of a process's end, beyond its region. */
struct tly_ending {
    enum tly_end_kind kind;
    int value;
    bool core_dumped;
    uint64_t ended_ns, wall_ns, user_ns, system_ns, max_rss_bytes; /* 0: unknown */
};

/* A recording that was made, as the summary needs it. */
struct tly_recorded {
    char *path, *program;
    uint32_t pid;
    enum tly_end_kind end_kind;
    int end_value;
    uint64_t wall_ns, live_bytes, live_blocks, peak_bytes, allocated_bytes, allocated_blocks;
    uint64_t top_bytes[3]; /* live bytes of the nodes that own most themselves; of allocated bytes if nothing lives */
    char *top_label[3];    /* NULL: no more */
    bool main, by_allocated;
};

struct tly_collector {
    const char *command;      /* for messages */
    char directory[PATH_MAX]; /* of the regions */
    char start_directory[PATH_MAX], pattern[PATH_MAX + 16];
    char main_program[256];
    uint32_t main_pid; /* 0: none */
    bool descendants;  /* all processes there are descendants of the caller */
    bool reserved;     /* the main program's file name is kept for it */
    struct tly_output_names names;
    struct tly_recorded *recorded;
    size_t recorded_count;
    bool never_started;           /* the main program was ready to be accounted, and nobody began */
    size_t failures;              /* recordings that could not be made; their regions are still there */
    size_t waiting;               /* regions seen in the last look whose processes were running */
    char (*failed)[NAME_MAX + 1]; /* regions not to try again */
    size_t failed_count;
};

/* Records and removes what ended since the last look. */
void tly_collector_look(struct tly_collector *collector);

/* The last look: the main process has ended like `ending`; processes that still run get a recording that says so, and
 * keep their region. */
void tly_collector_finish(struct tly_collector *collector, const struct tly_ending *ending);

void tly_collector_free(struct tly_collector *collector);

/* Makes the recording `path` of the region file `region`; `ending` may be NULL (running). 0, -EAGAIN (the region holds
 * nothing: never started), or -errno with the reason in `error`. The snapshot is passed on if `out` is not NULL. */
int tly_collect_region(const char *region, const char *path, const struct tly_ending *ending, struct tly_snapshot **out,
                       char *error, size_t error_bytes);

#endif
