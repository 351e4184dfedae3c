#!/usr/bin/env bash
# Builds the npm package, checks and tests it, installs it into an empty project by npm, and runs the README's programs there.
# What is missing is installed with apt. ESKER_QUICK=1: only our tests, with a native part built for them. ESKER_CAMPAIGN=1 makes
# the random tests longer.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
exec </dev/null
need_build_tools

command -v node >/dev/null || apt_install nodejs
command -v npm >/dev/null || apt_install npm
node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' || {
    echo "error: Node.js $(node --version) is too old; https://nodejs.org has 20 and newer" >&2
    exit 1
}

CARGO_TARGET_DIR=$(target_dir)
export CARGO_TARGET_DIR
work=$CARGO_TARGET_DIR/bindings-node
mkdir -p "$work"
cd bindings/node

# As the lock file says, and only when that has changed.
cmp -s package-lock.json node_modules/.esker-lock || {
    npm ci --no-audit --no-fund --ignore-scripts
    cp package-lock.json node_modules/.esker-lock
}

if [ -n "${ESKER_QUICK:-}" ]; then
    export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/bindings
    # What users load stays as it was.
    before=$(mktemp -d)
    [ ! -d prebuilds ] || cp -a prebuilds "$before/"
    trap 'rm -rf prebuilds; [ ! -d "$before/prebuilds" ] || mv "$before/prebuilds" .; rm -rf "$before"' EXIT
    ESKER_PROFILE=dev node scripts/build.js
    if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
    timeout --kill-after=10 500 ./node_modules/.bin/tape 'test/*-test.js' >"$work/quick.txt" 2>&1 || { cat "$work/quick.txt"; exit 1; }
    tail -n 5 "$work/quick.txt"
    exit
fi

status=0
(cd native && cargo fmt --check) || status=1
(cd native && cargo clippy --release --locked -- -D warnings) || status=1
(cd native && cargo test --release --locked --quiet) || status=1
node scripts/build.js
./node_modules/.bin/tsc -p test/types || status=1
for script in bench/*.js; do node --check "$script" || status=1; done

# In memory where that can be: over a thousand stores are made, and what the device does is not what is tested here.
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
# Runs tests, and prints how many there were: all of it when one failed.
run_tape() {
    say "$1"
    if timeout --kill-after=10 500 ./node_modules/.bin/tape "${@:2}" >"$work/tape.txt" 2>&1; then
        grep -a '^# ESKER_SEED' "$work/tape.txt" || true
        tail -n 5 "$work/tape.txt"
    else
        cat "$work/tape.txt"
        status=1
    fi
}
run_tape "the suite of abstract-level" test/suites/abstract-level.js
run_tape "our tests" 'test/*-test.js'

say "installed into an empty project"
project=$work/project
rm -rf "$project" "$work"/*.tgz
mkdir -p "$project"
npm pack --silent --pack-destination "$work"
cp "$work"/esker-*.tgz "$project"
(cd "$project" && npm init --yes >/dev/null && npm install --no-audit --no-fund --prefer-offline ./esker-*.tgz) || status=1
node test/readme.js "$project" || status=1
exit $status
