# Sourced by the tests of the command line. In: TALLY (the command), TOOLS (the built helpers), CC. Every test works in
# a directory of its own, with a runtime directory of its own.
set -u
work=$(mktemp -d)
# In memory, as a runtime directory is; on a disk hundreds of regions take their time.
XDG_RUNTIME_DIR=$(mktemp -d /dev/shm/tests-of-tally.XXXXXX 2>/dev/null || mktemp -d)
export XDG_RUNTIME_DIR
trap 'rm -rf "$work" "$XDG_RUNTIME_DIR"' EXIT
mkdir -m 700 "$work/here"
cd "$work/here" || exit 1
unset LD_PRELOAD TALLY_CONF TALLY_RUN_DIR TALLY_RUN_PID
: "${CC:=cc}"

fail() {
    echo "FAILED: $*"
    exit 1
}

# same WHAT GOT WANTED
same() {
    [ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

# has WHAT FILE PATTERN
has() {
    grep -q -e "$3" "$2" || { cat "$2"; fail "$1: no '$3'"; }
}

# The billed figures of a tag in a recording: live bytes, live blocks, allocated bytes, allocated blocks.
tag() {
    "$TALLY" report --csv "$1" | awk -F, -v tag="$2" '$5 == "tag" && $6 == tag {print $8, $10, $12, $14}'
}

# Waits until a command succeeds, at most ten seconds.
until_true() {
    for turn in $(seq 200); do
        if "$@"; then return 0; fi
        sleep 0.05
    done
    return 1
}

# No run directory is left behind.
no_leftovers() {
    same "left in the runtime directory" "$(ls "$XDG_RUNTIME_DIR")" ""
}
