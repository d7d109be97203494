/*
 * live.h - the region of a running process, or why there is none.
 */
#ifndef TLY_LIVE_H
#define TLY_LIVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "place.h"

struct tly_live {
    char path[PATH_MAX + NAME_MAX + 2]; /* of the region file */
    struct tly_owner owner;
};

/* Reads a process id: 0 if it is none. */
uint32_t tly_live_pid(const char *text);

/* The newest region of process `pid` (as we see it). 0; -ESRCH: there is no such process; -EPERM: another user's;
 * -ENOENT: it is not accounted, or not where one can reach it. `error` then says so in words, and what to do. */
int tly_live_find(uint32_t pid, struct tly_live *out, char *error, size_t error_bytes);

#endif
