#!/usr/bin/env bash
# Builds Esker behind LevelDB's interface and tests it. The tests are built once, with LevelDB's own headers, and run
# twice: with Debian's LevelDB, which shows that they say what LevelDB does, and with ours. Then once more with ours under
# Valgrind, where it is installed. Goes on after a failure; the exit code is the number of steps that failed.
#
#   compat/leveldb/test.sh [OUTDIR]      OUTDIR: where to build; else a directory that is removed
#
# LEVELDB_REFERENCE is the library to compare with, when it is not where Debian has it.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
out=${1:-$made/out}
mkdir -p "$out"
out=$(readlink -f "$out")
export TMPDIR=$made
failed=0

step() {
    local name=$1 && shift
    echo "== $name"
    "$@" || {
        echo "FAILED: $name" >&2
        failed=$((failed + 1))
    }
}

reference=${LEVELDB_REFERENCE:-/usr/lib/$(gcc -print-multiarch)/libleveldb.so.1d}
[ -e "$reference" ] || {
    echo "error: no $reference; install libleveldb-dev, or name LevelDB's library in LEVELDB_REFERENCE" >&2
    exit 1
}
reference=$(readlink -f "$(dirname "$reference")")/$(basename "$reference")

CXXFLAGS="-Werror ${CXXFLAGS:-}" "$here/build.sh" "$out" || exit 1
# Debugging information, so that a trace has lines; assertions of the headers are on.
warnings=(-g -O1 -Wall -Wextra -Werror)
gcc -std=c11 "${warnings[@]}" "$here/tests/c_test.c" -o "$made/c_test" -L"$(dirname "$reference")" -lleveldb || exit 1
g++ -std=c++17 "${warnings[@]}" "$here"/tests/*.cc -o "$made/cc_test" -L"$(dirname "$reference")" \
    -lleveldb -ldl -pthread || exit 1
# As programs are that are compiled without type information and derive from LevelDB's classes.
g++ -std=c++17 "${warnings[@]}" -fno-rtti "$here"/tests/*.cc -o "$made/cc_test_no_rtti" -L"$(dirname "$reference")" \
    -lleveldb -ldl -pthread || exit 1
g++ -std=c++17 "${warnings[@]}" "$here/tests/tools/exchange.cc" -o "$made/exchange" -L"$(dirname "$reference")" \
    -lleveldb || exit 1

# Each function of c.h is called by the C test.
all_functions_are_called() {
    local header missing
    header=$(echo '#include "leveldb/c.h"' | gcc -E -x c - | grep -o 'leveldb_[a-z_]*(' | tr -d '(' | sort -u)
    [ "$(wc -l <<<"$header")" -ge 68 ] || { echo "c.h has $(wc -l <<<"$header") functions" && return 1; }
    missing=$(comm -23 <(echo "$header") <(nm -D --undefined-only "$1" | grep -o 'leveldb_[a-z_]*' | sort -u))
    [ -z "$missing" ] || { echo "c.h has, and the C test does not call: $missing" && return 1; }
}

# What a program says that runs with the library in a directory. The rest: the program.
with() {
    local library=$1 stores && shift
    stores=$(mktemp -d)
    LD_LIBRARY_PATH=$library LEVELDB_UNDER_TEST=$library timeout 900 "$@" "$stores"
    local status=$?
    rm -rf "$stores"
    return $status
}
c_test() { with "$1" "${@:2}" "$made/c_test"; }
cc_test() { LEVELDB_TEST_FILTER=${filter:-} with "$1" "${@:2}" "$made/cc_test"; }

# What one library writes the other reads; tables are the same bytes, and DumpFile says the same of LevelDB's files,
# whole and damaged.
exchange() { LD_LIBRARY_PATH=$1 timeout 300 "$made/exchange" "${@:2}"; }
tables_are_exchanged() {
    local theirs ours status=0
    theirs=$(mktemp -d) ours=$(mktemp -d)
    exchange "$1" write "$theirs" && exchange "$2" write "$ours" || return 1
    diff -rq "$theirs" "$ours" || status=1
    exchange "$1" read "$ours" || status=1
    exchange "$2" read "$theirs" || status=1
    return $status
}
dumps_are_the_same() {
    local store damaged kinds status=0
    store=$(mktemp -d)/store damaged=$(mktemp -d)
    exchange "$1" store "$store" && exchange "$1" dump "$store" "$made/dump.theirs" || return 1
    [ "$(wc -l <"$made/dump.theirs")" -gt 3000 ] || { echo "the dump is short" && return 1; }
    exchange "$2" dump "$store" "$made/dump.ours" && cmp "$made/dump.theirs" "$made/dump.ours" || status=1
    diff -a "$made/dump.theirs" "$made/dump.ours" | cut -c1-200 | head -20
    exchange "$1" damage "$store" "$damaged" || return 1
    exchange "$1" dump "$damaged" "$made/damage.theirs" && exchange "$2" dump "$damaged" "$made/damage.ours" || status=1
    # It was damage of many kinds.
    kinds=$(grep -ao '^corruption: .*' "$made/damage.theirs" | sed 's/.*bytes; //' | sort -u | wc -l)
    [ "$kinds" -ge 4 ] || { echo "only $kinds kinds of damage" && status=1; }
    diff -a "$made/damage.theirs" "$made/damage.ours" | cut -c1-200 | head -20
    cmp -s "$made/damage.theirs" "$made/damage.ours" || status=1
    return $status
}
files_of_leveldb_are_refused() {
    local store
    store=$(mktemp -d)/store
    exchange "$1" store "$store" && exchange "$2" refused "$store" || return 1
    # As half a backup.
    rm "$store/CURRENT" && exchange "$2" refused "$store"
}

step "every function of c.h is called" all_functions_are_called "$made/c_test"
step "exports" "$here/tests/exports.sh" "$reference" "$out/libleveldb.so.1d"
for library in "$(dirname "$reference")" "$out"; do
    step "C, with $library" c_test "$library"
    step "C++, with $library" cc_test "$library"
done
step "C++ without type information, with ours" with "$out" "$made/cc_test_no_rtti"
theirs=$(dirname "$reference")
step "tables are exchanged" tables_are_exchanged "$theirs" "$out"
step "dumps are the same" dumps_are_the_same "$theirs" "$out"
step "files of LevelDB are refused" files_of_leveldb_are_refused "$theirs" "$out"
if command -v valgrind >/dev/null; then
    check=(valgrind --quiet --child-silent-after-fork=yes --error-exitcode=9
        --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite)
    export LEVELDB_TEST_SMALL=1
    step "C, with ours under Valgrind" c_test "$out" "${check[@]}"
    step "C++, with ours under Valgrind" cc_test "$out" "${check[@]}"
else
    echo "note: no Valgrind here; its run is left out"
fi
echo "$failed steps failed"
exit $failed
