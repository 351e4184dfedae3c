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

"$here/build.sh" "$out" || exit 1
# Debugging information, so that a trace has lines; assertions of the headers are on.
warnings=(-g -O1 -Wall -Wextra -Werror)
gcc -std=c11 "${warnings[@]}" "$here/tests/c_test.c" -o "$made/c_test" -L"$(dirname "$reference")" -lleveldb || exit 1
g++ -std=c++17 "${warnings[@]}" "$here"/tests/*.cc -o "$made/cc_test" -L"$(dirname "$reference")" \
    -lleveldb -lsnappy -ldl -pthread || exit 1

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

step "every function of c.h is called" all_functions_are_called "$made/c_test"
step "exports" "$here/tests/exports.sh" "$reference" "$out/libleveldb.so.1d"
for library in "$(dirname "$reference")" "$out"; do
    step "C, with $library" c_test "$library"
    step "C++, with $library" cc_test "$library"
done
if command -v valgrind >/dev/null; then
    check=(valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite
        --suppressions="$here/tests/valgrind.supp")
    export LEVELDB_TEST_SMALL=1
    step "C, with ours under Valgrind" c_test "$out" "${check[@]}"
    step "C++, with ours under Valgrind" cc_test "$out" "${check[@]}"
else
    echo "note: no Valgrind here; its run is left out"
fi
echo "$failed steps failed"
exit $failed
