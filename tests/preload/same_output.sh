#!/bin/sh
# same_output.sh - a program that checks itself: the same output and status bare and under the library, nothing on stderr.
# Usage: same_output.sh PROGRAM ARGUMENT...
set -eu
. "$(dirname "$0")/lib.sh"
bare=0 with=0
"$@" >"$scratch/bare.out" 2>"$scratch/bare.err" || bare=$?
preloaded region "$@" >"$scratch/with.out" 2>"$scratch/with.err" || with=$?
same_number "exit status" $with $bare
diff "$scratch/bare.out" "$scratch/with.out" || fail "the output differs"
diff "$scratch/bare.err" "$scratch/with.err" || fail "stderr differs"
for file in "$scratch"/region/*.region; do "$SUMS" "$file" >/dev/null || fail "the account does not add up"; done
