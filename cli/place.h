/*
 * place.h - where regions are: private directories `tally-<uid>-<random>` in a few places, each region in a file
 * `<pid>-<random>.region`.
 *
 * Only what belongs to the calling user alone is looked at: a directory of that name, not a link, owned by the user,
 * closed to everybody else. Nothing else is ever read, changed or removed.
 */
#ifndef TLY_PLACE_H
#define TLY_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes a new directory and locks it: whoever holds the lock collects from it. 0 and its path and the descriptor of the
 * lock; or -errno of the last place tried. */
int tly_place_make(char *path, size_t bytes, int *lock);

/* Takes the lock of an existing one. -EWOULDBLOCK: somebody else collects there. */
int tly_place_lock(const char *path, int *lock);

/* Removes it if it is empty and has been for a while (`now`: or at all), and gives the lock back. */
void tly_place_leave(const char *path, int lock, bool now);

/* Calls `visit` with the path of each directory of ours. */
void tly_place_each(void (*visit)(const char *path, void *context), void *context);

/* What the header of a region says about whose it is. */
struct tly_owner {
    char name[NAME_MAX + 1]; /* of the file */
    uint32_t pid;
    uint64_t pid_namespace, start_ticks;
    uint64_t loaded_ns, started_ns;
    uint32_t flags, state;
    bool readable; /* false: not a whole region (yet); only name and pid (from the name) are set */
};

/* The regions in a directory, in fresh memory (free it), by pid and age, oldest first. */
int tly_place_regions(const char *path, struct tly_owner **out, size_t *count);

/* Reads the header again: of a process that has ended in between, it is now final. */
void tly_place_reread(const char *path, struct tly_owner *owner);

/* Beside a region that is recorded more than once: the file that is its recording. */
void tly_place_note(const char *region, const char *recording);
/* 0 and the file; or -ENOENT: there is no note. */
int tly_place_noted(const char *region, char *out, size_t bytes);
/* Removes a region and its note. */
void tly_place_remove(const char *region);

/* Are both of one process? Then the older one has ended by exec. */
bool tly_owner_same_process(const struct tly_owner *a, const struct tly_owner *b);

#endif
