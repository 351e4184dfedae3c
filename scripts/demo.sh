#!/usr/bin/env bash
# Builds Esker, loads Debian's package index into a store, looks into it, and compares Esker with
# LMDB and LevelDB on this machine. Installs what it needs. About eight minutes on two cores.
#
#   scripts/demo.sh [ARGUMENTS OF esker bench]
#
# The store stays in target/demo. Arguments replace those of the comparison, which is the rows of the first
# screen with three engines; `scripts/demo.sh --quick` has all engines that are installed, and `esker bench
# --setup` installs the others.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. scripts/setup.sh

say "set-up"
need_build_tools
need_first_peers || note "the comparison goes without what is missing"
index=()
if ! need_package_index; then
    note "there is no package index here; a small sample takes its place"
    index=(crates/esker-cli/testdata/packages.txt)
fi

say "build"
cargo build --locked --release -p esker-cli -p esker-bench # `esker bench` starts the second
target=$(target_dir)
esker=$target/release/esker
demo=$target/demo
mkdir -p "$demo"
rm -rf "$demo/packages.db"

ESKER=$esker crates/esker-cli/examples/debian-packages.sh "$demo/packages.db" "${index[@]}"

say "everything checked"
"$esker" verify "$demo/packages.db"

say "Esker beside other engines on this machine"
if [ $# -eq 0 ]; then
    set -- --suite first --engines esker,lmdb,leveldb --entries 300k --repeat 1 --seconds 1 --sustained-seconds 15
fi
status=0
"$esker" bench --dir "$demo/bench" --out "$demo/results" "$@" || status=$?

say "done"
echo "The store:  $demo/packages.db   try: $esker scan $demo/packages.db --prefix bash --keys-only"
echo "The table:  $demo/results/table.txt"
echo "Pictures:   $demo/results/report.html"
echo "As JSON:    $demo/results/results.jsonl"
exit $status
