# Makes the library of an engine. `recipe.rs` starts it in a directory that has three empty ones: `sources` for what is in its
# archive, `work`, and `made` for what becomes of it. What comes out of it is what was looked at once: each archive is known by
# its hash, and comes from its registry by the registry's own client.
#
# $1: `told`, which says how it is made (other words make it anew), or `make`. $2: the engine. $3: where archives may lie already.
# $4: the file that the library is to be.
engine=$2 given=$3 file=$4 made=$PWD/made
fail() { echo "$*" >&2 && exit 1; }
needs() { for program; do command -v "$program" >/dev/null || fail "cannot start $program: is it installed?"; done; }

# Compiles files into the library.
compile() { needs cc && cc $how -shared -fPIC -pthread -o "$made/$file" "$@"; }

# HyperLevelDB or Basho's LevelDB: the C++ that a package of npm wraps for JavaScript, without tests, tools and other platforms,
# and the bundled Snappy, which has a config.h of its own.
compile_fork() {
    needs g++
    cd sources/package/deps
    snappy=snappy/snappy-1.1.1
    g++ $how -DHAVE_CONFIG_H=1 -c -I snappy/linux \
        $snappy/snappy.cc $snappy/snappy-sinksource.cc $snappy/snappy-stubs-internal.cc
    # Nothing undefined, and its own symbols first.
    g++ $how "$@" -shared -Wl,-z,defs -Wl,-Bsymbolic -o "$made/$file" -I snappy/linux -I $snappy \
        $(find "$root/db" "$root/port/port_posix.cc" "$root/table" "$root/util" -maxdepth 1 -name '*.cc' ! -name '*_test.cc' \
            ! -name leveldb_main.cc ! -name db_bench.cc ! -name testharness.cc ! -name testutil.cc | LC_ALL=C sort) \
        $supplement snappy.o snappy-sinksource.o snappy-stubs-internal.o
}

# The C++ that both forks were written in, and the platform as their own builds define it.
of_fork='-std=gnu++11 -O2 -DNDEBUG -fPIC -w -pthread -fno-builtin-memcmp -DLEVELDB_PLATFORM_POSIX=1 -DOS_LINUX=1 -DSNAPPY=1'
# Of an archive all is unpacked, or these; a fork may need a source more.
members= supplement=

case $engine in
lmdb)
    from='lmdb 3.0.0 of PyPI' archive=lmdb-3.0.0.tar.gz
    sha256=06dda0723545e14d56ac7dcd6f582d9922c2ed5e16f1c3f8d0e670a96ec2ee65
    how='-O2 -DNDEBUG'
    # The sources as they were released lie beside those that the package patches for itself.
    make() { cd sources/lmdb-3.0.0/lib1 && compile mdb.c midl.c; }
    ;;
sqlite)
    from='better-sqlite3 13.2.0 of npm' archive=better-sqlite3-13.2.0.tgz
    sha256=40487589df3496f2ee0079d22b73c63fccebe7db0e8ee9a2c42421861e321e0b
    # As SQLite's manual recommends (https://sqlite.org/compile.html), but for threads: a connection belongs to one at a time.
    how='-O2 -DNDEBUG -DSQLITE_THREADSAFE=2 -DSQLITE_DQS=0 -DSQLITE_DEFAULT_MEMSTATUS=0 -DSQLITE_LIKE_DOESNT_MATCH_BLOBS'
    how="$how -DSQLITE_MAX_EXPR_DEPTH=0 -DSQLITE_OMIT_DECLTYPE -DSQLITE_OMIT_DEPRECATED -DSQLITE_OMIT_PROGRESS_CALLBACK"
    how="$how -DSQLITE_OMIT_SHARED_CACHE -DSQLITE_USE_ALLOCA -DSQLITE_STRICT_SUBTYPE=1"
    make() { cd sources/package/deps/sqlite3 && compile sqlite3.c; }
    ;;
leveldb)
    from='plyvel-ci 1.5.1 of PyPI' archive=plyvel_ci-1.5.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl
    sha256=0bb47903ac084f9f311f6bd263b31b6d1076919bb00c91ab3c85e4cbf8735353
    # The library inside the Python package: the sources that packages were found to have end at 1.22. It needs the Snappy that
    # lies beside it and does not say where that is, so a library without a line of its own brings both.
    members='plyvel_ci./libleveldb-dc7a2c76.so.1.23.0 plyvel_ci./libsnappy-fb3d4d2f.so.1.1.9'
    how='-Wl,--no-as-needed,--disable-new-dtags,-rpath,$ORIGIN -DCRC32C=SSE4.2'
    make() {
        (cd sources && cp $members "$made")
        cd "$made" && compile libleveldb-dc7a2c76.so.1.23.0 libsnappy-fb3d4d2f.so.1.1.9
    }
    ;;
rocksdb)
    # The release build that Java programs use. It exports the C interface.
    from='rocksdbjni 11.1.1 of Maven' archive=rocksdbjni-11.1.1.jar members=librocksdbjni-linux64.so
    sha256=71353febb7196261d6204d0f606e365e78009aaf014580a2f91d3a9a2d7d982e
    how='-DCRC32C=SSE4.2'
    make() { mv "sources/$members" "$made/$file"; }
    ;;
wiredtiger)
    from='wiredtiger 11.3.1 of PyPI' archive=wiredtiger-11.3.1.tar.gz
    sha256=95052d1b6fc06921dd617aafa1ba2a773d8dbbbf2eb74f77147290a630e598d0
    how='-DCMAKE_BUILD_TYPE=Release -DCC_OPTIMIZE_LEVEL=-O2 -DHAVE_DIAGNOSTIC=OFF -DENABLE_DEBUG_INFO=OFF -DENABLE_STRICT=OFF'
    how="$how -DENABLE_STATIC=OFF -DENABLE_SHARED=ON -DENABLE_PYTHON=OFF -DENABLE_CPPSUITE=OFF -DHAVE_UNITTEST=OFF"
    configure() { cmake -S sources/wiredtiger-11.3.1 -B work $how -DENABLE_SNAPPY="$1"; }
    build() { cmake --build work --target "$1" -j "$(nproc)"; }
    # With the compression library where the system has Snappy.
    make() {
        needs cmake
        snappy=work/ext/compressors/snappy/libwiredtiger_snappy.so
        configure ON || { snappy= && configure OFF; }
        build wiredtiger_shared
        cp "work/$file" work/include/wiredtiger.h "$made"
        [ -z "$snappy" ] || { build wiredtiger_snappy && cp "$snappy" "$made"; }
    }
    ;;
hyperleveldb)
    from='leveldown-hyper 2.0.0 of npm' archive=leveldown-hyper-2.0.0.tgz
    sha256=a68babb9f256d0651fcbcfe3ef8e45ee3f7a7fb3e4bcbe865e4566f0ac14e035
    how=$of_fork root=leveldb/leveldb-hyper-1.0.2
    make() { compile_fork -DHAVE_CONFIG_H=1 -I leveldb/leveldb-hyper-conf/linux -I $root; }
    ;;
basho)
    from='leveldown-basho 0.10.1 of npm' archive=leveldown-basho-0.10.1.tgz
    sha256=d7bead1230b8c52bdc11ec72fc561e94ec2d04be1735fe64f39972d0f96f6b64
    how=$of_fork root=leveldb/leveldb-basho supplement=supplement.cc
    make() {
        # Three functions of LevelDB's C interface that this fork, older than they are, lacks.
        cat >sources/package/deps/$supplement <<'EOF'
#include <cstdlib>
#include "leveldb/db.h"
extern "C" {
void leveldb_free(void* memory) { std::free(memory); }
int leveldb_major_version() { return leveldb::kMajorVersion; }
int leveldb_minor_version() { return leveldb::kMinorVersion; }
}
EOF
        compile_fork -I $root -I $root/include
    }
    ;;
esac

# Leaves nothing in the clients' caches, where they can be told so: nobody needs it twice.
download() {
    package=$1 version=$2
    case $4 in
    npm) needs npm && npm pack --silent "$package@$version" ;;
    Maven)
        needs mvn && mvn --quiet --batch-mode dependency:copy "-Dmaven.repo.local=$PWD/maven" "-DoutputDirectory=$PWD" \
            "-Dartifact=org.rocksdb:$package:$version"
        ;;
    PyPI)
        what="--no-binary $package"
        case $archive in # for this Python on Linux, whatever is here
        *.whl) what='--only-binary=:all: --platform=manylinux2014_x86_64 --implementation=cp --python-version=3.11 --abi=cp311' ;;
        esac
        # With its hash, pip runs nothing of a package that is another one.
        echo "$package==$version --hash=sha256:$sha256" >wanted.txt
        needs pip3 && pip3 download --quiet --no-deps --no-cache-dir --require-hashes $what -d . -r wanted.txt
        ;;
    esac
}

if [ "$1" = told ]; then
    printf '%s\nSHA-256 %s\n%s\n' "$from" "$sha256" "$how"
    exit
fi
path=$given/$archive
if [ ! -f "$path" ]; then
    # In a shell of its own, so that what is missing is told before this.
    (download $from) || fail "no $from; $path is taken where it exists"
    path=$PWD/$archive
fi
[ "$(sha256sum <"$path")" = "$sha256  -" ] || fail "$path is not the archive that is known"
case $archive in
*.jar | *.whl)
    # Python is there where pip is.
    needs python3
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall("sources", sys.argv[2:] or None)' "$path" $members
    ;;
*) tar xzf "$path" -C sources ;;
esac
make
