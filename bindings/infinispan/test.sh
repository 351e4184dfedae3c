#!/usr/bin/env bash
# Builds the cache store and runs Infinispan's suites, its own tests, the README's program in an empty project, and a cluster that is killed.
# ESKER_CAMPAIGN=1: more random operations, more entries in the cluster, and Infinispan's suites over RocksDB, for comparison.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
exec </dev/null
need_build_tools
command -v javac >/dev/null || apt_install openjdk-17-jdk-headless
command -v mvn >/dev/null || apt_install maven
need_faults

bindings/java/build.sh
target=$(target_dir)/bindings-infinispan
mkdir -p "$target"
cd bindings/infinispan
repository=${ESKER_MAVEN_REPOSITORY:-$HOME/.m2/repository}
maven=(mvn -q -B -ntp -Dstyle.color=never "-Dmaven.repo.local=$repository" "-Desker.target=$target")
campaign=${ESKER_CAMPAIGN:-}

operations=20000
[ -z "$campaign" ] || operations=500000
status=0
say "Infinispan's suites and own tests"
timeout --kill-after=10 1500 "${maven[@]}" "-Desker.operations=$operations" install >"$target/tests.log" 2>&1 || status=1
[ $status = 0 ] || tail -n 60 "$target/tests.log"
grep -h 'esker.seed' "$target/tests.log" || true
# Maven is quiet about what passed; the runner's own report has it.
sed -n '1,/<suite /s/.*\(<testng-results [^>]*>\).*/\1/p' "$target/surefire-reports/testng-results.xml"

if [ -n "$campaign" ]; then
    say "Infinispan's suites over RocksDB"
    "${maven[@]}" -Desker.suite=src/test/suites-rocksdb.xml test >"$target/rocksdb.log" 2>&1 || echo "RocksDB does not pass them all"
    sed -n '1,/<suite /s/.*\(<testng-results [^>]*>\).*/\1/p' "$target/surefire-reports/testng-results.xml"
fi

say "The README's program in an empty project"
./readme.sh "$target/readme" "$repository" || status=1

# What programs of ours run with.
"${maven[@]}" dependency:build-classpath -Dmdep.includeScope=test "-Dmdep.outputFile=$target/dependencies.classpath"
# A copy: another build may replace the installed jar while nodes run.
cp "$repository/io/esker/esker/0.1.0/esker-0.1.0.jar" "$target/esker-run.jar"
printf '%s:%s:%s:%s' "$target/classes" "$target/test-classes" "$target/esker-run.jar" \
    "$(cat "$target/dependencies.classpath")" >"$target/run.classpath"

say "The comparison with other stores, at a small size"
comparison() {
    local out=$target/comparison tests
    rm -rf "$out"
    timeout --kill-after=10 300 java -cp "$(cat "$target/run.classpath")" io.esker.infinispan.bench.Comparison \
        500 80 "$out/stores" "$out" 2 esker,softindex >"$out.log" 2>&1 || { tail -n 20 "$out.log"; return 1; }
    tests=$(grep -c '"engine":"esker"' "$out/results.jsonl")
    [ "$tests" -ge 10 ] && [ "$(grep -c '"engine":"softindex"' "$out/results.jsonl")" = "$tests" ]
}
comparison || { echo "FAILED: the comparison" && status=1; }

say "A cluster"
ENTRIES=${campaign:+5000} SECONDS_AT_MOST=${campaign:+480} ./cluster.sh || status=1
exit $status
