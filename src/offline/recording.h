/*
 * recording.h - `.tally` files: snapshots with their symbols, compressed, each record with a checksum.
 *
 * docs/formats.md specifies the format. A recording is written to a temporary name beside its own and renamed, so that
 * nobody ever sees half of one; a file that was cut off all the same loads up to its last whole snapshot.
 */
#ifndef TLY_RECORDING_H
#define TLY_RECORDING_H

#include <stddef.h>

#include "offline/snapshot.h"

#define TLY_RECORDING_MAGIC "TALLYREC"
#define TLY_RECORDING_VERSION 1u

/* Writes `count` snapshots, oldest first, to `path`. A regular file there is replaced; what is no regular file (a pipe,
 * /dev/stdout) is written to directly. Symbolise first (symbolise.h). 0 or -errno; then `error` (may be NULL) says what
 * and where, in words, and what was at `path` is untouched. */
int tly_recording_write(const char *path, const struct tly_snapshot *const *snapshots, size_t count, char *error,
                        size_t error_bytes);

/* Loads the last whole snapshot of a recording, or takes one of a raw region: the file's first bytes tell which.
 * snapshot->note says so when the file is cut off or damaged further on. The caller frees it. 0; -errno of the system;
 * -EBADMSG: neither a recording nor a region, or damaged. `error` names the file, the place, and what to do. */
int tly_snapshot_load(const char *path, struct tly_snapshot **out, char *error, size_t error_bytes);

/* The same for a recording in memory; `name` is used in messages. */
int tly_recording_parse(const char *name, const void *data, size_t bytes, struct tly_snapshot **out, char *error,
                        size_t error_bytes);

#endif
