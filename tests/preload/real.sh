#!/bin/sh
# real.sh - real programs under the library: output and exit status as in a bare run, and the account as valgrind counts
# it: the same allocations, frees and bytes, to the last one. Usage: real.sh sqlite3|python3|cc1plus|git
#
# Frees are compared too, so blocks that live to the end of the process must be the same ones. valgrind would free some
# of libc's and libstdc++'s by itself at the end (not with --run-libc-freeres=no --run-cxx-freeres=no).
set -eu
. "$(dirname "$0")/lib.sh"
need valgrind
mkdir "$scratch/place"
cd "$scratch/place" # where the programs run: nothing but their input, for python3 lists the folder of its script

# The environment is part of a program's input (python3 copies it into objects): each run gets the variables that
# valgrind gives, with an LD_PRELOAD just as long. Values have no spaces.
base="PATH=/usr/bin:/bin HOME=$scratch XDG_RUNTIME_DIR=$scratch LC_ALL=C"
set_environments() {
    env -i $base "$@" valgrind -q --log-file=/dev/null env >../environment
    grep -v '^LD_PRELOAD=' ../environment >../environment.bare
    long=$(sed -n 's/^LD_PRELOAD=//p' ../environment)
    preload=$TALLY_LIB
    while [ ${#preload} -lt ${#long} ]; do preload=/$preload; done
    [ ${#preload} -eq ${#long} ] || fail "shorten the path of the build folder: $preload"
    sed "s|^LD_PRELOAD=.*|LD_PRELOAD=$preload|" ../environment >../environment.with
    base="$base $*"
}

before= # a command in front that only changes how the program is started
# three_runs COMMAND...: bare, under the library, under valgrind. Sets allocated_blocks and so on, and allocs, frees and
# bytes: valgrind's. A file `input` is the program's stdin.
three_runs() {
    [ -f ../input ] || : >../input
    bare=0 with=0
    env -i $(cat ../environment.bare) $before "$@" <../input >../bare.out 2>../bare.err || bare=$?
    env -i $(cat ../environment.with) $before "$@" <../input >../with.out 2>../with.err || with=$?
    same_number "exit status" $with $bare
    cmp ../bare.out ../with.out || fail "stdout differs"
    cmp ../bare.err ../with.err || fail "stderr differs: $(cat ../with.err)"
    accounts=$(ls ./*.tally)
    [ "$(echo "$accounts" | wc -l)" -eq 1 ] || fail "more than one account: $accounts"
    mv "$accounts" ../account
    eval "$("$SUMS" ../account)"
    env -i $base $before valgrind --run-libc-freeres=no --run-cxx-freeres=no --log-file=../valgrind.log "$@" \
        <../input >../valgrind.out 2>../valgrind.err || :
    cmp ../bare.out ../valgrind.out || fail "valgrind changes the output: no base for a comparison"
    set -- $(sed -n 's/.*total heap usage: \([0-9,]*\) allocs, \([0-9,]*\) frees, \([0-9,]*\) bytes.*/\1 \2 \3/p' \
        ../valgrind.log | tr -d ,)
    [ $# -eq 3 ] || fail "no heap summary of valgrind: $(cat ../valgrind.log)"
    allocs=$1 frees=$2 bytes=$3
    echo "tally:    $allocated_blocks allocations, $freed_blocks frees, $allocated_bytes bytes"
    echo "valgrind: $allocs allocations, $frees frees, $bytes bytes"
    [ "$untracked_allocs$missed_frees$unmatched_frees" = 000 ] ||
        fail "untracked: $untracked_allocs, missed frees: $missed_frees, unmatched frees: $unmatched_frees"
}

equal_to_valgrind() {
    same_number allocations "$allocated_blocks" "$allocs"
    same_number frees "$freed_blocks" "$frees"
    same_number "bytes allocated" "$allocated_bytes" "$bytes"
}

case ${1:-} in
sqlite3)
    need sqlite3
    set_environments
    cat >../input <<'SQL'
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i+1 from n where i<20000)
  insert into t select i, printf('row %d %s', i, hex(i*i)), i/7.0 from n;
create index tb on t(b);
select count(*), sum(c), max(b) from t;
select b, count(*) from t group by substr(b,1,6) order by 2 desc, 1 limit 5;
with recursive n(i) as (select 1 union all select i+1 from n where i<150000)
  select count(distinct upper('x'||i)||lower('Y'||i)) from n;
select length(group_concat(a || b, ';')) from t;
SQL
    three_runs sqlite3 :memory:
    [ "$allocated_blocks" -gt 1000000 ] || fail "only $allocated_blocks allocations: too small a workload"
    equal_to_valgrind
    ;;
python3)
    # Debian's python3 is not position-independent: function addresses in it may be stubs that lead to us.
    need /usr/bin/python3 setarch
    set_environments PYTHONMALLOC=malloc PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
    cat >work.py <<'PY'
import json, re, collections, itertools
words = ["w%d" % (i * 7919 % 10007) for i in range(60000)]
tree = {}
for w in words:
    node = tree
    for c in w: node = node.setdefault(c, {})
print(len(json.dumps(tree)), collections.Counter(words).most_common(3), sum(map(len, itertools.combinations(range(40), 3))))
class Node:
    def __init__(self, n): self.child, self.name = [], str(n)
level = [Node(0)]
for d in range(12): level = [n.child.append(m) or m for n in level for m in (Node(d), Node(d))]
print(len(level))
raise SystemExit(3)
PY
    # Without address randomisation its heap begins low in memory, as under valgrind: else numbers made of addresses are
    # longer objects. That leaves the thread's identity, an address which each import makes a number of: 32 bytes
    # natively, 28 under valgrind, where everything lies below 2^30.
    before="setarch -R"
    three_runs /usr/bin/python3 -S -s work.py
    [ "$allocated_blocks" -gt 400000 ] || fail "only $allocated_blocks allocations: PYTHONMALLOC did not work"
    more_bytes=$((allocated_bytes - bytes))
    [ $((more_bytes % 4)) -eq 0 ] && [ $more_bytes -ge 0 ] && [ $more_bytes -le 600 ] ||
        fail "$more_bytes bytes more than valgrind are no longer numbers"
    echo "difference: $((more_bytes / 4)) numbers are longer by 4 bytes"
    bytes=$allocated_bytes
    equal_to_valgrind
    ;;
cc1plus)
    need g++ setarch
    set_environments
    cat >work.cc <<'CC'
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
template <int N> struct chain { using type = std::tuple<std::integral_constant<int, N>, typename chain<N - 1>::type>; };
template <> struct chain<0> { using type = int; };
template <int... I> int sum(std::integer_sequence<int, I...>) { return (0 + ... + I); }
template <int N> std::map<std::string, std::vector<std::function<int(typename chain<N>::type)>>> table() { return {}; }
int main() { return (int)(table<30>().size() + table<31>().size() + sum(std::make_integer_sequence<int, 500>())) & 1; }
CC
    g++ -std=c++17 -E -P work.cc -o work.ii
    # -o - : the assembler text is the output that is compared. Without address randomisation, see below.
    before="setarch -R"
    three_runs "$(g++ -print-prog-name=cc1plus)" -quiet -O0 -std=c++17 -fpreprocessed work.ii -o -
    # Two things in cc1plus depend on where its memory lies, and valgrind's lies elsewhere; nothing else may differ.
    # Its garbage collector keeps a table per 4 GiB window of addresses, and never frees it: blocks of 2064 bytes for the
    # window and of 32768 for its parts. And what it looks up by address in a hash table may come in another order, which
    # costs or saves now and then a passing block of 104 bytes.
    pairs=$((freed_blocks - frees)) more=$((allocated_blocks - allocs)) more_bytes=$((allocated_bytes - bytes))
    [ $pairs -ge -2 ] && [ $pairs -le 2 ] || fail "frees: $pairs more than valgrind"
    tables=
    for windows in -2 -1 0 1 2; do
        parts=$((more - pairs - windows))
        [ $((windows * 2064 + parts * 32768 + pairs * 104)) -ne $more_bytes ] || tables=found
    done
    [ "$tables" ] || fail "$more allocations and $more_bytes bytes more than valgrind are not those of cc1plus's tables"
    echo "difference: $more allocations, $pairs frees, $more_bytes bytes, all of them cc1plus's tables by address"
    ;;
git)
    need git
    set_environments GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
    mkdir repository
    cd repository
    git init -q -b main .
    i=0
    {
        while [ $((i += 1)) -le 150 ]; do
            printf 'commit refs/heads/main\ncommitter A <a@b.c> %d +0000\ndata 3\nc%02d\n' $((1000000000 + i)) $((i % 100))
            printf 'M 100644 inline file%d\ndata <<END\n' $((i % 7))
            j=0
            while [ $((j += 1)) -le 60 ]; do echo "line $j $((i * j % 13))"; done
            printf 'END\n\n'
        done
    } | git fast-import --quiet
    cd ..
    three_runs git -C repository log -p
    [ "$(grep -c ^commit ../with.out)" -eq 150 ] || fail "git log showed other commits"
    equal_to_valgrind
    ;;
*)
    fail "usage: real.sh sqlite3|python3|cc1plus|git"
    ;;
esac
