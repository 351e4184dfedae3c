#!/usr/bin/env bash
# Builds libleveldb.so.1d, with Esker in it, into a directory.
#
#   compat/leveldb/build.sh OUTDIR
#
# Programs that are linked to LevelDB run with it by LD_LIBRARY_PATH=OUTDIR. Needs g++, LevelDB's headers
# (libleveldb-dev) and Snappy's (libsnappy-dev). CXXFLAGS are added.
set -euo pipefail
[ $# -eq 1 ] || {
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
mkdir -p "$1"
out=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
capi=../../crates/esker-capi

cargo build --locked --release -p esker-capi
target=$(cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
library=$target/release/libesker_capi.a

soname=libleveldb.so.1d
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
# No -fno-rtti: programs' classes derive from these, and type information is part of what LevelDB's library exports.
flags=(-std=c++17 -O2 -Wall -Wextra -fPIC -fvisibility=hidden -DNDEBUG
    -DLEVELDB_SHARED_LIBRARY -DLEVELDB_COMPILE_LIBRARY -I"$capi/include" -Isrc)
read -ra more <<<"${CXXFLAGS:-}"
printf '%s\0' src/*.cc | xargs -0 -P "$(nproc)" -I{} sh -c \
    'out=$1/$(basename "$2" .cc).o && shift 2 && exec g++ "$@" -o "$out"' \
    sh "$objects" {} "${flags[@]}" "${more[@]}" -c {}

g++ -shared -o "$out/$soname" -Wl,-soname,$soname -Wl,--version-script=exports.map -Wl,-z,defs -Wl,--gc-sections \
    -Wl,--strip-debug "${more[@]}" "$objects"/*.o "$library" -lsnappy -lpthread -ldl -lm
ln -sf $soname "$out/libleveldb.so.1"
ln -sf $soname "$out/libleveldb.so"
echo "$out/$soname"
