//! Current releases of the engines that a distribution has too, where they are old or have assertions on. Compiled from
//! sources where that takes seconds; otherwise the release that somebody else built.

use super::archive::{Archive, Registry};
use super::command::run;
#[cfg(target_arch = "x86_64")]
use super::crc32c;
use super::recipe::{Kitchen, Recipe};
use crate::engines::built::{self, Built};
use crate::system;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// All of them.
pub const RECIPES: &[Recipe] = &[
    LMDB,
    SQLITE,
    #[cfg(target_arch = "x86_64")]
    LEVELDB,
    #[cfg(target_arch = "x86_64")]
    ROCKSDB,
    WIREDTIGER,
];

/// The sources as they were released lie beside those that the package patches for itself.
const LMDB: Recipe = Recipe {
    built: built::LMDB,
    archive: Archive {
        registry: Registry::PypiSources,
        name: "lmdb",
        version: "3.0.0",
        file: "lmdb-3.0.0.tar.gz",
        sha256: "06dda0723545e14d56ac7dcd6f582d9922c2ed5e16f1c3f8d0e670a96ec2ee65",
    },
    members: &[],
    how: &["-O2", "-DNDEBUG"],
    make: |kitchen| {
        let sources = kitchen.sources.join("lmdb-3.0.0/lib1");
        kitchen.compile("cc", &sources, &["mdb.c", "midl.c"])
    },
};

/// The options are those that SQLite's manual recommends (<https://sqlite.org/compile.html>), but for threads: a connection
/// belongs to one thread at a time here.
const SQLITE: Recipe = Recipe {
    built: built::SQLITE,
    archive: Archive {
        registry: Registry::Npm,
        name: "better-sqlite3",
        version: "13.2.0",
        file: "better-sqlite3-13.2.0.tgz",
        sha256: "40487589df3496f2ee0079d22b73c63fccebe7db0e8ee9a2c42421861e321e0b",
    },
    members: &[],
    how: &[
        "-O2",
        "-DNDEBUG",
        "-DSQLITE_THREADSAFE=2",
        "-DSQLITE_DQS=0",
        "-DSQLITE_DEFAULT_MEMSTATUS=0",
        "-DSQLITE_LIKE_DOESNT_MATCH_BLOBS",
        "-DSQLITE_MAX_EXPR_DEPTH=0",
        "-DSQLITE_OMIT_DECLTYPE",
        "-DSQLITE_OMIT_DEPRECATED",
        "-DSQLITE_OMIT_PROGRESS_CALLBACK",
        "-DSQLITE_OMIT_SHARED_CACHE",
        "-DSQLITE_USE_ALLOCA",
        "-DSQLITE_STRICT_SUBTYPE=1",
    ],
    make: |kitchen| {
        let sources = kitchen.sources.join("package/deps/sqlite3");
        kitchen.compile("cc", &sources, &["sqlite3.c"])
    },
};

/// Where `leveldb::crc32c::Extend` begins in the file.
#[cfg(target_arch = "x86_64")]
const LEVELDB_EXTEND: u64 = 0x401d0;
/// Where the function is that `rocksdb::crc32c::Extend` leads to.
#[cfg(target_arch = "x86_64")]
const ROCKSDB_EXTEND: u64 = 0x95_9290;

/// The library inside the Python package: the sources that packages were found to have end at 1.22. It needs the Snappy that lies beside it and does
/// not say where that is, so a library without a line of its own brings both.
#[cfg(target_arch = "x86_64")]
const LEVELDB: Recipe = Recipe {
    built: built::LEVELDB,
    archive: Archive {
        registry: Registry::PypiBuild,
        name: "plyvel-ci",
        version: "1.5.1",
        file: "plyvel_ci-1.5.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        sha256: "0bb47903ac084f9f311f6bd263b31b6d1076919bb00c91ab3c85e4cbf8735353",
    },
    members: &[
        "plyvel_ci./libleveldb-dc7a2c76.so.1.23.0",
        "plyvel_ci./libsnappy-fb3d4d2f.so.1.1.9",
    ],
    how: &["-Wl,--no-as-needed,--disable-new-dtags,-rpath,$ORIGIN", "-DCRC32C=SSE4.2"],
    make: |kitchen| {
        let library = kitchen.sources.join(kitchen.recipe.members[0]);
        crc32c::put_into(&library, LEVELDB_EXTEND)?;
        let mut names = Vec::new();
        for member in kitchen.recipe.members {
            let name = Path::new(member).file_name().context("a member without a name")?;
            std::fs::copy(kitchen.sources.join(member), kitchen.to.join(name))?;
            names.extend(name.to_str());
        }
        kitchen.compile("cc", kitchen.to, &names)
    },
};

/// The release build that Java programs use. It exports the C interface.
#[cfg(target_arch = "x86_64")]
const ROCKSDB: Recipe = Recipe {
    built: built::ROCKSDB,
    archive: Archive {
        registry: Registry::Maven("org.rocksdb"),
        name: "rocksdbjni",
        version: "11.1.1",
        file: "rocksdbjni-11.1.1.jar",
        sha256: "71353febb7196261d6204d0f606e365e78009aaf014580a2f91d3a9a2d7d982e",
    },
    members: &["librocksdbjni-linux64.so"],
    how: &["-DCRC32C=SSE4.2"],
    make: |kitchen| {
        let made = kitchen.to.join(kitchen.recipe.built.file);
        std::fs::rename(kitchen.sources.join(kitchen.recipe.members[0]), &made)?;
        crc32c::put_into(&made, ROCKSDB_EXTEND)
    },
};

/// Built by its own `CMakeLists.txt`, with the compression library where the system has Snappy.
const WIREDTIGER: Recipe = Recipe {
    built: built::WIREDTIGER,
    archive: Archive {
        registry: Registry::PypiSources,
        name: "wiredtiger",
        version: "11.3.1",
        file: "wiredtiger-11.3.1.tar.gz",
        sha256: "95052d1b6fc06921dd617aafa1ba2a773d8dbbbf2eb74f77147290a630e598d0",
    },
    members: &[],
    how: &[
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCC_OPTIMIZE_LEVEL=-O2",
        "-DHAVE_DIAGNOSTIC=OFF",
        "-DENABLE_DEBUG_INFO=OFF",
        "-DENABLE_STRICT=OFF",
        "-DENABLE_STATIC=OFF",
        "-DENABLE_SHARED=ON",
        "-DENABLE_PYTHON=OFF",
        "-DENABLE_CPPSUITE=OFF",
        "-DHAVE_UNITTEST=OFF",
    ],
    make: wiredtiger,
};

fn wiredtiger(kitchen: &Kitchen) -> Result<()> {
    let Built { name, version, file, .. } = kitchen.recipe.built;
    let sources = kitchen.sources.join(format!("{name}-{version}"));
    let configure = |more: &[&str]| {
        let mut cmake = Command::new("cmake");
        cmake.arg("-S").arg(&sources).arg("-B").arg(kitchen.work);
        run(cmake.args(kitchen.recipe.how).args(more))
    };
    let compile = |target: &str| {
        let jobs = system::cores().to_string();
        let mut cmake = Command::new("cmake");
        run(cmake.arg("--build").arg(kitchen.work).args(["--target", target, "-j", &jobs]))
    };
    let keep = |from: &str| {
        let name = Path::new(from).file_name().context("a file without a name")?;
        std::fs::copy(kitchen.work.join(from), kitchen.to.join(name)).context(from.to_string())
    };
    let snappy = configure(&["-DENABLE_SNAPPY=ON"]).is_ok();
    if !snappy {
        configure(&["-DENABLE_SNAPPY=OFF"])?;
    }
    compile("wiredtiger_shared")?;
    keep(file)?;
    keep("include/wiredtiger.h")?;
    if snappy {
        compile("wiredtiger_snappy")?;
        keep("ext/compressors/snappy/libwiredtiger_snappy.so")?;
    }
    Ok(())
}
