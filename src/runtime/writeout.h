/* writeout.h - the account as a file: a compact copy of the region that the command line reads like a recording. */
#ifndef TLY_WRITEOUT_H
#define TLY_WRITEOUT_H

#include <stddef.h>

/* Writes it to a temporary name beside `path` and renames. 0 or -errno. Safe while other threads go on allocating:
 * the copy is one picture, without negative balances. */
int tly_writeout(const char *path);

/* Replaces %p, %n, %h and %% of the `output` option; relative paths are taken from the directory of the start. */
void tly_writeout_path(const char *pattern, char *path, size_t bytes);

#endif
