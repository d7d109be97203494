#!/bin/sh
# outside.sh - threads.c with its snapshots taken from outside, out of the region file of the running process.
set -eu
. "$(dirname "$0")/../preload/lib.sh"
cd "$scratch"
mkdir -m 700 place
TALLY_RUN_DIR=$scratch/place LD_PRELOAD=$TALLY_LIB "$PROGRAMS/threads" 1000 outside "$PROGRAMS/read_regions" ||
    fail "status $?"
"$SUMS" place/*.region >sums
eval "$(cat sums)"
[ "$allocated_blocks" -gt 40000 ] || fail "only $allocated_blocks allocations in the region"
same_number "missed frees and untracked allocations" $((missed_frees + untracked_allocs)) 0
