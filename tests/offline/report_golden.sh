#!/bin/sh
# report_golden.sh - compares what `tally report` prints with what it should print.
#
# report_golden.sh DRIVER MAKER GOLDEN_DIRECTORY SCRATCH [--update]
# --update writes the golden files anew: look at the difference before committing it.
set -eu
driver=$1 maker=$2 golden=$3 scratch=$4 update=${5:-}

rm -rf "$scratch"
mkdir -p "$scratch"
"$maker" "$scratch"
cd "$scratch"
export TZ=UTC LC_ALL=C
unset NO_COLOR COLUMNS TERM || true
failed=0

# compare NAME STATUS ARGUMENTS...: output, complaints and exit status
compare() {
    name=$1 wanted=$2
    shift 2
    status=0
    "$driver" "$@" >"$name.out" 2>"$name.err" || status=$?
    { cat "$name.out"; sed 's/^/stderr: /' "$name.err"; } | tr -d '\r' >"$name.txt"
    if [ "$status" != "$wanted" ]; then
        echo "$name: exit status $status, expected $wanted"
        cat "$name.err"
        failed=1
    fi
    if [ "$update" = --update ]; then
        mkdir -p "$golden"
        cp "$name.txt" "$golden/$name.txt"
    elif ! diff -u "$golden/$name.txt" "$name.txt"; then
        echo "$name: differs from the golden file"
        failed=1
    fi
}

compare reference 0 reference.region
compare names 0 --min 0 names.region
compare names_csv 0 --csv names.region
compare names_json 0 --json names.region
compare names_tag 0 --tag 'a/?' names.region
compare repeated 0 repeated.region
compare repeated_full 0 --full repeated.region
compare repeated_sites 0 --sites repeated.region
compare many 0 many.region
compare many_exact 0 --exact --min 1.5% many.region
compare many_allocations 0 --sort allocations --min 100 many.region
compare many_depth 0 --depth 1 many.region
compare many_name 0 --sort name --min 50MiB many.region
compare many_sites 0 --sites many.region
compare many_tag 0 --tag 'item 00[12]' many.region
compare many_tag_none 0 --tag nowhere many.region
compare many_csv_min 0 --csv --min 10M many.region
compare equal 0 equal.region
compare equal_sites 0 --sites equal.region
compare freed 0 freed.region
compare freed_allocated 0 --sort allocated freed.region
compare nearly_freed 0 nearly_freed.region
compare damaged 0 damaged.region
compare deep 0 deep.region
compare deep_csv 0 --csv --depth 2 deep.region
compare symbols 0 symbols.tally
compare symbols_sites 0 --sites symbols.tally
compare symbols_tag 0 --tag 'scene::*' symbols.tally
compare symbols_json 0 --json symbols.tally
compare cut 0 cut.tally
compare several 1 reference.region broken.tally missing.tally repeated.region
compare usage_none 2
compare usage_sort 2 --sort size reference.region
compare usage_min 2 --min much reference.region
compare usage_depth 2 --depth -1 reference.region
compare usage_option 2 --nosuch reference.region
compare help 0 --help

# A terminal gets bars, colours and no line that is wider than it is; NO_COLOR takes the colours away.
if command -v script >/dev/null 2>&1; then
    terminal() {
        script -qec "stty cols $2 2>/dev/null; env $1 '$driver' --min 0 names.region symbols.tally" /dev/null </dev/null
    }
    terminal TERM=xterm 100 >terminal.txt
    grep -q "$(printf '\033')\[36m" terminal.txt || { echo 'terminal: no colours'; failed=1; }
    terminal NO_COLOR=1 100 | tr -d '\r' >bars.txt
    grep -q '█' bars.txt || { echo 'terminal: no bars'; failed=1; }
    terminal NO_COLOR=1 60 | tr -d '\r' >plain.txt
    grep -q "$(printf '\033')" plain.txt && { echo 'terminal: colours in spite of NO_COLOR'; failed=1; }
    # characters, not bytes: without the bytes that go on with one
    if sed -n "/^ *bytes/,/^\$/p" plain.txt | sed "s/[$(printf '\200')-$(printf '\277')]//g" | grep -E '^.{61}'; then
        echo 'terminal: lines too wide'
        failed=1
    fi
else
    echo 'script(1) is not installed: terminals not tested'
fi

# What cannot be written is an error.
if "$driver" reference.region >/dev/full 2>full.err; then
    echo 'a full disk goes unnoticed'
    failed=1
fi
grep -q 'cannot write' full.err || { echo 'a full disk is not explained'; failed=1; }

# The JSON is JSON, where there is something to check it with.
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys
for name in sys.argv[1:]:
    report = json.loads(open(name, encoding="utf-8").read())
    nodes = {node["id"]: dict(node) for node in report["nodes"]}
    for node in list(nodes.values()):
        if node["parent"] is not None: nodes[node["parent"]]["bytes_direct"] += node["bytes"]
    assert all(node["bytes"] == node["bytes_direct"] for node in nodes.values()), name
    assert nodes[0]["bytes"] == report["totals"]["bytes"], name
' names_json.out symbols_json.out || { echo 'JSON is wrong'; failed=1; }
fi
exit $failed
