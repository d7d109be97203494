/*
 * snapshot_laws.h - what snapshot.h promises of every snapshot, whatever it was made of.
 */
#ifndef TLY_SNAPSHOT_LAWS_H
#define TLY_SNAPSHOT_LAWS_H

#include "offline/snapshot.h"

/* NULL, or the law that is broken. Also reads every byte the snapshot points to, for sanitizers to see. */
const char *snapshot_broken_law(const struct tly_snapshot *snapshot);

/* NULL, or the first part in which two snapshots differ. */
const char *snapshot_difference(const struct tly_snapshot *a, const struct tly_snapshot *b);

#endif
