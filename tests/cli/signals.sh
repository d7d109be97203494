#!/bin/sh
# Signals sent to `tally run` reach the program, each once; the program's own end is the answer.
. "$(dirname "$0")/common.sh" || exit 1

"$TALLY" run -q -o /dev/null -- "$TOOLS/counts_signals" >out.txt 2>err.txt &
pid=$!
until_true grep -q ready out.txt || fail "never ready"
for name in USR1 USR2 HUP WINCH ALRM INT QUIT; do
    kill -$name $pid
    sleep 0.05
done
kill -USR1 $pid
sleep 0.05
env kill -q 77 -s RTMIN+3 $pid 2>/dev/null || fail "no kill(1) that can queue"
sleep 0.1
kill -TERM $pid
wait $pid
same "exit status" $? 42
same "signals" "$(sed 1d out.txt | tr '\n' ' ')" "HUP 1 INT 1 QUIT 1 USR1 2 USR2 1 ALRM 1 WINCH 1 TERM 1 RT3 1 value 77 "
same "stderr" "$(cat err.txt)" ""

# A program that is killed by what was passed on: so are we.
rm out.txt
"$TOOLS/status" "$TALLY" run -q -o /dev/null -- "$TOOLS/known" wait >out.txt &
until_true grep -q ready out.txt || fail "never ready"
pid=$(pgrep -f "^$TALLY run -q -o /dev/null -- $TOOLS/known wait" | head -1)
[ -n "$pid" ] || fail "the command is not there"
kill -TERM "$pid"
wait $!
same "end" "$(tail -1 out.txt)" "signal 15"

# One that is stopped and continued by its own pid goes on to its end.
rm out.txt
"$TALLY" run -q -o /dev/null -- "$TOOLS/counts_signals" >out.txt &
pid=$!
until_true grep -q ready out.txt || fail "never ready"
program=$(sed -n 's/^ready //p' out.txt)
kill -STOP "$program"
sleep 0.3
kill -CONT "$program"
kill -TERM "$program"
wait $pid
same "exit status after a stop" $? 42
no_leftovers
