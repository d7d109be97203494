/* facts.h - what the header of a region says about the process, and where regions are kept. */
#ifndef TLY_FACTS_H
#define TLY_FACTS_H

#include <limits.h>
#include <stdbool.h>

#include "base/options.h"
#include "region/region.h"

/* A number that no other process, thread or call has. */
uint64_t tly_facts_random(void);

/* The private directory for regions. */
struct tly_rundir {
    char path[256];        /* "" until one is made or given */
    char region_path[512]; /* of this process; "": in anonymous memory */
    bool given;            /* by a collector (TALLY_RUN_DIR) */
};

/* From the environment, at the start. */
void tly_rundir_find(struct tly_rundir *dir);
/* Makes the directory if none was given, and a name in it that no other process can have. 0 or -errno. */
int tly_rundir_name_region(struct tly_rundir *dir);
/* Removes the process's region, and the directory if that leaves it empty and we made it. */
void tly_rundir_remove(struct tly_rundir *dir);

void tly_facts_fill(struct tly_region *region, const struct tly_options *options, const struct tly_rundir *dir,
                    bool in_file, bool preloaded);

#endif
