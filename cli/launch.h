/*
 * launch.h - runs a program as if its caller had run it: descriptors, signals, job control and its end are its own.
 */
#ifndef TLY_LAUNCH_H
#define TLY_LAUNCH_H

#include <stdint.h>
#include <sys/types.h>

#include "collector.h"

struct tly_launch {
    pid_t pid;
    uint64_t begun_ns; /* CLOCK_MONOTONIC */
    int exec_error;    /* errno of a failed exec; 0: the program was started */
};

/* Forks, sets the variables "NAME=value" (NULL-terminated list) and TALLY_RUN_PID in the child, and executes argv there
 * with the signal mask and dispositions this process was started with. From now on signals sent to this process are
 * passed on to the child; those that a terminal sends to both are not. 0 or -errno of fork. */
int tly_launch(char **argv, const char *const *environment, struct tly_launch *out);

/* Waits for the child's end for at most `timeout_ms` (-1: for ever), taking part in its stops and continuations.
 * Returns 1 and how it ended, or 0. */
int tly_launch_wait(struct tly_launch *launch, int timeout_ms, struct tly_ending *out);

/* Back to the signal dispositions this process was started with. */
void tly_launch_release(void);

/* Ends this process as the child ended: returns the exit status, or dies of the same signal without a core file. */
int tly_launch_end_alike(const struct tly_ending *ending);

#endif
