#!/bin/sh
# allocators.sh - one program over one allocator: the same exact totals in every order, and the output of a bare run.
# Usage: allocators.sh glibc|jemalloc|mimalloc|tcmalloc preload-first|preload-last|linked-first|linked-last
set -eu
. "$(dirname "$0")/lib.sh"
cd "$scratch"
export TALLY_CONF=output:
library=
if [ "$1" != glibc ]; then
    for file in /usr/lib/*-linux-gnu/lib"$1".so.[0-9]*; do
        case $file in *.so.[0-9] | *.so.[0-9][0-9]) library=$file ;; esac
    done
    [ "$library" ] || {
        echo "skipped: lib$1 is not installed"
        exit 77
    }
fi
# Debian's mimalloc is built without exceptions: its operator new aborts when there is no memory.
[ "$1" != mimalloc ] || export ABORTS_WITHOUT_MEMORY=1

run() {
    status=0
    "$@" >out 2>err || status=$?
    [ $status -eq 0 ] || fail "$*: status $status: $(cat err)"
}

run env LD_PRELOAD="$library" "$PROGRAMS/every_entry"
mv out bare.out
mv err bare.err
case $2 in
preload-first) run env LD_PRELOAD="$TALLY_LIB:$library" "$PROGRAMS/every_entry" must ;;
preload-last) run env LD_PRELOAD="$library:$TALLY_LIB" "$PROGRAMS/every_entry" must ;;
linked-first) run "$PROGRAMS/every_entry_tally_$1" must ;; # -ltally, then the allocator
linked-last) run "$PROGRAMS/every_entry_$1_tally" must ;;  # the other way round
esac
diff bare.out out || fail "the output differs"
cmp bare.err err || fail "stderr differs: $(cat err)"
tail -1 out
