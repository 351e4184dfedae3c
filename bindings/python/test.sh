#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment, and tests it there, with the oldest and the newest Python that is here.
# ESKER_QUICK=1: only the tests, with one Python and a wheel built for them. ESKER_CAMPAIGN=1 makes the random operations more.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
exec </dev/null
need_build_tools

command -v python3 >/dev/null || apt_install python3 python3-venv
shared=$(target_dir)
target=$shared/bindings-python
mkdir -p "$target"
cd bindings/python

# Tools in an environment of their own: nothing of the system's Python is changed.
tools=$target/tools
[ -x "$tools/bin/maturin" ] || {
    rm -rf "$tools"
    python3 -m venv "$tools" || { apt_install python3-venv && python3 -m venv "$tools"; }
    "$tools/bin/pip" install -q 'maturin>=1.7,<2'
}

if [ -n "${ESKER_QUICK:-}" ]; then
    rm -rf "$target/quick" "$target/quick-wheels"
    CARGO_TARGET_DIR=$shared/bindings "$tools/bin/maturin" build -q --profile dev --locked --out "$target/quick-wheels"
    python3 -m venv "$target/quick"
    "$target/quick/bin/pip" install -q --disable-pip-version-check "$target"/quick-wheels/esker-*.whl pytest
    timeout --kill-after=10 300 "$target/quick/bin/python" -m pytest -q -p no:cacheprovider
    exit
fi

seconds=300
if [ "${ESKER_CAMPAIGN:-}" = 1 ]; then
    export ESKER_OPS=${ESKER_OPS:-100000}
    seconds=1200
fi
status=0
cargo fmt --check || status=1
CARGO_TARGET_DIR=$shared cargo clippy --release --locked -- -D warnings || status=1
rm -rf "$target/wheels"
CARGO_TARGET_DIR=$shared "$tools/bin/maturin" build -q --release --locked --out "$target/wheels"

# Whether a Python is there, can make environments, and is not older than 3.9.
usable() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1; }
pythons=()
for version in ${ESKER_PYTHONS:-3.9 3.10 3.11 3.12 3.13 3.14}; do
    for python in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python3; do
        usable "$python" && pythons+=("$python") && break
    done
done
[ ${#pythons[@]} -gt 0 ] || pythons=(python3)
chosen=("${pythons[0]}")
[ ${#pythons[@]} -eq 1 ] || chosen+=("${pythons[-1]}")
for python in "${chosen[@]}"; do
    say "$("$python" --version)"
    venv=$target/venv
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check --no-index "$target"/wheels/esker-*.whl || { status=1; continue; }
    "$venv/bin/pip" install -q --disable-pip-version-check pytest
    timeout --kill-after=10 $seconds "$venv/bin/python" -m pytest -q -p no:cacheprovider || status=1
done
say "types"
"$venv/bin/pip" install -q --disable-pip-version-check 'mypy>=1.11,<3'
# What the private module makes public is the package's affair, and how its classes are laid out in memory nobody's.
# What is not for users: the list of names, and what a test panics by.
"$venv/bin/python" -m mypy.stubtest --ignore-disjoint-bases --allowlist <(printf '%s\n' esker._esker.__all__ esker._esker._panic) esker || status=1
"$venv/bin/python" -m mypy --strict tests/typed.py || status=1
exit $status
