#!/bin/sh
# odd_places.sh - allocations before main and after it, against valgrind's count. Usage: odd_places.sh [quick|thread]
set -eu
. "$(dirname "$0")/lib.sh"
need valgrind
cd "$scratch"
bare=0 with=0
"$PROGRAMS/odd_places" "$@" >bare.out || bare=$?
preloaded region "$PROGRAMS/odd_places" "$@" >with.out 2>with.err || with=$?
same_number "exit status" $with $bare
cmp bare.out with.out
[ ! -s with.err ] || fail "stderr: $(cat with.err)"
file=$(region region)
"$SUMS" "$file" >sums
eval "$(cat sums)"
valgrind --run-libc-freeres=no --run-cxx-freeres=no --log-file=valgrind.log "$PROGRAMS/odd_places" "$@" >/dev/null || :
set -- $(sed -n 's/.*total heap usage: \([0-9,]*\) allocs, \([0-9,]*\) frees, \([0-9,]*\) bytes.*/\1 \2 \3/p' valgrind.log |
    tr -d ,)
[ $# -eq 3 ] || fail "no heap summary of valgrind: $(cat valgrind.log)"
echo "tally: $allocated_blocks $freed_blocks $allocated_bytes; valgrind: $*"
same_number allocations "$allocated_blocks" "$1"
same_number frees "$freed_blocks" "$2"
# The library is one more module with thread-local storage, and each thread has a vector with 16 bytes for each of those.
# (libc keeps a dead thread's for the next: only one is ever made here.)
same_number "bytes allocated" "$allocated_bytes" $(($3 + 16))
same_number "unmatched and missed frees" $((unmatched_frees + missed_frees)) 0
