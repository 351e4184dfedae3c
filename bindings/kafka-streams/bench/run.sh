#!/usr/bin/env bash
# Runs the stores' benchmark: `bench/run.sh ENTRIES [VALUE_BYTES]`. What is on the class path is what build.sh or test.sh installed.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cd "$here/../../.."
. scripts/setup.sh
target=$(target_dir)/bindings-kafka-streams/bench
cd "$here"
mkdir -p "$target"
mvn -q -B -ntp -Desker.target="$target" compile dependency:build-classpath -Dmdep.outputFile="$target/classpath"
exec java -Xmx2g -cp "$target/classes:$(cat "$target/classpath")" io.esker.kafka.bench.Bench "${@:-1000000}"
