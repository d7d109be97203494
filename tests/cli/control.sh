#!/bin/sh
# start, stop, clear, pause, resume and dump on a running process: each figure is exact.
. "$(dirname "$0")/common.sh" || exit 1
mkfifo in

keep() { # COUNT
    for turn in $(seq "$1"); do echo >&3; done
    total=$((total + $1))
    until_true sh -c "[ \$(grep -c kept out.txt) = $total ]" || fail "the program does not keep up"
}
steady() { # what a dump says of the tag: live bytes and blocks
    rm -f now.tally
    "$TALLY" dump -o now.tally "$pid" 2>>log.txt || { cat log.txt; fail "dump"; }
    tag now.tally Steady | cut -d' ' -f1,2
}
ask() {
    "$TALLY" "$1" "$pid" >answer.txt 2>&1
    same "$1: status ($(cat answer.txt))" $? 0
    has "$1" answer.txt "^process $pid: $2"
}

session() { # begins as the environment says
    keep 3
    same "live" "$(steady)" "3000 3"
    ask stop stopped
    keep 4
    same "stopped" "$(steady)" "3000 3"
    ask start accounting
    keep 2
    same "started again" "$(steady)" "5000 5"
    ask pause paused
    keep 5
    ask pause paused
    ask resume resumed
    keep 1
    same "paused twice, resumed once" "$(steady)" "5000 5"
    ask resume resumed
    "$TALLY" resume "$pid" >answer.txt 2>&1 && fail "resume without pause"
    has "resume without pause" answer.txt "not paused"
    keep 1
    same "resumed" "$(steady)" "6000 6"
    ask clear cleared
    keep 1
    same "cleared" "$(steady)" "1000 1"
}

"$TALLY" run -q -o end.tally -- "$TOOLS/steady" <in >out.txt &
exec 3>in
total=0
until_true grep -q ready out.txt || fail "never ready"
pid=$(sed -n 's/^ready //p' out.txt)
session
"$TALLY" doctor "$pid" >doctor.txt || { cat doctor.txt; fail "doctor of a process that is on"; }
has "doctor" doctor.txt "accounting *on"
"$TALLY" dump "$pid" 2>dump.txt
has "dump says where" dump.txt "tally report steady.$pid.live.tally"
[ -f "steady.$pid.live.tally" ] || fail "the default name of a dump"
"$TALLY" report now.tally >now.txt
has "a dump" now.txt "still running"

# one that does not allocate answers later
kill -STOP "$pid"
"$TALLY" stop "$pid" >answer.txt 2>&1
same "no answer: status" $? 0
has "no answer" answer.txt "not answered yet"
kill -CONT "$pid"
keep 1
exec 3>&-
wait $!
same "the end" "$(tag end.tally Steady | cut -d' ' -f1)" 1000

# asleep from the start, preloaded by hand: woken in production
lib=$("$TALLY" doctor | sed -n 's/.*library *\(.*libtally.*\)/\1/p')
rm out.txt
LD_PRELOAD=$lib TALLY_CONF=tags:false,output:hand.tally "$TOOLS/steady" <in >out.txt &
exec 3>in
total=0
until_true grep -q ready out.txt || fail "never ready"
pid=$(sed -n 's/^ready //p' out.txt)
keep 2
"$TALLY" dump "$pid" 2>answer.txt && fail "dump of one that was never started"
has "never started" answer.txt "begin with 'tally start $pid'"
"$TALLY" doctor "$pid" >doctor.txt
has "doctor: asleep" doctor.txt "not started"
ask start accounting
session
exec 3>&-
wait $!
same "written at exit" "$(tag hand.tally Steady | cut -d' ' -f1)" 1000
no_leftovers
