#!/bin/sh
# redis.sh - redis-server under redis-benchmark and a fixed script: the same answers and the same exit status as in a bare
# run, and an account that adds up. (It links an allocator of its own, jemalloc; its timers make it no two runs alike.)
set -eu
. "$(dirname "$0")/lib.sh"
need redis-server redis-benchmark redis-cli
cd "$scratch"
server=
at_end() {
    [ ! "$server" ] || kill -KILL "$server" 2>/dev/null || :
    rm -rf "$scratch"
}

# session NAME: starts a server by "$with", works on it, ends it by its pid
session() {
    mkdir "$1"
    socket=$scratch/$1/socket
    TALLY_RUN_DIR=$scratch/region LD_PRELOAD=$2 redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no \
        --dir "$scratch/$1" --daemonize no --logfile "$scratch/$1/log" --hz 10 </dev/null >"$1/out" 2>"$1/err" &
    server=$!
    tries=0
    until [ -S "$socket" ] && redis-cli -s "$socket" ping >/dev/null 2>&1; do
        [ $((tries += 1)) -lt 100 ] || fail "$1: no server: $(cat "$1/err" "$1/log")"
        sleep 0.1
    done
    redis-benchmark -s "$socket" -q -n 20000 -c 20 -d 300 -r 5000 -t set,get,lpush,lrange_100,zadd,hset,spop \
        >/dev/null 2>"$1/benchmark.err" || fail "$1: redis-benchmark: $(cat "$1/benchmark.err")"
    redis-cli -s "$socket" flushall >/dev/null
    redis-cli -s "$socket" <commands >"$1/answers"
    redis-cli -s "$socket" debug digest >>"$1/answers" 2>&1
    [ ! "$3" ] || cp "$scratch"/region/"$server"-*.region while-running
    kill -TERM "$server"
    status=0
    wait "$server" || status=$?
    pid=$server server=
    echo "$status" >"$1/status"
}

i=0
while [ $((i += 1)) -le 2000 ]; do
    echo "set key:$i value$i$i$i"
    echo "append key:$((i / 2)) and$i"
    echo "hset hash:$((i % 50)) f$i $i"
    echo "rpush list:$((i % 20)) e$i"
    echo "zadd zset $((i * 7919 % 1000)) m$i"
    [ $((i % 5)) -ne 0 ] || echo "del key:$((i / 5))"
    [ $((i % 100)) -ne 0 ] || echo "eval 'return redis.call(\"hlen\", \"hash:$((i % 50))\") * 2' 0"
done >commands
cat >>commands <<'EOF'
dbsize
strlen key:1999
lrange list:3 0 -1
zrange zset 0 20 withscores
sort list:4 alpha desc limit 0 5
debug object key:1000 nonsense
EOF
mkdir -m 700 region
session bare '' ''
session with "$TALLY_LIB" yes
cmp bare/answers with/answers || fail "the answers differ"
cmp bare/status with/status || fail "exit status $(cat with/status), bare $(cat bare/status)"
cmp bare/err with/err || fail "stderr: $(cat with/err)"
"$SUMS" region/"$pid"-*.region >sums || fail "the account does not add up"
eval "$(cat sums)"
cat sums
[ "$allocated_blocks" -gt 50000 ] || fail "only $allocated_blocks allocations"
same_number "missed frees and untracked allocations" $((missed_frees + untracked_allocs)) 0
