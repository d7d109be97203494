#!/bin/sh
# Keys of the terminal: the program gets each once, and the job ends, stops and goes on as the program does.
. "$(dirname "$0")/common.sh" || exit 1
ulimit -c 0
run="$TALLY run -q -o /dev/null --"

for key in C Q; do
    "$TOOLS/terminal" $key "$TOOLS/known" wait | tr -d '\r' | grep -o 'job [a-z]*[ 0-9]*' | sed 's/ *$//' >bare.txt
    "$TOOLS/terminal" $key $run "$TOOLS/known" wait | tr -d '\r' | grep -o 'job [a-z]*[ 0-9]*' | sed 's/ *$//' >ours.txt
    same "key $key" "$(cat ours.txt)" "$(cat bare.txt)"
done
same "Ctrl-C" "$(cat ours.txt)" "job signal 3"

# A program that catches it goes on, and sees it once.
"$TOOLS/terminal" C $run sh -c 'trap "echo caught; n=\$((n + 1))" INT; n=0; echo ready; while [ $n -lt 1 ]; do sleep 0.1; done; sleep 0.3; exit $((n + 20))' |
    tr -d '\r' >caught.txt
has "caught" caught.txt "job exit 21"
same "times caught" "$(grep -c 'caught$' caught.txt)" 1

"$TOOLS/terminal" Z "$TOOLS/known" wait | tr -d '\r' | grep -o 'job [a-z]*[ 0-9]*' | sed 's/ *$//' >bare.txt
"$TOOLS/terminal" Z $run "$TOOLS/known" wait | tr -d '\r' | grep -o 'job [a-z]*[ 0-9]*' | sed 's/ *$//' >ours.txt
same "Ctrl-Z" "$(tr '\n' ' ' <ours.txt)" "$(tr '\n' ' ' <bare.txt)"
same "Ctrl-Z, as it should be" "$(tr '\n' ' ' <ours.txt)" "job stopped 20 job continued job signal 2 "

# The recording is made although the terminal's keys came.
"$TOOLS/terminal" C "$TALLY" run -o kept.tally -- "$TOOLS/known" wait >out.txt
has "summary after Ctrl-C" out.txt "killed by SIGINT"
same "account after Ctrl-C" "$(tag kept.tally Known)" "193456 701 223456 1001"
no_leftovers
