#!/bin/sh
# Flags, TALLY_CONF, file names, help: what is asked for is done, what is wrong is said.
. "$(dirname "$0")/common.sh" || exit 1

# wrong STATUS PATTERN ARGUMENTS...
wrong() {
    status=$1 pattern=$2
    shift 2
    "$TALLY" "$@" >out.txt 2>err.txt
    same "$*: status" $? "$status"
    has "$*" err.txt "$pattern"
}
wrong 2 "^Usage: tally COMMAND"
wrong 2 "no command 'rnu'; did you mean run?" rnu
wrong 2 "no command 'reprot'; did you mean report?" reprot
wrong 2 "no command 'zzzzzz'; the nearest is" help zzzzzz
wrong 125 "which program?" run
wrong 125 "which program?" run -q --
wrong 125 "no option --auto-tag=module; did you mean --auto-tags?" run --auto-tag=module -- true
wrong 125 "no option --quite; did you mean --quiet?" run --quite -- true
wrong 125 "no option --no-folow; did you mean --no-follow?" run --no-folow -- true
wrong 125 'auto_tags: "modul" is not one of.*did you mean module?' run --auto-tags=module,modul -- true
wrong 125 'checkpoint_s: "soon" is not a whole number; the range is 0 to 86400' run --checkpoint-s=soon -- true
wrong 125 'event_buffers_mb: "0" is outside the range 1 to 1048576' run --event-buffers-mb 0 -- true
wrong 125 'follow: "perhaps" is neither true nor false' run --follow=perhaps -- true
wrong 125 "takes no value" run --no-follow=true -- true
wrong 125 "needs a value" run --output
wrong 125 "needs a pattern" run -o
wrong 2 "which process?" stop
wrong 2 "'twelve' is not a process id" stop twelve
wrong 2 "which process?" dump
wrong 1 "there is no process 4194305" start 4194305
wrong 1 "runs without Tally" stop $$
[ ! -e true.*.tally ] || fail "something was run"

# TALLY_CONF: a wrong entry is said once, the rest counts; flags win
TALLY_CONF="qiet:true,auto_tags:thread,output:conf.tally" "$TALLY" run -q -- sh -c 'ls >/dev/null; exit 0' 2>err.txt
same "TALLY_CONF: lines" "$(wc -l <err.txt)" 1
has "TALLY_CONF" err.txt 'there is no option "qiet"; did you mean quiet?'
[ -f conf.tally ] || fail "TALLY_CONF's output did not count"
same "TALLY_CONF: auto_tags" "$("$TALLY" report --csv conf.tally | awk -F, '$4 == 1 {print $5}' | sort -u)" thread
TALLY_CONF="auto_tags:thread" "$TALLY" run -q --auto-tags=none -o flag.tally -- "$TOOLS/known"
same "a flag wins" "$("$TALLY" report --csv flag.tally | awk -F, 'NR > 1 && $5 != "root" && $5 != "tag"')" ""
"$TALLY" run -q --auto-tags=module,caller -o both.tally -- "$TOOLS/known"
same "joined by a comma" "$("$TALLY" report --csv both.tally | awk -F, 'NR > 1 {print $5}' | sort -u | tr '\n' ' ')" "caller module root tag "

# asleep, and nobody came
"$TALLY" run --no-tags -o asleep.tally -- "$TOOLS/known" 2>err.txt
same "asleep: status" $? 3
has "asleep" err.txt "nobody has begun the accounting"
[ ! -e asleep.tally ] || fail "a recording of nothing"

# names of files
name() { # PATTERN WANTED, with PID for the process id
    mkdir d && cd d || exit 1
    pid=$("$TALLY" run -q -o "$1" -- sh -c 'echo $$')
    same "-o $1" "$(find . -type f | sed "s/\b$pid\b/PID/g; s/\b$(uname -n)\b/HOST/g")" "$2"
    cd .. && rm -rf d
}
name "%n.%p.tally" ./sh.PID.tally
name "%h-%n%%" "./HOST-sh%"
name "a,b c\\d" "./a,b c\\d"
name "%x%" "./%x%"
mkdir sub && "$TALLY" run -q -o "sub/%n" -- true && [ -f sub/true ] || fail "-o into a directory"
"$TALLY" run -q -o "$PWD/sub/abs" -- sh -c 'cd /; true' && [ -f sub/abs ] || fail "-o absolute"
"$TALLY" run -q -- sh -c 'cd /; true' && ls sh.*.tally >/dev/null || fail "default is not in the directory of the start"
"$TALLY" run -o no/such/directory/x -- true 2>err.txt
same "no place for a recording: refused before the start" $? 125
has "no place for a recording" err.txt "there is no directory no/such/directory; the program was not started"
"$TALLY" run -o sub -- true 2>err.txt
same "a directory is no recording" $? 125
mkdir goes && "$TALLY" run -o goes/x -- rm -r goes 2>err.txt
same "cannot be written: the program's status" $? 0
has "cannot be written" err.txt "no recording: .*goes/x"
[ -f x ] || fail "an account whose directory has gone was not recorded here"

"$TALLY" --version >out.txt && has "version" out.txt '^tally [0-9]*\.[0-9]*\.[0-9]*$'
for command in run report doctor start stop clear pause resume dump; do
    "$TALLY" $command --help >a.txt 2>&1 || fail "$command --help"
    "$TALLY" help $command >b.txt 2>&1 || fail "help $command"
    has "$command --help" a.txt "^Usage: tally $command"
    cmp -s a.txt b.txt || fail "help $command differs from $command --help"
    "$TALLY" --help | grep -q "^  $command " || fail "--help does not list $command"
done
