#!/bin/sh
# A daemon: the program ends at once, its child begins to allocate when `tally run` has long ended. It has its account.
. "$(dirname "$0")/common.sh" || exit 1

"$TALLY" run -q --auto-tags=none -- "$TOOLS/late"
same "the program's status" $? 0
count=$(ls late.*.tally 2>/dev/null | wc -l)
until_true sh -c "[ \$(ls late.*.tally 2>/dev/null | wc -l) -gt $count ]" || fail "the daemon left no file"
"$TALLY" report --help >/dev/null 2>&1 # collects what is left
same "exact" "$(for f in late.*.tally; do tag "$f" Late; done | grep -v '^$' | cut -d' ' -f1,2)" "100000 100"
same "nothing is left behind" "$(ls "$XDG_RUNTIME_DIR" | wc -l)" 0
