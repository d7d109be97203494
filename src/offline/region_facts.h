/*
 * region_facts.h - the part of a snapshot that is not the tree: process, totals, counters, out of a region's header.
 */
#ifndef TLY_REGION_FACTS_H
#define TLY_REGION_FACTS_H

#include "offline/snapshot.h"

/* Fills process, totals (all but the sum), counters, exact. 0 or -ENOMEM. */
int tly_region_facts(const struct tly_view *view, struct tly_snapshot *snapshot);

/* Is the process that writes this region still there? 1 yes, 0 no, -1: cannot be told (another PID namespace or
 * machine, or /proc is not there). */
int tly_region_process_lives(const struct tly_region *region);

#endif
