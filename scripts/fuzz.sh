#!/usr/bin/env bash
# Fuzzes with libFuzzer, on the nightly compiler, from the inputs in fuzz/corpus.
#
#   scripts/fuzz.sh [TARGET [SECONDS]]    one target (or `all`), for so long each (60)
#   scripts/fuzz.sh seeds                 writes the seeds in fuzz/corpus anew
#
# New inputs are kept in fuzz/found/TARGET, which is not committed. What fails is left in
# fuzz/artifacts/TARGET; once fixed it goes to fuzz/corpus/TARGET, where the ordinary tests run it.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. scripts/setup.sh

target=${1:-all} seconds=${2:-60}
if [ "$target" = seeds ]; then
    export ESKER_FUZZ_WRITE_SEEDS=1 ESKER_FUZZ_SECONDS=0
    cargo test --locked -p esker --lib fuzzing::drive_tests::seeds
    cargo test --locked -p esker-cli --lib formats::fuzz
    exec cargo test --locked -p esker-transfer --lib leveldb::fuzz
fi

targets=()
for file in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$file" .rs)
    [ "$target" != all ] && [ "$target" != "$name" ] || targets+=("$name")
done
if [ ${#targets[@]} -eq 0 ]; then
    echo "no target $target; there are: $(cd fuzz/fuzz_targets && echo *.rs | sed 's/\.rs//g')" >&2
    exit 2
fi
if ! has_toolchain nightly; then
    echo "error: the fuzzer needs the nightly compiler: rustup toolchain install nightly" >&2
    exit 1
fi
need_build_tools
command -v c++ >/dev/null || apt_install g++

# What cargo-fuzz sets, so that it need not be installed: coverage for the fuzzer to see new paths,
# and the address sanitizer to see reads outside.
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Zsanitizer=address -Ccodegen-units=1 \
-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
bins=()
for name in "${targets[@]}"; do bins+=(--bin "$name"); done
(cd fuzz && cargo +nightly build --locked --release --target "$host" "${bins[@]}")

failed=()
for name in "${targets[@]}"; do
    say "$name, $seconds s"
    mkdir -p "fuzz/found/$name" "fuzz/artifacts/$name" "fuzz/corpus/$name"
    "fuzz/target/$host/release/$name" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=30 \
        -max_len=65536 -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$name/" \
        "fuzz/found/$name" "fuzz/corpus/$name" 2>&1 | grep -vE '^#|NEW|REDUCE' || failed+=("$name")
done
[ ${#failed[@]} -eq 0 ] || { echo "FAILED: ${failed[*]}"; exit 1; }
