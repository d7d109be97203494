#!/bin/sh
# Processes in PID namespaces of their own, and descendants that changed their user's view: none is taken for dead, and
# none for another of the same number.
. "$(dirname "$0")/common.sh" || exit 1
unshare --pid --fork --mount-proc true 2>/dev/null || { echo "no PID namespaces here"; exit 77; }

"$TALLY" run -q -- unshare --pid --fork --mount-proc "$TOOLS/known" return
same "status" $? 3
same "pid 1 of its own" "$(tag known.1.tally Known)" "193456 701 223456 1001"

# It lives on while many looks are taken, and is only recorded at its end.
"$TALLY" run -q -- unshare --pid --fork --mount-proc "$TOOLS/family" child 5 1
same "alive all the time" "$(ls family.1.tally family.1.2.tally 2>/dev/null | tr '\n' ' ')" "family.1.tally "
"$TALLY" report family.1.tally >report.txt
grep -q "still running" report.txt && fail "taken while it ran"
same "exact" "$(tag family.1.tally Child | cut -d' ' -f1)" 10005

# Two namespaces, the same pid: two recordings.
mkdir two && cd two
"$TALLY" run -q -o %n.%p.tally -- sh -c "for i in 1 2; do unshare --pid --fork --mount-proc '$TOOLS/family' child \$i & done; wait"
same "both" "$("$TALLY" report --csv family.*.tally | awk -F, '$5 == "tag" {print $8}' | sort | tr '\n' ' ')" "10001 10002 "
cd ..

# A live one is found by the pid that we see.
"$TALLY" run -q -o live.%n.tally -- unshare --pid --fork --mount-proc "$TOOLS/known" wait >out.txt &
until_true grep -q ready out.txt || fail "never ready"
outer=$(pgrep -f "^$TOOLS/known wait")
"$TALLY" dump -o now.tally "$outer" 2>log.txt || { cat log.txt; fail "dump"; }
same "dumped" "$(tag now.tally Known)" "193456 701 223456 1001"
kill -KILL "$outer"
wait $!
same "collected" "$(tag live.known.tally Known)" "193456 701 223456 1001"
no_leftovers
