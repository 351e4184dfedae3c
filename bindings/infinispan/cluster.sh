#!/usr/bin/env bash
# A cluster of three JVMs that are killed, one by one and all at once, and one of which runs out of disk. Every acknowledged entry has to be
# there. ENTRIES sets how many are written at a time. Needs what test.sh has built. Exits non-zero when an entry is missing.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
exec </dev/null
target=$(target_dir)/bindings-infinispan
work=$(mktemp -d "${TMPDIR:-/tmp}/esker-cluster.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A disk of 12 MB for the third node, in a namespace of its own: nobody else sees it, and it goes with the process.
mkdir -p "$work/disk/c"
# shellcheck disable=SC2016
small_disk=(unshare --mount sh -c 'mount -t tmpfs -o size=12m tmpfs "$0" && exec "$@"' "$work/disk/c")
[ "$(id -u)" -eq 0 ] || small_disk=(unshare --user --map-root-user "${small_disk[@]:1}")
"${small_disk[@]}" true 2>/dev/null || { echo "note: no small disk to be had (unshare, mount): that part is left out"; small_disk=(); }

timeout --kill-after=10 "${SECONDS_AT_MOST:-240}" java -Xmx128m -cp "$(cat "$target/run.classpath")" \
    io.esker.infinispan.cluster.ClusterDrive "$work" "${ENTRIES:-200}" "${small_disk[@]}" || {
    status=$?
    tail -n 40 "$work"/*/*.log >&2 || true
    exit $status
}
