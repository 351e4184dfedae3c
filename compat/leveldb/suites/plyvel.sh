# The Python binding, built from its source release, with its own tests.
# shellcheck shell=bash disable=SC2154,SC2034
suite() {
    about="PyPI plyvel 1.5.1, from its source release: its own tests"
    misses=1 # keys of 99,900 bytes
    apt_install g++ libleveldb-dev python3-dev && plyvel_source 1.5.1 || return
    "$run/venv/bin/pip" install -q pytest &&
        LDFLAGS="-L$work/lib" "$run/venv/bin/pip" install -q --no-deps --no-build-isolation "$run"/plyvel-*.tar.gz ||
        return
    plyvel_tests "$run/venv/bin/python"
}

# Fetches a release and takes its tests out of it.
plyvel_source() {
    apt_install python3-venv && /usr/bin/python3 -m venv "$run/venv" || return
    # What a release may need to tell its own version.
    "$run/venv/bin/pip" install -q setuptools wheel cython || return
    "$run/venv/bin/pip" download -q --no-binary :all: --no-deps --no-build-isolation -d "$run" "plyvel==$1" || return
    tar xzf "$run/plyvel-$1.tar.gz" -C "$run" "plyvel-$1/test"
    # Away from the sources, which would be imported in the place of what is installed.
    mv "$run/plyvel-$1/test" "$run/test"
}

# As a user who is not root: one test expects that a directory without permissions cannot be opened.
plyvel_tests() {
    local output
    output=$(cd "$run" && as_nobody env LD_LIBRARY_PATH="$work/lib" LD_DEBUG=files LD_DEBUG_OUTPUT="$run/loaded" \
        "$1" -m pytest -q -p no:cacheprovider test 2>&1) || true
    tail -n 40 <<<"$output"
    passed=$(tail -n 1 <<<"$output" | grep -o '[0-9]* passed' | cut -d' ' -f1) || true
    total=$(grep -c '^def test' "$run/test/test_plyvel.py")
    passed=${passed:-0}
}
