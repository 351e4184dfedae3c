#!/usr/bin/env bash
# How fast programs of LevelDB's are on our library: the benchmark's adapter for LevelDB, which calls `leveldb/c.h`, run with
# LevelDB itself and with ours in its place. The same program, options and calls; only the library differs.
#
#   compat/leveldb/speed.sh OUTDIR [BENCH-OPTION...]      options of `esker bench`; without, the rows of 2011 once
#
# Leaves the results of both in OUTDIR and prints them side by side: a ratio above 1 is in our favour. The machine should
# have nothing else to do.
set -euo pipefail
[ $# -ge 1 ] && [[ "$1" != -* ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(readlink -f "$1")
shift
[ $# -gt 0 ] || set -- --suite leveldb2011 --entries 1m --repeat 1
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
need_build_tools
need_leveldb
compat/leveldb/build.sh "$out/library"
cargo build --locked --release -p esker-cli -p esker-bench
esker=$(target_dir)/release/esker
stores=$(mktemp -d "$out/stores.XXXXXX")
trap 'rm -rf "$stores"' EXIT
"$esker" bench --engines leveldb --dir "$stores" --out "$out/leveldb" "$@" >"$out/leveldb.txt"
LD_LIBRARY_PATH=$out/library "$esker" bench --engines leveldb --dir "$stores" --out "$out/esker" "$@" >"$out/esker.txt"
# It fails where something is slower; the table says what.
"$esker" bench compare "$out/leveldb" "$out/esker"
