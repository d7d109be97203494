# lib.sh - what the scripts here share; sourced. CMake passes TALLY_LIB (libtally.so), SUMS and PROGRAMS (the folder of
# the test programs) in the environment.
: "${TALLY_LIB:?}" "${SUMS:?}" "${PROGRAMS:?}"
unset TALLY_CONF TALLY_RUN_DIR LD_PRELOAD
# quiet, but for what a test means to say
LC_ALL=C
export LC_ALL
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tally-test.XXXXXX")
at_end() { rm -rf "$scratch"; }
trap at_end EXIT
trap 'exit 143' INT TERM

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# Skips the test unless the commands are there.
need() {
    for command; do
        command -v "$command" >/dev/null || {
            echo "skipped: $command is not installed"
            exit 77
        }
    done
}

# preloaded NAME COMMAND ARGUMENT...: with the library in front, regions kept in $scratch/NAME
preloaded() {
    regions=$scratch/$1
    shift
    mkdir -p -m 700 "$regions"
    TALLY_RUN_DIR=$regions LD_PRELOAD=$TALLY_LIB${ALSO_PRELOAD:+:$ALSO_PRELOAD} "$@"
}

# The region of process PID in $scratch/NAME; of the only process there is, without PID.
region() {
    set -- "$1" "$scratch/$1/${2:-}"*.region
    [ $# -eq 2 ] && [ -f "$2" ] || fail "$1: wanted one region${2:+ of $2}, there are: $(ls "$scratch/$1")"
    echo "$2"
}

# same_number WHAT GOT WANTED
same_number() {
    [ "$2" -eq "$3" ] || fail "$1: $2, wanted $3 ($(($2 - $3)))"
}
