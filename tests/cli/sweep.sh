#!/bin/sh
# What nobody collected is collected, or cleared, by the next command; nothing else is touched.
. "$(dirname "$0")/common.sh" || exit 1
lib=$("$TALLY" doctor | sed -n 's/.*library *\(.*libtally.*\)/\1/p')

# preloaded by hand and killed: the account goes to its output in its directory
mkdir there
(cd there && LD_PRELOAD=$lib "$TOOLS/known" kill) 2>/dev/null
same "one directory" "$(ls "$XDG_RUNTIME_DIR" | wc -l)" 1
"$TALLY" report --help >/dev/null 2>log.txt
has "said so" log.txt "had left its account behind: recorded in $PWD/there/known.[0-9]*.tally"
same "exact" "$(tag there/known.*.tally Known)" "193456 701 223456 1001"
"$TALLY" report there/known.*.tally >report.txt
has "how it ended" report.txt "gone; how is not known"

# a child that outlives the run: recorded as running, and again when it has ended
mkfifo gate
"$TALLY" run -q -o out.%n.%p.tally -- sh -c "'$TOOLS/family' child 7 3 >/dev/null 2>&1 & echo \$!; sleep 1" >pid.txt
pid=$(cat pid.txt)
"$TALLY" report out.family.$pid.tally >report.txt || fail "no recording of the one that still runs"
has "still running" report.txt "still running"
"$TALLY" report out.family.$pid.tally 2>&1 >/dev/null | grep -q "left its account" && fail "swept while it runs"
until_true sh -c "! kill -0 $pid 2>/dev/null" || fail "it does not end"
"$TALLY" report out.family.$pid.tally >/dev/null 2>log.txt
has "collected later" log.txt "recorded in $PWD/out.family.$pid.tally"
"$TALLY" report out.family.$pid.tally >report.txt
grep -q "still running" report.txt && fail "not replaced by the final one"
same "exact" "$(tag out.family.$pid.tally Child | cut -d' ' -f1,2)" "10007 1"

# one with a fixed name does not replace the program's own
"$TALLY" run -q -o fixed.tally -- sh -c "'$TOOLS/family' child 9 2 >/dev/null 2>&1 & sleep 1"
sleep 1.5
"$TALLY" report fixed.tally >report.txt 2>/dev/null
has "the program's own" report.txt "exit status 0"
same "the other's" "$(for f in fixed.*.tally; do tag "$f" Child; done | cut -d' ' -f1)" 10009

# its directory is gone: it comes here
mkdir gone
(cd gone && LD_PRELOAD=$lib "$TOOLS/known" kill) 2>/dev/null
rm -r gone
"$TALLY" report --help >/dev/null 2>log.txt
has "the directory is gone" log.txt "the directory of process .* recording is gone"
has "recorded here" log.txt "recorded in known"
"$TALLY" report --help 2>log.txt >/dev/null
same "recorded once" "$(cat log.txt)" ""
rm -f known.*.tally

# never started: nothing to tell, and removed
LD_PRELOAD=$lib TALLY_CONF=tags:false "$TOOLS/known" kill 2>/dev/null
"$TALLY" report --help 2>log.txt >/dev/null
same "asleep" "$(cat log.txt)" ""
same "regions left" "$(find "$XDG_RUNTIME_DIR" -name '*.region' | wc -l)" 0

# not ours: open to others, a link, a link inside
me=$(id -u)
mkdir -m 755 "$XDG_RUNTIME_DIR/tally-$me-0000000000000001"
mkdir -m 700 elsewhere "$XDG_RUNTIME_DIR/tally-$me-0000000000000003"
: >"elsewhere/99999999-0000000000000000.region"
ln -s "$PWD/elsewhere" "$XDG_RUNTIME_DIR/tally-$me-0000000000000002"
: >"$XDG_RUNTIME_DIR/tally-$me-0000000000000001/99999999-0000000000000000.region"
: >victim
ln -s "$PWD/victim" "$XDG_RUNTIME_DIR/tally-$me-0000000000000003/99999999-0000000000000000.region"
: >"$XDG_RUNTIME_DIR/tally-$me-0000000000000003/notes.txt"
touch -d '1 hour ago' "$XDG_RUNTIME_DIR"/tally-*/* "$XDG_RUNTIME_DIR"/tally-* elsewhere/* victim
"$TALLY" report --help >/dev/null 2>log.txt
for file in "$XDG_RUNTIME_DIR/tally-$me-0000000000000001/99999999-0000000000000000.region" victim \
    "elsewhere/99999999-0000000000000000.region" "$XDG_RUNTIME_DIR/tally-$me-0000000000000003/notes.txt"; do
    [ -e "$file" ] || fail "$file was removed"
done
# a damaged region of ours goes, without a word and without a crash
mkdir -m 700 "$XDG_RUNTIME_DIR/tally-$me-0000000000000004"
head -c 100000 /dev/urandom >"$XDG_RUNTIME_DIR/tally-$me-0000000000000004/4194304-00000000000000ff.region"
touch -d '1 hour ago' "$XDG_RUNTIME_DIR/tally-$me-0000000000000004/4194304-00000000000000ff.region"
"$TALLY" report --help >/dev/null 2>log.txt || fail "a damaged region"
[ ! -e "$XDG_RUNTIME_DIR/tally-$me-0000000000000004/4194304-00000000000000ff.region" ] || fail "a damaged region stays"
