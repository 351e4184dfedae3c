#!/usr/bin/env bash
# Counts words with Kafka Streams under exactly_once_v2 over one broker on this machine, and kills an instance with SIGKILL in the
# middle: its tasks move to the other one, it comes back over the directory that the kill left, and the counts must be exact. Then an
# instance without any state restores all of it.
#
#   RECORDS=200000 WORDS=20000 STORES="esker rocksdb" LIMIT_SECONDS=120 ./wordcount.sh
#
# RECORDS=10000000 WORDS=1000000 LIMIT_SECONDS=1500 is the run at size. LIMIT_SECONDS bounds the counting of each store.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cd "$here/../.."
. scripts/setup.sh
exec </dev/null
records=${RECORDS:-200000}
words=${WORDS:-20000}
stores=${STORES:-esker}
limit=${LIMIT_SECONDS:-120}
partitions=4

out=$(target_dir)/bindings-kafka-streams
target=$out/wordcount
# What is on the class path is what was installed; test.sh does it before it comes here.
[ -n "${ESKER_BUILT:-}" ] || bindings/kafka-streams/build.sh
mkdir -p "$target"
(cd "$here/wordcount" && mvn -q -B -ntp -Desker.target="$target" compile dependency:build-classpath -Dmdep.outputFile="$target/classpath")
classpath=$target/classes:$(cat "$target/classpath")

work=$(mktemp -d "${TMPDIR:-/tmp}/esker-wordcount.XXXXXX")
pids=()
# Ends what this script started, and nothing else.
clean_up() {
    local pid
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    [ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap clean_up EXIT

fail() {
    echo "error: $*" >&2
    tail -n 30 "$work"/*.err >&2 || true
    exit 1
}
part() { timeout $((limit + 60)) java -Xmx512m -cp "$classpath" io.esker.kafka.wordcount.Main "$@"; }

# Waits until a line of a file matches, for some seconds.
wait_for() {
    local file=$1 pattern=$2 seconds=$3 i
    for ((i = 0; i < seconds * 5; i++)); do
        grep -Eq "$pattern" "$file" 2>/dev/null && return 0
        sleep 0.2
    done
    return 1
}
processed() { sed -n 's/^processed \([0-9]*\) .*/\1/p' "$1" 2>/dev/null | tail -n 1; }
since() { echo $(($(date +%s%3N) - $1)); }

mapfile -t ports < <(part ports 2)
broker=127.0.0.1:${ports[0]}
cat >"$work/broker.properties" <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports[1]}
listeners=PLAINTEXT://$broker,CONTROLLER://127.0.0.1:${ports[1]}
advertised.listeners=PLAINTEXT://$broker
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$work/broker
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
num.partitions=$partitions
END
java -Xmx512m -cp "$classpath" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$work/broker.properties" \
    >"$work/format.out" 2>"$work/format.err" || fail "the broker's directory could not be made"
java -Xmx1g -cp "$classpath" kafka.Kafka "$work/broker.properties" >"$work/broker.out" 2>"$work/broker.err" &
pids+=($!)
for ((i = 0; i < 150; i++)); do
    (exec 3<>"/dev/tcp/127.0.0.1/${ports[0]}") 2>/dev/null && break
    kill -0 "${pids[0]}" 2>/dev/null || fail "the broker ended"
    sleep 0.2
done
part produce "$broker" $partitions "$records" "$words" 2>"$work/produce.err" || fail "words could not be sent"

instance=0
# Starts an instance for a store, in a directory of its own unless one is given. Sets `pid`, `log` and `directory`.
start() {
    local store=$1 application=$2
    instance=$((instance + 1))
    log=$work/$store-$instance.out
    directory=${3:-$work/state-$instance}
    java -Xmx1g -cp "$classpath" io.esker.kafka.wordcount.Main count "$broker" "$application" "$directory" "$store" \
        >"$log" 2>"${log%.out}.err" &
    pid=$!
    pids+=("$pid")
}

for store in $stores; do
    application=count-$store
    begun=$(date +%s%3N)
    # The topic of the counts has as many partitions as the others; the broker makes it when it is written to first.
    start "$store" "$application"
    first=$pid first_log=$log first_directory=$directory
    start "$store" "$application"
    second=$pid second_log=$log
    wait_for "$first_log" 'state RUNNING' 60 || fail "the first instance does not run"
    wait_for "$second_log" 'state RUNNING' 60 || fail "the second instance does not run"

    # Killed when it has done an eighth of the whole, and so has something to lose.
    for ((i = 0; i < limit * 5; i++)); do
        done_first=$(processed "$first_log")
        [ "${done_first:-0}" -ge $((records / 8)) ] && break
        sleep 0.2
    done
    [ "${done_first:-0}" -ge $((records / 8)) ] || fail "the first instance came to ${done_first:-0} records only"
    before=$(grep -c '^restore ' "$second_log") || true
    kill -9 "$first"
    wait "$first" 2>/dev/null || true
    echo "$store: killed an instance after $done_first records"
    for ((i = 0; i < 300; i++)); do
        moved=$(($(grep -c '^restore ' "$second_log" || true) - before))
        [ "$moved" -gt 0 ] && break
        sleep 0.2
    done
    [ "$moved" -gt 0 ] || fail "$store: no task of the killed instance moved to the other"
    # It comes back, with what the kill left in its directory.
    start "$store" "$application" "$first_directory"
    back=$pid back_log=$log

    part check "$broker" "$application" "$records" "$words" "$limit" 2>"$work/check-$store.err" || fail "$store: the counts are not exact"
    took=$(since "$begun")
    echo "$store: counts exact after $took ms, $((records * 1000 / took)) records/s"
    wait_for "$back_log" 'state RUNNING' 60 || fail "$store: the instance that was killed does not run again"

    kill -TERM "$second" "$back"
    wait "$second" "$back" 2>/dev/null || true
    grep -q '^closed after' "$second_log" || fail "$store: the second instance did not close"
    grep -q '^closed after' "$back_log" || fail "$store: the instance that came back did not close"

    # An instance with an empty directory.
    start "$store" "$application"
    third=$pid third_log=$log
    wait_for "$third_log" "^processed .* restores $partitions " "$limit" || fail "$store: the state was not restored"
    line=$(grep -E "^processed .* restores $partitions " "$third_log" | head -n 1)
    echo "$store: restored on a new instance: $line"
    [ "$(sed 's/.* restored \([0-9]*\) .*/\1/' <<<"$line")" -gt 0 ] || fail "$store: nothing was restored"
    kill -TERM "$third"
    wait "$third" 2>/dev/null || true
done
echo "word count: passed ($stores)"
