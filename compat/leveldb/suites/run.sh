#!/usr/bin/env bash
# Programs and test suites of others, unmodified, on the LevelDB replacement: each is installed from its registry
# or from Debian, run with our library in the place of LevelDB's, and counted.
#
#   compat/leveldb/suites/run.sh [--library DIR] [SUITE...]
#
# DIR holds libleveldb.so.1d and libleveldb.so; without it the replacement is built. `--library debian` runs the
# same on LevelDB itself, which is how a suite's own failures are told from ours. SUITE: rust go plyvel
# debian_plyvel ceph mono minetest litecoin; all without.
#
# Ends with a table of tests passed out of tests run, and with 1 when one failed that is no known miss, when a suite did
# not use the library, or when docs/COMPATIBILITY.md says something else.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cd "$here/../../.."
. scripts/setup.sh
exec </dev/null

library= ours=true
if [ "${1:-}" = --library ]; then
    library=$2
    shift 2
fi
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(rust go plyvel debian_plyvel ceph mono minetest litecoin)

# The library under test, at a path that every user may read: some suites do not run as root.
work=$(mktemp -d "${TMPDIR:-/tmp}/leveldb-suites.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir "$work/lib"
case $library in
'')
    compat/leveldb/build.sh "$(target_dir)/leveldb"
    library=$(target_dir)/leveldb
    ;;
debian)
    ours=false
    apt_install libleveldb1d libleveldb-dev
    library=$(dirname "$(ldconfig -p | sed -n 's/.*libleveldb\.so\.1d .*=> //p' | head -n 1)")
    ;;
esac
cp -L "$library/libleveldb.so.1d" "$work/lib/libleveldb.so.1d"
ln -s libleveldb.so.1d "$work/lib/libleveldb.so"

# Runs a command with the library in the place of LevelDB's, and writes down which libraries it loads.
with_library() {
    env LD_LIBRARY_PATH="$work/lib" LD_DEBUG=files LD_DEBUG_OUTPUT="$run/loaded" "$@"
}

# The same in the background: $! is the program's own number.
start_with_library() {
    (exec env LD_LIBRARY_PATH="$work/lib" LD_DEBUG=files LD_DEBUG_OUTPUT="$run/loaded" "$@") &
}

# Runs a command as a user who is not root, whom files without permissions stop.
as_nobody() {
    if [ "$(id -u)" -eq 0 ]; then
        chown -R nobody "$run"
        setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$run" "$@"
    else
        "$@"
    fi
}

# Installs a package with a service that Debian starts, which nobody asked for: unless it was there before, it is ended.
install_without_service() {
    local package=$1 service=$2
    installed "$package" && return 0
    apt_install "$package" || return
    [ ! -d /run/systemd/system ] || as_root systemctl disable --now "$service" || note "$service may be running now"
}

# Counts a test of a suite that is a program's doings: `check "what is expected" command...`.
check() {
    local what=$1 && shift
    total=$((total + 1))
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "FAILED: $what" >&2
    fi
}

# A port that nobody listens on.
free_port() {
    /usr/bin/python3 - "$1" <<'END'
import socket, sys
kind = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}[sys.argv[1]]
with socket.socket(socket.AF_INET, kind) as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])
END
}

# Whether a text has this in it.
says() { grep -qF -- "$1" <<<"$2"; }

table=() status=0
for name in "${suites[@]}"; do
    [ -f "$here/$name.sh" ] || { echo "error: no suite $name" >&2; exit 2; }
    say "$name"
    run=$work/$name
    mkdir "$run"
    passed=0 total=0 about= misses=0
    # Each sets `about`, `passed` and `total`; `misses` are tests that fail with our library for reasons that the page tells.
    . "$here/$name.sh"
    suite || echo "$name ended with $?" >&2
    $ours || misses=0
    note=
    if ! grep -qs "calling init: $work/lib/libleveldb.so.1d" "$run"/loaded.*; then
        note=" (did not load the library)"
    fi
    [ $((passed + misses)) -eq "$total" ] && [ "$total" -gt 0 ] && [ -z "$note" ] || status=1
    row="| $about | $passed of $total |"
    if $ours && ! grep -qF "$row" docs/COMPATIBILITY.md; then
        note+=" (docs/COMPATIBILITY.md says something else)"
        status=1
    fi
    table+=("$row$note")
done
say "passed"
printf '%s\n' "${table[@]}"
exit $status
