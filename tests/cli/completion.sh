#!/bin/sh
# bash completion offers every command and every flag that the help texts have.
. "$(dirname "$0")/common.sh" || exit 1
command -v bash >/dev/null || exit 77
cat >ask.bash <<'B'
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
previous=; [ $COMP_CWORD -gt 0 ] && previous=${COMP_WORDS[COMP_CWORD - 1]}
compopt() { :; }
_tally "$1" "${COMP_WORDS[COMP_CWORD]}" "$previous"
printf '%s\n' "${COMPREPLY[@]}"
B
ask() { bash ask.bash "$COMPLETION" "$@" >offered.txt || fail "completion of $*"; }
offers() { # WHAT WORD...
    for word in "$@"; do grep -qxe "$word" offered.txt || { cat offered.txt; fail "no $word"; }; done
}
ask "$TALLY" ""
offers run report doctor start stop clear pause resume dump help --version
ask "$TALLY" re
same "re" "$(sort offered.txt | tr '\n' ' ')" "report resume "
for command in run report doctor dump stop; do
    ask "$TALLY" $command -
    "$TALLY" $command --help | grep -oE -e '(^| )--[a-z][a-z-]*' | tr -d ' ' | sort -u | while read -r flag; do
        [ "$flag" = -- ] || grep -qxE -e "$flag=?" offered.txt || fail "$command: no $flag"
    done || exit 1
done
ask "$TALLY" run --no-
offers --no-follow --no-tags --no-quiet --no-share
ask "$TALLY" run --auto
offers --auto-tags=
ask "$TALLY" run --auto-tags = mod
offers module module+caller
ask "$TALLY" report --sort al
offers allocated allocations
ask "$TALLY" run -q gre
offers grep
ask "$TALLY" run -q -- gre
offers grep
touch a.tally && ask "$TALLY" report a
offers a.tally
