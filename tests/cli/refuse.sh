#!/bin/sh
# Programs that cannot be accounted are recognised from their file and not started: 125, the reason, and what to do.
. "$(dirname "$0")/common.sh" || exit 1
cat >hello.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(void) { void *volatile p = malloc(10); free(p); fclose(fopen("was-started", "w")); return 0; }
C

# refused WHAT REASON PROGRAM...
refused() {
    what=$1 reason=$2
    shift 2
    rm -f was-started
    timeout 5 "$TALLY" run -- "$@" >out.txt 2>err.txt
    same "$what: status" $? 125
    has "$what: reason" err.txt "$reason"
    has "$what: advice" err.txt "not started; "
    [ ! -e was-started ] || fail "$what was started"
    timeout 5 "$TALLY" doctor -- "$@" >doctor.txt 2>&1
    same "$what: doctor's status" $? 125
    has "$what: doctor's reason" doctor.txt "$reason"
    has "$what: doctor's advice" doctor.txt "what to do: "
    [ ! -e was-started ] || fail "doctor started $what"
    echo "$what: ok"
}

$CC -static hello.c -o static 2>/dev/null && refused "static" "linked statically" ./static
$CC -static-pie hello.c -o static-pie 2>/dev/null && refused "static PIE" "linked statically" ./static-pie
for kind in address thread leak; do
    $CC -fsanitize=$kind hello.c -o sanitized 2>/dev/null || continue
    refused "$kind sanitizer" "Sanitizer" ./sanitized
    $CC -fsanitize=$kind -static-lib$([ $kind = address ] && echo a || echo ${kind%"${kind#?}"})san hello.c -o sanitized 2>/dev/null &&
        refused "$kind sanitizer, linked in" "Sanitizer" ./sanitized
done
if $CC hello.c -Wl,-Bstatic -ljemalloc_pic -Wl,-Bdynamic -lm -ldl -lpthread -lstdc++ -o jemalloc 2>/dev/null; then
    refused "jemalloc linked in" "allocator linked in (jemalloc)" ./jemalloc
    strip jemalloc && refused "jemalloc linked in, stripped" "allocator linked in" ./jemalloc
else
    echo "no static jemalloc here"
fi
$CC -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1 hello.c -o musl && refused "musl" "musl" ./musl

# of another machine: the ELF header's machine, and its class
$CC hello.c -o here || fail "no compiler"
cp here arm && printf '\050' | dd of=arm bs=1 seek=18 conv=notrunc 2>/dev/null && refused "another machine" "machine 40" ./arm
cp here bits32 && printf '\001' | dd of=bits32 bs=1 seek=4 conv=notrunc 2>/dev/null && refused "32 bits" "32-bit" ./bits32

# an allocator of its own, hidden: only the symbol table shows it
cat >hidden.c <<'C'
#include <stddef.h>
static char pool[1 << 20];
static size_t used;
__attribute__((visibility("hidden"))) void *malloc(size_t bytes) { used += (bytes + 15) & ~(size_t)15; return pool + used; }
__attribute__((visibility("hidden"))) void free(void *p) { (void)p; }
C
$CC -fno-builtin hello.c hidden.c -o hidden && refused "a hidden allocator" "it defines malloc itself" ./hidden

# setuid: to somebody who is not us
if [ "$(id -u)" = 0 ] && chown 65534 static 2>/dev/null; then
    cp here setuid && chown 65534 setuid && chmod 4755 setuid
    if ! findmnt -no OPTIONS -T . 2>/dev/null | grep -q nosuid; then refused "setuid" "setuid" ./setuid; fi
    cp here setgid && chgrp 65534 setgid && chmod 2755 setgid
    if ! findmnt -no OPTIONS -T . 2>/dev/null | grep -q nosuid; then refused "setgid" "setgid" ./setgid; fi
    cp here own && chmod 4755 own && timeout 5 "$TALLY" run -q -o own.tally -- ./own
    same "setuid to ourselves" "$?" 0
fi

# scripts: what counts is their interpreter
printf '#!%s/static\necho\n' "$PWD" >script && chmod +x script && refused "a script" "linked statically" ./script
has "a script: its interpreter" err.txt "script, run by .*/static cannot"
mkdir bin && cp static bin/interp && printf '#!/usr/bin/env -S interp -x\n' >script2 && chmod +x script2
PATH=$PWD/bin:$PATH refused "a script of env" "linked statically" ./script2
has "a script of env: its interpreter" err.txt "script2, run by .*bin/interp cannot"
printf '#!/bin/sh\nexit 9\n' >script3 && chmod +x script3
"$TALLY" run -q -o script3.tally -- ./script3
same "a script that is fine" $? 9
printf 'exit 8\n' >script4 && chmod +x script4
"$TALLY" run -q -o script4.tally -- ./script4
same "a script without a first line" $? 8

# a malloc of the program's own that passes calls on can be accounted
cat >wrapper.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <stdint.h>
void *malloc(size_t bytes) { static void *(*next)(size_t); if (!next) next = (void *(*)(size_t))(uintptr_t)dlsym(RTLD_NEXT, "malloc"); return next(bytes); }
int main(void) { void *volatile p = malloc(123457); return p == NULL; }
C
$CC wrapper.c -o wrapper && "$TALLY" run -q -o wrapper.tally -- ./wrapper
same "a wrapper" $? 0
"$TALLY" report --csv wrapper.tally >wrapper.csv
has "a wrapper's block" wrapper.csv ",123457,"

"$TALLY" run -- no-such-program 2>err.txt
same "not found" $? 127
has "not found" err.txt "no-such-program: No such file"
"$TALLY" run -- ./hello.c 2>err.txt
same "not executable" $? 126
"$TALLY" run -- . 2>err.txt
same "a directory" $? 126
printf '#!/no/such/interpreter\n' >script5 && chmod +x script5
"$TALLY" run -- ./script5 2>err.txt
same "no interpreter" $? 127
has "no interpreter" err.txt "/no/such/interpreter"
TALLY_LIBRARY=/no/such/libtally.so "$TALLY" run -- true 2>err.txt
same "no library" $? 125
has "no library" err.txt "/no/such/libtally.so"
no_leftovers
