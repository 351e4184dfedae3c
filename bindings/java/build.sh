#!/usr/bin/env bash
# Builds the native library and the jar, without its tests, and installs the jar into the local Maven repository, or into
# ESKER_MAVEN_REPOSITORY. Quick when nothing has changed. More arguments are Maven's. ESKER_PROFILE=dev builds what only tests want.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
. scripts/setup.sh
exec </dev/null
need_build_tools
command -v javac >/dev/null || apt_install openjdk-17-jdk-headless
command -v mvn >/dev/null || apt_install maven

target=$(target_dir)
out=$target/bindings-java
built=$target/release
if [ "${ESKER_PROFILE:-}" = dev ]; then
    target=$target/bindings
    out=$target/java
    built=$target/debug
fi
cd bindings/java
CARGO_TARGET_DIR=$target cargo build -q --profile "${ESKER_PROFILE:-release}" --locked --manifest-path native/Cargo.toml

# The library as a resource of the jar, without what only a debugger reads.
case $(uname -s) in
    Darwin) system=macos library=libesker_java.dylib ;;
    *) system=linux library=libesker_java.so ;;
esac
case $(uname -m) in
    arm64) processor=aarch64 ;;
    *) processor=$(uname -m) ;;
esac
resource=$out/native/io/esker/native/$system-$processor/$library
mkdir -p "$(dirname "$resource")"
[ "$resource" -nt "$built/$library" ] || {
    cp "$built/$library" "$resource.new"
    strip --strip-debug "$resource.new"
    mv "$resource.new" "$resource"
}

# What the last jar was made of, and which one is installed: other checkouts of the sources install theirs to the same place.
repository=${ESKER_MAVEN_REPOSITORY:-$HOME/.m2/repository}
jar=$out/classes/esker-0.1.0.jar
installed=$repository/io/esker/esker/0.1.0/esker-0.1.0.jar
now=$(cat pom.xml "$resource" $(find src/main -type f | LC_ALL=C sort) | sha256sum)
[ "$now" = "$(cat "$out/installed" 2>/dev/null)" ] && cmp -s "$jar" "$installed" && exit 0
rm -f "$out/installed"
mvn -q -B -ntp -Dmaven.repo.local="$repository" -Desker.target="$out/classes" -Desker.native="$out/native" \
    -Dmaven.test.skip=true "$@" install
echo "$now" >"$out/installed"
