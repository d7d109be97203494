#!/bin/sh
# inside.sh - runs a program that checks itself, with its regions kept where they vanish with the test. Usage: inside.sh
# CONFIGURATION PRELOADED... -- PROGRAM ARGUMENT...  (libraries in the order of LD_PRELOAD; none: the program is linked)
set -eu
. "$(dirname "$0")/lib.sh"
TALLY_CONF=$1
shift
libraries=
while [ "$1" != -- ]; do
    libraries=${libraries:+$libraries:}$1
    shift
done
shift
export TALLY_CONF XDG_RUNTIME_DIR="$scratch"
cd "$scratch"
status=0
LD_PRELOAD=$libraries "$@" || status=$?
exit "$status"
