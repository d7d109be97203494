#!/bin/sh
# doctor says what it will run over and what will be seen, and runs nothing.
. "$(dirname "$0")/common.sh" || exit 1
cat >tagged.c <<'C'
#include <stdlib.h>
#include <tally/tally.h>
int main(void) { TALLY_TAG("T"); fclose(fopen("was-started", "w")); void *volatile p = malloc(1); return p == NULL; }
C
"$TALLY" doctor >out.txt
same "alone: status" $? 0
has "library" out.txt "ok *library *.*/libtally.so"
has "directory" out.txt "accounts are kept in $XDG_RUNTIME_DIR"
has "system" out.txt "Linux .*, glibc 2"

$CC -I"$INCLUDE" -g tagged.c -o tagged || fail "no compiler"
"$TALLY" doctor -- ./tagged >out.txt
same "tagged: status" $? 0
has "tags" out.txt "uses tally.h: its tags will be seen"
has "symbols" out.txt "functions, files and lines"
has "layout" out.txt "position-independent"
has "allocator" out.txt "glibc's malloc"

for level in 0 2; do
$CC -O$level -I"$INCLUDE" -no-pie -fno-pie tagged.c -o fixed
"$TALLY" doctor ./fixed >out.txt
has "fixed as missing" out.txt "the linker has fixed the library as missing.*-pie"
"$TALLY" run -q -o fixed.tally -- ./fixed
same "indeed" "$(tag fixed.tally T)" ""
rm was-started
done
$CC -I"$INCLUDE" -no-pie -fPIE -Wl,-z,dynamic-undefined-weak tagged.c -o kept && "$TALLY" doctor ./kept >out.txt
same "seen" "$("$TALLY" run -q -o kept.tally -- ./kept; tag kept.tally T | cut -d" " -f1)" 1
rm was-started
has "not fixed" out.txt "its tags will be seen"
has "layout" out.txt "not PIE"

if $CC tagged.c -I"$INCLUDE" -Wl,--no-as-needed -ljemalloc -o over 2>/dev/null; then
    "$TALLY" doctor ./over >out.txt
    has "allocator" out.txt "run over jemalloc (libjemalloc.so"
fi
cat >lib.c <<'C'
int missing_function(void) { return 0; }
C
cat >needs.c <<'C'
int missing_function(void);
int main(void) { return missing_function(); }
C
$CC -shared -fPIC lib.c -o libmissing-one.so && $CC needs.c -L. -lmissing-one -o needs && rm libmissing-one.so
"$TALLY" doctor ./needs >out.txt && fail "a library is missing"
has "missing" out.txt "libmissing-one.so is not found"
[ ! -e was-started ] || fail "doctor has run it"
TALLY_CONF=tags:false LD_PRELOAD=libm.so.6 "$TALLY" doctor >out.txt
has "environment" out.txt "TALLY_CONF=tags:false"
has "environment" out.txt "LD_PRELOAD=libm.so.6"
sleep 20 &
"$TALLY" doctor $! >out.txt
same "a process without: status" $? 1
has "a process without" out.txt "runs without Tally"
kill $!
