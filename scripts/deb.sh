#!/usr/bin/env bash
# Makes a Debian package of the command, the C library and its headers: target/debian/esker_*.deb. What goes in is what
# scripts/install.sh lays out for /usr; the metadata is in crates/esker-capi/Cargo.toml.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. scripts/setup.sh
need_build_tools
version=3.8.0 # of cargo-deb
[ "$(cargo deb --version 2>/dev/null)" = "$version" ] || cargo install --locked cargo-deb --version "$version"

# Emptied, so that nothing of an earlier build is packed. In the metadata this place has the same name.
rm -rf target/debian
mkdir -p target/debian
DESTDIR=$PWD/target/debian/root ESKER_LIBDIR=lib/$(cc -print-multiarch) scripts/install.sh /usr
gzip -9n target/debian/root/usr/share/man/man1/*.1
cargo deb --no-build --locked -p esker-capi --output target/debian/
