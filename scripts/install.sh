#!/usr/bin/env bash
# Installs the command, the C library and its headers below a prefix, building what is missing.
#
#   scripts/install.sh PREFIX     bin/ include/ lib/ lib/pkgconfig/ share/man/man1/ share/bash-completion/completions/
#
#   DESTDIR=/tmp/root scripts/install.sh /usr      the same below another root, as packages are made
#   ESKER_LIBDIR=lib/x86_64-linux-gnu              where libraries go, instead of lib
set -euo pipefail
# What is installed is for all users, whatever files root makes otherwise.
umask 022
[ $# -eq 1 ] && [ -n "$1" ] && [[ "$1" != -* ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
# Where the caller is, before this script goes elsewhere.
prefix=$(realpath -ms -- "$1")
destdir=${DESTDIR:+$(realpath -ms -- "$DESTDIR")}
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. scripts/setup.sh
need_build_tools

# Programs ask for libesker.so.0, which is a link to the library of this version. build.rs of esker-capi has that name too.
soname=libesker.so.0
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
root=$destdir$prefix
libdir=${ESKER_LIBDIR:-lib}

# Apart: what the command asks of the crates below would have the C library be another than the one that its other users build.
cargo build --release --locked -p esker-capi
cargo build --release --locked -p esker-cli
built=$(target_dir)/release

install -d "$root/bin" "$root/include" "$root/$libdir/pkgconfig" "$root/share/man/man1" \
    "$root/share/bash-completion/completions"
install -m 755 "$built/esker" "$root/bin/esker"
install -m 644 crates/esker-capi/include/esker.h crates/esker-capi/include/esker.hpp "$root/include/"
install -m 644 "$built/libesker_capi.a" "$root/$libdir/libesker.a"
install -m 755 "$built/libesker_capi.so" "$root/$libdir/libesker.so.$version"
ln -sfn "libesker.so.$version" "$root/$libdir/$soname"
ln -sfn "$soname" "$root/$libdir/libesker.so"
sed -e "s|@PREFIX@|$prefix|; s|@LIBDIR@|$libdir|; s|@VERSION@|$version|" \
    crates/esker-capi/packaging/esker.pc.in >"$root/$libdir/pkgconfig/esker.pc"
chmod 644 "$root/$libdir/pkgconfig/esker.pc"
"$built/esker" man --dir "$root/share/man/man1"
"$built/esker" completions bash >"$root/share/bash-completion/completions/esker"

# Lines for debuggers are three quarters of it all.
strip --strip-debug "$root/bin/esker" "$root/$libdir/libesker.a" "$root/$libdir/libesker.so.$version"

# The library in LevelDB's place, for programs that are linked with that.
if ! need_leveldb; then
    note "no headers of LevelDB and Snappy here: the library in LevelDB's place is left out"
else
    install -d "$root/$libdir/esker/leveldb"
    compat/leveldb/build.sh "$root/$libdir/esker/leveldb"
fi

echo "installed esker $version in $root"
