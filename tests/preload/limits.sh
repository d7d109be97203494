#!/bin/sh
# limits.sh - hostile ground, seen from outside: little address space, no descriptors, no disk, no /proc, no home. The
# program must go on as without the library: same output, same status. And either its account is exact, or clear lines
# on stderr say that there is none, or where it is. Usage: limits.sh CASE (see below)
set -eu
. "$(dirname "$0")/lib.sh"
cd "$scratch"
program=$PROGRAMS/ends
place=$scratch/region
mkdir -m 700 region

# Compares a run under `sh -c "$1"; exec program` with the bare one. $2: exact (the account must be there and exact) or
# may-fail (a line on stderr instead will do).
compare() {
    bare=0 with=0
    # Through pipes: what is limited may be files. In a folder where the program may write, or not.
    {
        {
            sh -c "$1"'; exec "$@"' sh "$program" return 2>&3 || echo $? >bare.status
        } | cat >bare.out
    } 3>&1 | cat >bare.err
    # the limits come before the library: sh runs without it, and `env` execs the program
    {
        {
            sh -c "$1"'; exec "$@"' sh env TALLY_RUN_DIR="$PLACE" LD_PRELOAD="$TALLY_LIB" "$program" return 2>&3 ||
                echo $? >with.status
        } | cat >with.out
    } 3>&1 | cat >with.err
    bare=$(cat bare.status) with=$(cat with.status)
    same_number "exit status" $with $bare
    cmp bare.out with.out || fail "the output differs"
    lines=$(wc -l <with.err)
    if [ "$lines" -ge 1 ]; then
        [ "$2" = may-fail ] || fail "stderr: $(cat with.err)"
        # at most one when it starts and one when it ends
        [ "$lines" -le 2 ] || fail "more than two lines on stderr: $(cat with.err)"
        ! grep -v '^tally: ' with.err || fail "not the library's lines: $(cat with.err)"
        echo "note: $(cat with.err)"
        return 0
    fi
    exact "$place"
}

exact() {
    # exec of the program by env leaves env's own region behind: the program's is the one with the tags in it
    for file in "$1"/*.region; do
        "$SUMS" "$file" >sums || fail "$file does not add up"
        "$SUMS" --nodes "$file" | grep -E '^(Kept|Last|Thread)' | sort >nodes || :
        [ -s nodes ] && break
    done
    printf 'Kept\t1000\t500500\t1000\t500500\nKept/Freed\t0\t0\t500\t374250\nLast\t1\t7\t1\t7\n' >wanted
    printf 'Thread\t200\t2000\t200\t2000\n' >>wanted
    cmp wanted nodes || fail "the account: $(cat nodes)"
}

PLACE=$place
export PLACE
case $1 in
plain) compare : exact ;;
address-space) compare 'ulimit -v 200000' exact ;;
address-space-small) compare 'ulimit -v 40000' may-fail ;;
file-size-0)
    compare 'ulimit -f 0' may-fail
    # its lines on a stderr that is a file may not be written either, and must not kill it
    with=0
    sh -c 'ulimit -f 0; exec "$@"' sh env TALLY_RUN_DIR="$PLACE" LD_PRELOAD="$TALLY_LIB" "$program" return 2>limited.err |
        cat >limited.out
    cmp bare.out limited.out || fail "it ended by its own line on stderr"
    ;;
broken-stderr)
    # a line has to be said, and nobody reads it: no reason to die
    mkfifo pipe
    : <pipe &
    with=0
    sh -c 'exec 2>pipe; sleep 0.2; TALLY_CONF=nonsense:1 LD_PRELOAD=$TALLY_LIB exec "$@"' sh "$program" return >with.out || with=$?
    same_number "exit status" $with 3
    [ "$(cat with.out)" = "ends by return" ] || fail "the output differs: $(cat with.out)"
    ;;
file-size) compare 'ulimit -f 2048' may-fail ;;
descriptors) compare 'exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 4' exact ;;
closed-standard) compare 'exec <&- 3>&-' exact ;;
closed-stderr) compare 'exec 2>&-' may-fail ;;
data) compare 'ulimit -d 20000' may-fail ;;
locked) compare 'ulimit -l 0' exact ;;
priority) compare 'ulimit -c 0; umask 777' exact ;;
no-home) compare 'unset HOME XDG_RUNTIME_DIR TMPDIR; cd /' exact ;;
environment) compare 'HUGE=$(head -c 100000 /dev/zero | tr "\0" x); export HUGE' exact ;;
run-dir-missing)
    # as for what outlives its `tally run`: nobody wants the account
    with=0 bare=3
    TALLY_RUN_DIR=$scratch/nowhere LD_PRELOAD=$TALLY_LIB "$program" return >with.out 2>with.err || with=$?
    same_number "exit status" $with $bare
    [ "$(cat with.out with.err)" = "ends by return" ] || fail "output: $(cat with.out with.err)"
    ;;
run-dir-unwritable)
    need setpriv
    chmod 755 "$scratch"
    # The build may lie in a folder that the other user cannot enter.
    cp "$program" "$TALLY_LIB" .
    program=$scratch/${program##*/} TALLY_LIB=$scratch/${TALLY_LIB##*/}
    mkdir -m 555 locked
    PLACE=$scratch/locked
    compare 'set -- setpriv --reuid 65534 --clear-groups "$@"' may-fail
    ;;
full-tmpfs | tiny-tmpfs | little-tmpfs | small-tmpfs)
    mkdir tmpfs
    # full before the first page; full while the account is begun; full with one that is begun
    case $1 in
    full-tmpfs) size=4k ;;
    tiny-tmpfs) size=16k ;;
    little-tmpfs) size=32k ;;
    small-tmpfs) size=64k ;;
    esac
    mount -t tmpfs -o size="$size" none tmpfs 2>/dev/null || {
        echo "skipped: may not mount a tmpfs"
        exit 77
    }
    at_end() {
        umount "$scratch/tmpfs"
        rm -rf "$scratch"
    }
    mkdir -m 700 tmpfs/place
    PLACE=$scratch/tmpfs/place
    [ "$1" != full-tmpfs ] || head -c 4096 /dev/zero >tmpfs/filler 2>/dev/null || :
    place=$PLACE
    compare : may-fail
    ;;
no-proc)
    unshare -m true 2>/dev/null || {
        echo "skipped: may not unshare mounts"
        exit 77
    }
    mkdir empty
    cat >no-proc <<'EOF'
#!/bin/sh
mount --bind empty /proc && exec "$@"
EOF
    chmod +x no-proc
    bare=0 with=0
    unshare -m ./no-proc "$program" return >bare.out 2>bare.err || bare=$?
    unshare -m ./no-proc env TALLY_RUN_DIR="$place" LD_PRELOAD="$TALLY_LIB" "$program" return >with.out 2>with.err || with=$?
    same_number "exit status" $with $bare
    cmp bare.out with.out
    [ ! -s with.err ] || fail "stderr: $(cat with.err)"
    exact "$place"
    ;;
*) fail "no such case: $1" ;;
esac
