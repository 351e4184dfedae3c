#!/usr/bin/env bash
# Which lines of the engine its tests run: by module, the tests' own code left out. Exits with 1 when
# less than 90 % of the lines of one of the modules that keep data ran: the log, the manifest,
# recovery, merges, tables.
#
#   scripts/coverage.sh [TEST ARGUMENTS...]   after `--`, arguments for the tests, such as a name
#
# Leaves in target/coverage: lcov.info, and missed.txt with the lines of each file that did not run.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. scripts/setup.sh
exec </dev/null

required="wal version recovery compaction table" least=90

need_build_tools
need_faults || note "no strace or prlimit here: tests that need them are left out"
need_cargo_tool cargo-llvm-cov
# The programs that read what an instrumented program counted come with the compiler.
rustup component list --installed | grep -q '^llvm-tools' || rustup component add llvm-tools

out=$(target_dir)/coverage
mkdir -p "$out"
rm -f "$out"/lcov.info "$out"/missed.txt

# A failed test would make the figures those of half a run: none are printed then. Processes that tests
# kill may leave half a file of counts: it is left out.
ESKER_CAMPAIGN=1 CARGO_INCREMENTAL=0 cargo llvm-cov --failure-mode all --locked -p esker --lib --tests \
    --lcov --output-path "$out/lcov.info" "$@"

say "lines that ran in a test, without those of tests"
status=0
awk -f scripts/lines_covered.awk -v root="$PWD/crates/esker/src/" -v required="$required" -v least=$least \
    -v others="worker write read memtable segments store repair check" -v missed="$out/missed.txt" \
    "$out/lcov.info" || status=$?
echo "what did not run: $out/missed.txt"
exit $status
