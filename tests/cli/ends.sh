#!/bin/sh
# Nine ways to end: status and signal are the program's own, and the account is exact.
. "$(dirname "$0")/common.sh" || exit 1
ulimit -c 0
for way in return exit _exit quick_exit abort term segv exec kill; do
    bare=$("$TOOLS/status" "$TOOLS/known" $way)
    ours=$("$TOOLS/status" "$TALLY" run -o "$way.%n.tally" -- "$TOOLS/known" $way 2>"$way.err")
    same "$way: end" "$ours" "$bare"
    same "$way: account" "$(tag "$way.known.tally" Known)" "193456 701 223456 1001"
    "$TALLY" report "$way.known.tally" >"$way.txt"
    has "$way: exact" "$way.txt" "exact"
    case $way in
    exec) has "$way: end" "$way.txt" "became another program" ;;
    term | segv | kill | abort) has "$way: end" "$way.txt" "killed by signal ${bare#signal }" ;;
    *) has "$way: end" "$way.txt" "exit status ${bare#exit }" ;;
    esac
done
[ -f exec.sh.tally ] || fail "no recording of what was executed"
no_leftovers
# The program may leave a core file; the command, which dies alike, must not.
if [ "$(cat /proc/sys/kernel/core_pattern)" = core ]; then
    mkdir core && cd core || exit 1
    (ulimit -c unlimited && "$TALLY" run -q -o /dev/null -- "$TOOLS/known" segv) 2>/dev/null
    count=$(find . -name 'core*' | wc -l)
    [ "$count" -le 1 ] || fail "$count core files"
fi
