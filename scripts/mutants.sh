#!/usr/bin/env bash
# Breaks the modules that keep data (log, manifest, recovery, merges, tables) in one place at a time
# (a comparison turned round, a function that returns a default, a `+` for a `-`) and runs the tests:
# whether they notice. All places take a day, so a random sample of them is the measure.
#
#   scripts/mutants.sh [COUNT [SEED]]   a sample of so many (80), by this seed (1)
#   scripts/mutants.sh all              every one
#   scripts/mutants.sh again FILE       those named in FILE, as `missed.txt` names them
#
# Two passes: the engine's quick unit tests, with few of their random cases; then, for what they let
# pass, all unit tests and those from outside. Exits with 1 when less than 85 % are noticed. Leaves in
# target/mutants the names: caught.txt, missed.txt, timeout.txt, unviable.txt; logs are in quick/ and
# all/.
#
# A place that makes a test run for ever ends by the limit on its processor time, or after
# ESKER_MUTANTS_TIMEOUT seconds (300) when it waits; both count as noticed. ESKER_MUTANTS_JOBS (1)
# are tried at a time.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. scripts/setup.sh
exec </dev/null

what=${1:-80} seed=${2:-1} least=85
timeout=${ESKER_MUTANTS_TIMEOUT:-300}

need_build_tools
need_cargo_tool cargo-mutants
out=$(target_dir)/mutants
mkdir -p "$out"

# Tests of other modules, and those that take longest: not in the first pass.
slow=(memtable:: fault_tests fault_campaigns every_flipped_byte resealed_garbage)
# Builds are most of the time.
export CARGO_INCREMENTAL=1
# Per process: a loop without an end, and one that takes memory, must not take the machine along.
ulimit -t 300 -v $((8 << 20))

# The names of mutants on standard input, as one pattern.
pattern_of() {
    sed -e 's/[][(){}.*+?^$|\\]/\\&/g' | paste -sd '|' | sed -e 's/^/^(/' -e 's/$/)$/'
}

# Runs the mutants named in a file: pass NAME FILE CARGO-ARGUMENTS... [-- TEST-ARGUMENTS...]
pass() {
    local name=$1 list=$2 status=0 file arguments=() && shift 2
    rm -rf "${out:?}/$name" && mkdir -p "$out/$name"
    while [ $# -gt 0 ] && [ "$1" != -- ]; do arguments+=(--cargo-arg="$1") && shift; done
    # All of them need no pattern, which would be too long. Fields left out of a struct are tried whatever
    # the pattern says, so files of which none is named are excluded.
    [ "$what $name" = "all quick" ] || arguments+=(--re "$(pattern_of <"$list")")
    while read -r file; do arguments+=(--exclude "$file"); done \
        < <(comm -23 <(cargo mutants --list-files | sort) <(cut -d: -f1 "$list" | sort -u))
    cargo mutants --output "$out/$name" --timeout "$timeout" --jobs "${ESKER_MUTANTS_JOBS:-1}" \
        --colors never "${arguments[@]}" -- "$@" || status=$?
    # 2: some were missed; 3: some timed out. Anything else is a failure of the run itself.
    case $status in 0 | 2 | 3) return 0 ;; *) return "$status" ;; esac
}

# Of a pass, those of the sample that ended so.
names() { grep -xFf "$out/sample.txt" "$out/$1/mutants.out/$2.txt" || true; }

# Always the same bytes for a seed, however many are taken.
bytes_of() { openssl enc -aes-256-ctr -pass "pass:$1" -nosalt </dev/zero 2>/dev/null; }

case $what in
again) cp "${2:?name a file of places}" "$out/sample.txt" ;;
all) cargo mutants --list --colors never >"$out/sample.txt" ;;
*)
    cargo mutants --list --colors never >"$out/all.txt"
    shuf -n "$what" --random-source=<(bytes_of "$seed") "$out/all.txt" | sort >"$out/sample.txt"
    say "$(wc -l <"$out/sample.txt") of $(wc -l <"$out/all.txt") places, seed $seed"
    ;;
esac

say "quick unit tests"
skip=()
for test in "${slow[@]}"; do skip+=(--skip "$test"); done
ESKER_IMAGES=300 ESKER_FUZZ_SECONDS=0 pass quick "$out/sample.txt" --lib -- "${skip[@]}"
for end in caught timeout unviable missed; do names quick $end >"$out/$end.txt"; done

if [ -s "$out/missed.txt" ]; then
    say "all tests, for $(wc -l <"$out/missed.txt") that these let pass"
    ESKER_IMAGES=2000 ESKER_FUZZ_SECONDS=1 ESKER_OPS=20000 ESKER_ROUNDS=20 ESKER_CASES=300 \
        pass all "$out/missed.txt" --lib --test=regressions --test=model --test=damage \
        --test=options --test=scenarios --test=hostile --test=damage
    names all caught >>"$out/caught.txt"
    names all timeout >>"$out/timeout.txt"
    names all missed >"$out/missed.txt"
fi

count() { wc -l <"$out/$1.txt"; }
noticed=$(($(count caught) + $(count timeout)))
viable=$((noticed + $(count missed)))
say "$(count sample) places: $(count caught) noticed, $(count timeout) by running for ever," \
    "$(count missed) missed; $(count unviable) do not compile"
cat "$out/missed.txt"
[ "$viable" -gt 0 ] || { echo "error: none could be tried" >&2; exit 1; }
awk -v a="$noticed" -v b="$viable" 'BEGIN { printf "%.1f %% of %d noticed\n", 100 * a / b, b }'
[ $((100 * noticed)) -ge $((least * viable)) ]
