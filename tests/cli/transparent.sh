#!/bin/sh
# The program sees what it would see without Tally: input, output, descriptors, signal mask and dispositions, umask.
. "$(dirname "$0")/common.sh" || exit 1
run() { "$TALLY" run -q -o /dev/null -- "$@"; }

same "stdin and stdout" "$(seq 100000 | run cat | cksum)" "$(seq 100000 | cksum)"
same "stderr" "$(run sh -c 'echo out; echo err >&2' 2>&1 >/dev/null)" "err"
same "arguments" "$(run printf '%s|' a 'b c' '' -- -o --quiet)" "a|b c||--|-o|--quiet|"
same "nothing when quiet" "$(run true 2>&1)" ""
has_summary=$("$TALLY" run -o s.tally -- sh -c 'echo last >&2; true' 2>&1 >/dev/null)
case $has_summary in last*"tally report s.tally"*) ;; *) fail "summary: $has_summary" ;; esac
same "summary is not on stdout" "$("$TALLY" run -o s.tally -- echo one 2>/dev/null)" "one"

# descriptors: the same numbers, also with 0, 1, 2 closed, and one of ours inherited
probe='ls -l /proc/self/fd | awk "NF > 8 {print \$9}" | tr "\n" " "'
same "descriptors" "$(run sh -c "$probe" 9</dev/null)" "$(sh -c "$probe" 9</dev/null)"
sh -c 'test ! -e /proc/self/fd/0 && test ! -e /proc/self/fd/2 && echo closed' <&- 2>&- >bare.txt
run sh -c 'test ! -e /proc/self/fd/0 && test ! -e /proc/self/fd/2 && echo closed' <&- 2>&- >ours.txt
same "closed descriptors" "$(cat ours.txt)" "$(cat bare.txt)"

signals='grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status'
same "dispositions" "$(run sh -c "exec $signals")" "$(sh -c "exec $signals")"
same "ignored signals" "$(trap '' HUP USR1 CHLD PIPE TSTP; run grep -E '^Sig(Blk|Ign)' /proc/self/status)" \
    "$(trap '' HUP USR1 CHLD PIPE TSTP; grep -E '^Sig(Blk|Ign)' /proc/self/status)"
same "blocked signals" "$("$TOOLS/blocked" "$TALLY" run -q -o /dev/null -- grep ^SigBlk /proc/self/status)" \
    "$("$TOOLS/blocked" grep ^SigBlk /proc/self/status)"
same "umask, limits, directory" "$(umask 027; ulimit -n 77; run sh -c 'umask; ulimit -n; pwd')" \
    "$(umask 027; ulimit -n 77; sh -c 'umask; ulimit -n; pwd')"
same "environment" "$(run env | grep -v -e ^LD_PRELOAD= -e ^TALLY_ -e ^_= | sort)" "$(env | grep -v -e ^TALLY_ -e ^_= | sort)"
same "process group" "$(run sh -c 'ps -o pgid= -p $$' | tr -d ' ')" "$(ps -o pgid= -p $$ | tr -d ' ')"
same "output that nobody reads" "$( (run sh -c 'yes; echo $? >&2' | head -1) 2>/dev/null)" "y"
same "preloads of the user's stay" "$(LD_PRELOAD=libm.so.6 "$TALLY" run -q -o /dev/null -- sh -c 'echo "$LD_PRELOAD"' | sed 's/.*tally[^:]*://')" "libm.so.6"
no_leftovers
