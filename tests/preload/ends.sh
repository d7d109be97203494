#!/bin/sh
# ends.sh - every way to end: the account exact up to the last block, status and signal unchanged. Usage: ends.sh WAY
set -eu
. "$(dirname "$0")/lib.sh"
way=$1
cd "$scratch"
ulimit -c 0

bare=0 with=0 run=0
"$PROGRAMS/ends" "$way" >bare.out 2>bare.err || bare=$?
preloaded region "$PROGRAMS/ends" "$way" >with.out 2>with.err || with=$?
same_number "status with the library" $with $bare
cmp bare.out with.out
cmp bare.err with.err

# 1 + ... + 1000 bytes kept; 3 * (0 + ... + 499) allocated and freed; 100 blocks of 10 bytes in each of two threads
cat >wanted <<EOF
Kept	1000	500500	1000	500500
Kept/Freed	0	0	500	374250
Last	1	7	1	7
Thread	200	2000	200	2000
EOF
for file in region/*; do # exec leaves another one, of the shell
    "$SUMS" "$file" >sums
    "$SUMS" --nodes "$file" | grep -E '^(Kept|Last|Thread)' | LC_ALL=C sort >nodes || :
    [ -s nodes ] || continue
    cmp wanted nodes || fail "wanted, and got: $(cat wanted nodes)"
    found=yes
done
[ "${found:-}" ] || fail "no account: $(ls -la region)"

# The command: the same status or signal (128 + n to the shell), the same figures.
[ -x "${TALLY:-}" ] || exit 0
"$TALLY" run --quiet -o 'recording.%n.%p' --auto-tags=none -- "$PROGRAMS/ends" "$way" >run.out 2>run.err || run=$?
same_number "status of tally run" $run $bare
cmp bare.out run.out
cmp bare.err run.err || fail "stderr: $(cat run.err)"
recording=$(ls recording.ends.*) || fail "no recording: $(ls)"
"$TALLY" report --csv --full --min=0 "$recording" >report.csv || fail "report: $?"
"$TALLY" report --json "$recording" >report.json || fail "report --json: $?"
# path, bytes, of the node alone, blocks, of the node alone, then the same of everything allocated
for want in Kept,500500,500500,1000,1000,874750,500500,1500,1000 Kept/Freed,0,0,0,0,374250,374250,500,500 \
    Thread,2000,2000,200,200,2000,2000,200,200 Last,7,7,1,1,7,7,1,1; do
    grep -q ",$want," report.csv || fail "$want is not in the report: $(cat report.csv)"
done
