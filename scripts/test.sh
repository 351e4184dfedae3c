#!/usr/bin/env bash
# Installs what the tests need and runs them. Goes on after a failure, lists all failures at the end,
# and exits with 1 when there was any.
#
#   scripts/test.sh            what a contributor runs, in some ten minutes: fmt clippy targets tests docs, and the tests
#                              of the bindings whose languages are installed
#   scripts/test.sh --all      every test at full length, and the campaigns:
#                              features oldest capi leveldb suites callers long models miri tsan bench report,
#                              several of them at once
#   scripts/test.sh STEP...    only these
#
# ESKER_CAMPAIGN=1, which --all sets, gives tests that take random cases their full counts.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. scripts/setup.sh

# Nothing here asks anything, and nothing may wait for an answer.
exec </dev/null
# What runs beside others ignores an interrupt.
trap 'kill -TERM 0' INT
export CARGO_INCREMENTAL=0 CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

quick=(fmt clippy targets tests docs bindings)
campaigns=(features oldest capi leveldb suites callers long models miri tsan bench report)
case "${1:-}" in
'')
    wanted=("${quick[@]}")
    export ESKER_QUICK=1
    ;;
--all)
    wanted=("${quick[@]}" "${campaigns[@]}")
    export ESKER_CAMPAIGN=1
    ;;
*) wanted=("$@") ;;
esac
for name in "${wanted[@]}"; do
    [[ " ${quick[*]} ${campaigns[*]} " == *" $name "* ]] || {
        echo "error: no step $name; there are: ${quick[*]} ${campaigns[*]}" >&2
        exit 2
    }
done
passed=() failed=()
# What steps that failed have said, to be said again at the end.
failures=$(mktemp -d)

# Whether a step is to run.
is_wanted() { [[ " ${wanted[*]} " == *" $1 "* ]]; }

step() {
    local name=$1 start=$SECONDS && shift
    is_wanted "$name" || return 0
    say "$name: $*"
    if "$@"; then
        passed+=("$name ($((SECONDS - start)) s)")
    else
        failed+=("$name")
        echo "FAILED: $name" >&2
    fi
}

# Steps at the same time: so many of them at any moment, begun in this order. An argument is a step's name, and what the step is told.
# What one says comes when it is done, so that no two are mixed. To the first the others give way: it should be the longest.
at_once() {
    local most=$1 some=() entry logs running=0 nice=0 && shift
    for entry in "$@"; do
        ! is_wanted "${entry%% *}" || some+=("$entry")
    done
    if [ ${#some[@]} -le 1 ]; then
        # shellcheck disable=SC2086 # a name and words
        for entry in "${some[@]}"; do step "${entry%% *}" $entry; done
        return 0
    fi
    logs=$(mktemp -d)
    for entry in "${some[@]}"; do
        if [ "$running" -ge "$most" ]; then
            wait -n || true
            running=$((running - 1))
        fi
        beside_others "$entry" "$logs" "$nice" &
        running=$((running + 1)) nice=10
    done
    wait
    for entry in "${some[@]}"; do
        # Whose process was killed has not passed.
        if [ -s "$logs/$entry.passed" ]; then
            passed+=("$entry ($(cat "$logs/$entry.passed"))")
        else
            failed+=("$entry")
        fi
    done
    rm -rf "$logs"
}

beside_others() {
    local entry=$1 log="$2/$1" start=$SECONDS
    renice -n "$3" $BASHPID >/dev/null || true
    # What it took of the processors says where to save; how long it took says more of its neighbours.
    local TIMEFORMAT='%U %S' took
    # shellcheck disable=SC2086
    if { time $entry >"$log" 2>&1; } 2>"$log.processor"; then echo $((SECONDS - start)) >"$log.passed"; fi
    took=$(awk 'END { printf "%d", $1 + $2 }' "$log.processor")
    [ ! -s "$log.passed" ] || echo "$((SECONDS - start)) s beside others, $took of a processor" >"$log.passed"
    {
        flock 9
        say "$entry: beside others, after $((SECONDS - start)) s, $took of a processor"
        cat "$log"
        [ -s "$log.passed" ] || { echo "FAILED: $entry" >&2; cp "$log" "$failures/$entry"; }
    } 9>"$2/lock"
}

# Tools that come with the compiler.
need_components() {
    local missing=()
    cargo fmt --version >/dev/null 2>&1 || missing+=(rustfmt)
    cargo clippy --version >/dev/null 2>&1 || missing+=(clippy)
    [ ${#missing[@]} -eq 0 ] || rustup component add "${missing[@]}"
}

# Miri and ThreadSanitizer come with the nightly compiler, where there is one.
need_nightly() {
    local components=()
    ! is_wanted miri || components+=(miri rust-src)
    ! is_wanted tsan || components+=(rust-src)
    [ ${#components[@]} -gt 0 ] || return 0
    has_nightly && rustup component add --toolchain nightly "${components[@]}"
}

has_nightly() { has_toolchain nightly; }

set_up() {
    need_build_tools || return 1
    need_components || return 1
    need_peers || return 1
    need_c_programs || return 1
    need_valgrind || true
    # Nothing but apt keeps two of these from being in each other's way.
    need_nightly || note "no nightly toolchain: Miri and ThreadSanitizer are left out"
    need_faults || note "no strace or prlimit here: tests that need them are left out"
    need_package_index || note "no package index here: its test uses the committed sample only"
}

# Fails when one of some names of tests, which a step is about to run, is that of no test, or of ignored ones
# alone: the step would leave it out without a word. Further arguments: the command that runs all tests.
need_tests() {
    local names=$1 all ignored name status=0 && shift
    all=$("$@" -- --list) && ignored=$("$@" -- --list --ignored) || return 1
    all=$(grep ': test$' <<<"$all" | grep -vxFf <(grep ': test$' <<<"$ignored"; echo "no name")) || true
    for name in $names; do
        grep -qF -- "$name" <<<"$all" || {
            echo "error: no test is called $name" >&2
            status=1
        }
    done
    return $status
}

clippy() { cargo clippy --locked --workspace --all-targets -- -D warnings; }

# What is built elsewhere: the versions that workspaces of their own keep, and the library for systems that
# no test runs on here, without what needs a C compiler for them.
targets() {
    local status=0 target dir workspace
    for workspace in fuzz crates/esker-bench-engines bindings/python bindings/java/native bindings/node/native; do
        cargo update --workspace --locked --manifest-path $workspace/Cargo.toml || status=1
    done
    dir=$(target_dir)/targets
    # A contributor's run takes the one that is least like this machine.
    local names=(aarch64-apple-darwin)
    [ -n "${ESKER_QUICK:-}" ] || names+=(x86_64-apple-darwin aarch64-unknown-linux-gnu)
    for target in "${names[@]}"; do
        rustup target list --installed | grep -qx "$target" || rustup target add "$target" || return 1
        RUSTFLAGS="-D warnings" CARGO_TARGET_DIR=$dir \
            cargo check --locked -p esker --no-default-features --target "$target" || status=1
    done
    return $status
}

# The tests of the library's tables, and all of its code, without its default features. What needs one that is not among them
# is in the tests of the workspace, which have all of them: it must not be missing there.
features() {
    local run=(cargo test --locked -p esker --no-default-features --lib) dir
    need_tests configuration_file cargo test --locked --workspace --test options || return 1
    dir=$(target_dir)/targets
    local -x RUSTFLAGS="-D warnings" CARGO_TARGET_DIR=$dir
    need_tests table:: "${run[@]}" || return 1
    "${run[@]}" -- table::
}

# Library, command and benchmark with the oldest compiler that they say they need.
oldest() {
    local oldest dir
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if ! has_toolchain "$oldest" && ! rustup toolchain install "$oldest" --profile minimal; then
        note "no Rust $oldest here, and it cannot be installed: whether it compiles library, command and benchmark is not checked"
        return 0
    fi
    dir=$(target_dir)/targets/oldest
    CARGO_TARGET_DIR=$dir cargo "+$oldest" check --locked -p esker -p esker-capi -p esker-cli -p esker-bench
}

# The library in LevelDB's place, beside LevelDB itself.
leveldb() {
    need_leveldb || return 1
    need_valgrind || true
    compat/leveldb/test.sh
}

# Programs and test suites of others on the library in LevelDB's place: docs/COMPATIBILITY.md.
suites() {
    need_leveldb && compat/leveldb/suites/run.sh
}

# The C library as users get it: installed below a prefix and packed for Debian, and a program that finds it there by
# pkg-config. (Its programs, its header and valgrind are among the tests.)
capi() {
    local dir status=0 deb
    dir=$(mktemp -d)
    scripts/install.sh "$dir/prefix" && c_program "$dir/prefix" lib "$dir" || status=1
    if command -v dpkg-deb >/dev/null; then
        scripts/deb.sh || status=1
        deb=$(echo target/debian/esker_*.deb)
        dpkg-deb --contents "$deb" || status=1
        dpkg-deb --extract "$deb" "$dir/root" &&
            c_program "$dir/root/usr" "lib/$(cc -print-multiarch)" "$dir" || status=1
    else
        note "no dpkg-deb here: the Debian package is left out"
    fi
    rm -rf "$dir"
    return $status
}

# Compiles the guide's first program against what is installed below a prefix, and runs it there with both libraries; and the
# command, its pages and its completions are there.
c_program() {
    local prefix=$1 libdir=$2 dir=$3 name status=0
    local -x PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig PKG_CONFIG_LIBDIR=/nowhere
    # A package that is only extracted lies elsewhere than it says.
    local pc=(pkg-config "--define-variable=prefix=$prefix")
    awk '/^```/ { inside = ($0 == "```c" && !seen++); next } inside' docs/C.md >"$dir/first.c"
    # shellcheck disable=SC2046
    cc -std=c11 -Wall -Wextra -Werror $("${pc[@]}" --cflags esker) "$dir/first.c" -o "$dir/first" \
        $("${pc[@]}" --libs esker) || return 1
    rm -rf "$dir/stores" && mkdir "$dir/stores"
    (cd "$dir/stores" && LD_LIBRARY_PATH=$prefix/$libdir "$dir/first") || status=1
    # shellcheck disable=SC2046
    cc -std=c11 $("${pc[@]}" --cflags esker) "$dir/first.c" -o "$dir/first-static" \
        "$prefix/$libdir/libesker.a" -pthread -ldl -lm || return 1
    (cd "$dir/stores" && "$dir/first-static") || status=1
    "$prefix/bin/esker" --version || status=1
    "$prefix/bin/esker" count "$dir/stores/trees" || status=1
    for name in include/esker.hpp share/bash-completion/completions/esker "$libdir/libesker.so.0"; do
        [ -s "$prefix/$name" ] || { echo "no $prefix/$name"; status=1; }
    done
    ls "$prefix"/share/man/man1/esker.1* "$prefix"/share/man/man1/esker-load.1* || status=1
    return $status
}

# Some of the bindings for other languages and of the stores for systems in Java, those whose language is here. While a contributor
# waits, only the tests of the bindings; else all of it but their campaigns, which are their own: ESKER_CAMPAIGN=1
# bindings/NAME/test.sh.
bindings() {
    local status=0 left_out=() name
    local -x ESKER_CAMPAIGN=
    for name in "$@"; do
        if [ -n "${ESKER_QUICK:-}" ] && [[ $name = infinispan || $name = kafka-streams ]]; then
            note "left out, as they take minutes; scripts/test.sh bindings runs them: the tests of bindings/$name"
        elif has_language "$name"; then
            say "bindings/$name"
            timeout --kill-after=10 2400 "bindings/$name/test.sh" || status=1
        else
            left_out+=("$name")
        fi
    done
    [ ${#left_out[@]} -eq 0 ] || note "left out, as their languages are not here or too old: ${left_out[*]}"
    return $status
}

# Whether what a binding is for is here, and not older than the binding needs it.
has_language() {
    local oldest found
    case $1 in
    go) oldest=$(sed -n 's/^go //p' bindings/go/go.mod) && found=$(go env GOVERSION 2>&1) ;;
    node) oldest=20 && found=$(node --version 2>&1) ;;
    python) oldest=3.9 && found=$(python3 --version 2>&1) ;;
    *) oldest=17 && found=$(javac -version 2>&1) ;;
    esac || return 1
    found=$(grep -o -m 1 '[0-9][0-9.]*' <<<"$found" | head -n 1)
    [ "$(printf '%s\n' "$oldest" "$found" | sort -V | head -n 1)" = "$oldest" ]
}

# Unit, integration and documentation tests; among them the package index (package_index.rs). Built together, and run in three
# rows beside each other: each has stretches in which it waits, and tests that have a core to themselves. A contributor's run keeps
# its stores in memory where that is to be had: most of what it waits for otherwise are syncs. The full one uses the disk.
# A store that hangs must not hang whoever waits for the answer.
tests() {
    local run=(cargo test --locked --workspace) engine others logs row dir status=0
    "${run[@]}" --no-run || return 1
    run=(timeout --kill-after=10 2700 "${run[@]}" --no-fail-fast)
    engine=$(test_names crates/esker)
    # All but those of the adapters, which are a workspace of their own.
    # shellcheck disable=SC2046 # names of crates
    others=$(test_names $(ls -d crates/* | grep -v 'bench-engines$') | grep -vxF "$engine")
    logs=$(mktemp -d) dir=${TMPDIR:-/tmp}
    if [ -z "${ESKER_CAMPAIGN:-}" ] && memory_has_room; then
        # Some tests read as another user.
        dir=$(mktemp -d /dev/shm/esker-tests.XXXXXX) && chmod 755 "$dir" || return 1
        # shellcheck disable=SC2064 # this directory
        trap "rm -rf '$dir'" EXIT
    fi
    local -x TMPDIR=$dir
    # shellcheck disable=SC2046 # names of tests
    "${run[@]}" $(printf -- '--test %s ' $engine) >"$logs/engine" 2>&1 &
    local rows=($!)
    # shellcheck disable=SC2046
    "${run[@]}" $(printf -- '--test %s ' $others) >"$logs/others" 2>&1 &
    rows+=($!)
    "${run[@]}" --lib --bins || status=1
    "${run[@]}" --doc || status=1
    for row in "${rows[@]}"; do wait "$row" || status=1; done
    cat "$logs/engine" "$logs/others"
    rm -rf "$logs"
    return $status
}

# Whether there is a file system in memory that stores can lie in: containers have a small one.
memory_has_room() {
    [ -w /dev/shm ] && [ "$(df --output=avail -B1M /dev/shm | tail -n 1)" -ge 2048 ]
}

# The names of the integration tests of some crates: tests/NAME.rs and tests/NAME/main.rs.
test_names() {
    local crate
    for crate in "$@"; do ls -d "$crate"/tests/*.rs "$crate"/tests/*/main.rs 2>/dev/null; done |
        sed 's|/main\.rs$||; s|.*/||; s|\.rs$||' | sort -u
}

docs() { RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps; }

# The unsafe code that needs no real file, under Miri: a sample of its tests that takes a few minutes.
# ESKER_MIRI=all runs everything that Miri can, for hours.
miri() {
    has_nightly || return 0
    local sample=(
        batch:: entry_chunk:: memtable::version_chains memtable::index::tests::threads read::iter::
        wal::sync_tests::waiters wal::sync_tests::a_failure wal::tests::a_batch_is_one_frame
        wal::tests::single_puts_come_back wal::tests::separated_values wal::tests::the_documented_example
        table::block_builder table::memory util::abbreviated_key
    )
    local run=(cargo +nightly miri test --locked -p esker --lib)
    local -x MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance"
    if [ "${ESKER_MIRI:-}" = all ]; then
        "${run[@]}"
        return
    fi
    need_tests "${sample[*]}" "${run[@]}" || return 1
    "${run[@]}" -- "${sample[@]}"
}

# All interleavings of a few threads of what synchronizes without locks, or decides who waits: loom
# in place of the locks and atomics. ESKER_MODELS=all allows one preemption more, for hours.
models() {
    local run=(cargo test --locked -p esker --lib) dir
    dir=$(target_dir)/models
    local -x RUSTFLAGS="--cfg esker_models" CARGO_TARGET_DIR=$dir
    need_tests models:: "${run[@]}" || return 1
    "${run[@]}" -- models:: --nocapture --test-threads=1
}

# The tests with many threads under ThreadSanitizer, the standard library built with it too. Halts on
# the first report of each program. ESKER_TSAN=all runs every test of the engine's, for long.
tsan() {
    has_nightly || return 0
    local host dir status=0
    dir=$(target_dir)
    host=$(rustc +nightly -vV | sed -n 's/^host: //p')
    local run=(cargo +nightly test --locked -Zbuild-std --target "$host" -p esker)
    local -x RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1 exitcode=66"
    # A report of a race is of use with its lines alone.
    local -x CARGO_TARGET_DIR=$dir/tsan CARGO_PROFILE_DEV_DEBUG=line-tables-only
    if [ "${ESKER_TSAN:-}" = all ]; then
        "${run[@]}" --lib --tests --no-fail-fast
        return
    fi
    local sample=(memtable::index::tests::threads::readers_of_scattered
        memtable::index::tests::threads::readers_of_keys_backwards wal::sync_tests)
    need_tests "${sample[*]}" "${run[@]}" --lib || return 1
    "${run[@]}" --lib -- "${sample[@]}" || status=1
    ESKER_RACES=${ESKER_RACES:-200} "${run[@]}" --test concurrent --test gaps --test races || status=1
    return $status
}

# Builds the commands that the tests of these names start, as they are built for all tests: with the features that the whole
# workspace asks for, so that nothing is compiled a second time.
built_for_tests() {
    local run=(cargo test --locked --workspace --no-run) name
    for name in "$@"; do run+=(--test "$name"); done
    "${run[@]}"
}

# Adversarial callers for three minutes, as compiled for debugging: assertions find more than speed does.
# In memory where that is to be had, as most of a round is syncs otherwise. ESKER_CALLERS_SECONDS for more.
callers() {
    built_for_tests kills || return 1
    local dir
    dir=$(mktemp -d "$(memory_has_room && echo /dev/shm || echo "${TMPDIR:-/tmp}")/esker-callers.XXXXXX")
    # What a round that failed left stays there.
    "$(target_dir)/debug/esker-crashtest" callers --seconds "${ESKER_CALLERS_SECONDS:-180}" --dir "$dir"
}

# 600,000 random operations against a sorted map, and a soak, as optimized as users have it.
long() {
    local status=0 soak
    cargo test --locked --release --no-run -p esker --test model --test budgets || return 1
    ESKER_SOAK_SECONDS=${ESKER_SOAK_SECONDS:-100} \
        cargo test --locked --release -p esker --test budgets -- --nocapture &
    soak=$!
    ESKER_OPS=${ESKER_OPS:-600000} cargo test --locked --release -p esker --test model || status=1
    wait "$soak" || status=1
    return $status
}

# Every row of three suites with every engine, and of the others with six, at a small size, by the command as built: that it
# runs, that no row loses data, that all engines are there and all files are written. Not how fast they are.
bench() {
    built_for_tests bench setup || return 1
    local esker out engines status=0
    esker=$(target_dir)/debug/esker
    out=$(mktemp -d)
    engines=${ESKER_BENCH_ENGINES:-$(target_dir)/bench-engines}
    # Not where engines lie that are measured: nobody looks at how fast these are, and compiling them well takes longer.
    local -x ESKER_BENCH_ENGINES=$engines CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1
    "$esker" bench --setup || status=1
    adapters "$engines/target" || status=1
    timeout --kill-after=10 2400 "$esker" bench --suite core,leveldb2011,motion --engines all --quick --scale 0.01 \
        --dir "$out/stores" --out "$out/results" >"$out/table.txt" || status=1
    tail -n 40 "$out/table.txt"
    # The other suites ask the engines for the same at other sizes and in other mixes: six stand for all.
    timeout --kill-after=10 1200 "$esker" bench --suite wiredtiger2013,symas2014,voldemort,ycsb --quick --scale 0.01 \
        --engines esker,lmdb,rocksdb,leveldb,sqlite,wiredtiger --dir "$out/stores" --out "$out/others" >"$out/others.txt" || status=1
    tail -n 20 "$out/others.txt"
    check_failures "$out/others/results.jsonl" || status=1
    check_results "$out/results" "$("$esker" bench --list | sed -n 's/^engine \([^:]*\):.*/\1/p')" || status=1
    rm -rf "$out"
    return $status
}

# The adapters outside the workspace, beside what the set-up has just built in this directory: each engine in a process of its
# own. What a signal ended is the engine's fault where its adapter has no unsafe code: that is told, and the test runs once more.
adapters() {
    local run names name status=0 log
    run=(cargo test --locked --release --manifest-path crates/esker-bench-engines/Cargo.toml --target-dir "$1")
    "${run[@]}" --lib --bins || status=1
    names=$("${run[@]}" --test conformance -- --list | sed -n 's/: test$//p')
    [ -n "$names" ] || { echo "error: no engine's adapter has a test"; return 1; }
    log=$(mktemp)
    for name in $names; do
        "${run[@]}" --test conformance -- --exact "$name" 2>&1 | tee "$log" && continue
        if ! grep -q '(signal: ' "$log" || grep -q unsafe "crates/esker-bench-engines/src/${name%%_conforms*}.rs"; then
            status=1
            continue
        fi
        note "a signal ended $name; once more"
        "${run[@]}" --test conformance -- --exact "$name" || status=1
    done
    rm -f "$log"
    return $status
}

# Whether a directory of results has its files, every engine with as many rows of 2011 as Esker, every
# field in every line, and no failure.
check_results() {
    local dir=$1 engines=$2 status=0 name rows wanted field bad
    local lines=$dir/results.jsonl
    for name in results.jsonl table.txt report.html report.md chart-leveldb2011.svg; do
        [ -s "$dir/$name" ] || { echo "no $name"; status=1; }
    done
    [ "$(wc -w <<<"$engines")" -ge 17 ] || { echo "engines are missing: $engines"; status=1; }
    wanted=$(rows_of_2011 "$lines" esker)
    [ "$wanted" -ge 30 ] || { echo "only $wanted rows of leveldb2011"; status=1; }
    for name in $engines; do
        rows=$(rows_of_2011 "$lines" "$name")
        [ "$rows" -eq "$wanted" ] || { echo "$name has $rows of $wanted rows of leveldb2011"; status=1; }
    done
    for field in suite section table row engine version class unit value ops_per_s ratio_best_peer \
        ratio_limit spread interval told_apart unquiet runs p50_us p99_us p999_us max_us hist cpu_s written_bytes read_bytes \
        peak_memory_bytes disk_bytes raw_bytes entries key_len value_size memory_bytes \
        memory_limit_bytes compression sync seed threads writer over_time sustained cv settings note failed missing \
        command cpu cores kernel date bench_version; do
        bad=$(grep -vc "\"$field\":" "$lines") || true
        [ "$bad" -eq 0 ] || { echo "$bad lines have no $field"; status=1; }
    done
    check_failures "$lines" || status=1
    return $status
}

# Whether lines of results tell of nothing that failed.
check_failures() {
    local bad
    bad=$(grep -v '"failed":null' "$1" | grep -vE '"failed":"(not supported|too slow): ') || true
    [ -s "$1" ] && [ -z "$bad" ] || { echo "failed: ${bad:-no results in $1}"; return 1; }
}

# How many rows of the suite an engine has figures in, or has no means for.
rows_of_2011() {
    grep '"suite":"leveldb2011"' "$1" | grep "\"engine\":\"$2\"" | grep -c '"missing":null' || true
}

# The report of a run, opened in a real browser: light, dark, printed, on a desk and on a phone.
report() {
    apt_install chromium fonts-dejavu-core fonts-liberation || return 1
    timeout --kill-after=10 900 cargo test --locked --workspace --test report -- --nocapture
}

say "set-up"
set_up || failed+=("set-up")
step fmt cargo fmt --all --check
at_once 2 clippy targets
# What keeps a core busy beside what waits for a disk, for a registry or for a while to pass. The longest begin; the benchmark
# waits for the commands that are built with the tests.
at_once 2 tests bench tsan models miri capi suites "bindings java infinispan kafka-streams" \
    "bindings go python node" long callers leveldb features oldest docs report

say "summary, after $SECONDS s"
[ ${#passed[@]} -eq 0 ] || printf 'passed: %s\n' "${passed[@]}"
if [ ${#failed[@]} -gt 0 ]; then
    for log in "$failures"/*; do
        [ -s "$log" ] || continue
        say "what failed in $(basename "$log"), and its end"
        grep -a -n -E 'FAILED|FAILURE|panicked at|^(not ok|error|E  )|Error:' "$log" | head -n 40 || true
        tail -n 40 "$log"
    done
    rm -rf "$failures"
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
rm -rf "$failures"
echo "all passed"
