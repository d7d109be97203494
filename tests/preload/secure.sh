#!/bin/sh
# secure.sh - a setuid program stays off, whatever the environment says, and writes nothing; the same file not setuid works.
set -eu
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" -eq 0 ] || {
    echo "skipped: only root may make a program setuid to root"
    exit 77
}
need setpriv
chmod 755 "$scratch"
mkdir -m 777 "$scratch/place"
cp "$PROGRAMS/secure" "$scratch/secure"
cd "$scratch/place"
export TALLY_CONF="output:$scratch/place/out.tally,share:true" TALLY_RUN_DIR="$scratch/place"
"$scratch/secure" >"$scratch/plain"
[ "$(cat "$scratch/plain")" = "secure 0, start worked, active 1, 0 bytes, why: not said" ] || fail "plain: $(cat "$scratch/plain")"
rm -f ./*
# Setuid to root and run by somebody else, not the other way round: the loader must be able to read the library, which
# may lie in a folder that is root's alone.
chmod 4755 "$scratch/secure"
setpriv --reuid 65534 --regid 65534 --clear-groups env LD_PRELOAD="$TALLY_LIB" "$scratch/secure" \
    >"$scratch/out" 2>"$scratch/err"
case $(cat "$scratch/out") in "secure 0"*)
    echo "skipped: $scratch is mounted nosuid"
    exit 77
    ;;
esac
[ "$(cat "$scratch/out")" = "secure 1, start refused, active 0, 0 bytes, why: said" ] || fail "$(cat "$scratch/out")"
[ -z "$(ls -A)" ] || fail "it left files: $(ls -A)"
