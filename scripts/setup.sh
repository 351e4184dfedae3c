# Sourced by demo.sh and test.sh: from a fresh machine to one that can build and compare.
# shellcheck shell=bash

setup_file=$(readlink -f "${BASH_SOURCE[0]}")

say() { printf '\n== %s\n' "$*"; }
note() { printf 'note: %s\n' "$*" >&2; }

# Runs a command as root; never asks for a password where nobody can type one.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif ! command -v sudo >/dev/null; then
        note "neither root nor sudo: cannot run: $*"
        return 1
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# Installs the Debian packages that are missing, without asking anything.
apt_install() {
    local missing=() package
    command -v apt-get >/dev/null || { note "no apt-get here; these must be installed by hand: $*"; return 1; }
    for package in "$@"; do installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} -eq 0 ] && return 0
    echo "installing ${missing[*]}"
    # The lists of packages may be missing (a fresh container) or old.
    apt_get install "${missing[@]}" || { apt_get update && apt_get install "${missing[@]}"; }
}

# Steps that run at once wait for each other here: two at a time apt refuses.
apt_get() {
    local verb=$1 && shift
    [ "$verb" = install ] && set -- -y --no-install-recommends "$@"
    (
        flock 9
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$verb" "$@" </dev/null 9>&-
    ) 9<"$setup_file"
}

# The compiler's helpers: a linker for Rust, and a C compiler for the zstd library.
need_build_tools() {
    # Rust may be installed and not on the path of a shell that is no login shell.
    [ -d "${HOME:-/root}/.cargo/bin" ] && PATH="$PATH:${HOME:-/root}/.cargo/bin"
    if ! command -v cargo >/dev/null; then
        echo "error: Rust is missing; https://rustup.rs installs it (1.88 or newer; the tests need 1.95)" >&2
        exit 1
    fi
    command -v cc >/dev/null || apt_install gcc libc6-dev
}

# Whether a toolchain is here whole: an installation that was interrupted may have left cargo without its compiler. To install it
# again mends that.
has_toolchain() { cargo "+$1" --version >/dev/null 2>&1 && rustc "+$1" --version >/dev/null 2>&1; }

# A subcommand of cargo that is a program of its own, and no part of the toolchain.
need_cargo_tool() {
    cargo "${1#cargo-}" --version >/dev/null 2>&1 && return 0
    echo "installing $1"
    cargo install --locked "$1"
}

# Debian's package index, about 60,000 stanzas; its lists may have to be fetched first.
need_package_index() {
    command -v apt-cache >/dev/null || return 1
    [ "$(apt-cache dumpavail | grep -c '^Package: ')" -ge 1000 ] && return 0
    echo "fetching the package index"
    apt_get update && [ "$(apt-cache dumpavail | grep -c '^Package: ')" -ge 1000 ]
}

# Calls to the system that fail or are listed (strace), limits (prlimit), a small disk (unshare).
# Tests that lack one say so and pass.
need_faults() {
    command -v strace >/dev/null || apt_install strace
    command -v prlimit >/dev/null && command -v unshare >/dev/null || apt_install util-linux
}

# Finds reads of memory that is not set, and memory that is left behind, in the programs that use the C library. Where it is
# missing their test runs them without.
need_valgrind() {
    command -v valgrind >/dev/null || apt_install valgrind || {
        note "no valgrind here: the C library's programs run without it"
        return 1
    }
}

# The programs that use the C library are compiled by both, and find it by pkg-config.
need_c_programs() {
    command -v c++ >/dev/null || apt_install g++
    command -v pkg-config >/dev/null || apt_install pkg-config
}

# What the library in LevelDB's place is compiled with, and LevelDB itself, whose behaviour it is compared with.
need_leveldb() {
    command -v g++ >/dev/null || apt_install g++ || return 1
    apt_install libleveldb-dev libsnappy-dev
}

# What a first comparison needs. The benchmark finds libraries at run time.
need_first_peers() { apt_install liblmdb0 libleveldb1d; }

# The libraries that the whole benchmark compares with. It finds them at run time; Berkeley DB and WiredTiger
# need a C compiler and their headers too. The commands of LMDB and Berkeley DB are for tests of dumps. One that this release does not have keeps out nothing else.
need_peers() {
    local packages=(gcc libc6-dev liblmdb-dev libleveldb-dev librocksdb-dev libsqlite3-dev
        libdb5.3-dev libkyotocabinet-dev libwiredtiger-dev lmdb-utils db5.3-util) package
    apt_install "${packages[@]}" && return 0
    for package in "${packages[@]}"; do
        apt_install "$package" || note "no $package: what needs it is left out"
    done
}

# Where cargo puts what it builds, also when that is set somewhere else.
target_dir() {
    cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}
