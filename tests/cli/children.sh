#!/bin/sh
# Several hundred children: each has a recording of its own, exact; the command keeps no descriptor per child.
. "$(dirname "$0")/common.sh" || exit 1
count=300

check() { # WHAT: every number once
    "$TALLY" report --csv ./*.tally | awk -F, '$5 == "tag" && $6 == "Child" {print $8 - 10000}' | sort -n >numbers.txt
    seq 0 $((count - 1)) >wanted.txt
    cmp -s numbers.txt wanted.txt || { diff numbers.txt wanted.txt | head; fail "$1: not every child has its account"; }
}

mkdir exec && cd exec
(ulimit -n 32; exec "$TALLY" run --auto-tags=none -- "$TOOLS/family" $count) 2>err.txt &
pid=$!
most=0
while grep -q "^State:.[^Z]" /proc/$pid/status 2>/dev/null; do
    open=$(ls /proc/$pid/fd 2>/dev/null | wc -l)
    [ "$open" -gt "$most" ] && most=$open
    sleep 0.02
done
wait $pid
same "exec: status" $? 0
[ $most -le 12 ] || fail "$most descriptors open"
check exec
has "summary" err.txt "^tally: $count other accounts\|^tally: [0-9]* other accounts"
[ "$(wc -l <err.txt)" -le 24 ] || fail "the summary is longer than a screen"
cd ..

mkdir fork && cd fork
"$TALLY" run -q --auto-tags=none -- "$TOOLS/family" $count fork
same "fork: status" $? 0
check fork
same "fork: recordings" "$(ls ./*.tally | wc -l)" "$((count + 1))"
cd ..

# One file name for all: the program has it, each child another.
mkdir name && cd name
"$TALLY" run -q --auto-tags=none -o fixed.tally -- "$TOOLS/family" 5
same "fixed: of the program" "$("$TALLY" report --json fixed.tally | grep -o '"arguments":\[[^]]*\]' | grep -c '"5"')" 1
same "fixed: children" "$("$TALLY" report --csv fixed.*.tally | awk -F, '$5 == "tag" {print $8}' | sort | tr '\n' ' ')" \
    "10000 10001 10002 10003 10004 "
# again: its own older file is replaced
before=$(ls fixed.tally)
"$TALLY" run -q -o fixed.tally -- true
same "replaced" "$(ls fixed.tally)" "$before"
same "replaced by the new one" "$("$TALLY" report --json fixed.tally | grep -c '"program":"true"')" 1
cd ..

# --no-follow: children are left alone
mkdir alone && cd alone
"$TALLY" run -q --no-follow -- "$TOOLS/family" 5
same "no-follow, exec" "$(ls ./*.tally | wc -l)" 1
"$TALLY" run -q --no-follow -- "$TOOLS/family" 5 fork
same "no-follow, fork" "$(ls ./*.tally | wc -l)" 2
cd ..
no_leftovers
