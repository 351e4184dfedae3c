//! HyperLevelDB and Basho's LevelDB, which no distribution has. Their sources are in two packages
//! of npm, which wrap them for JavaScript; here the C++ alone is compiled, with its C interface.

use super::archive::{Archive, Registry};
use super::command::run;
use super::recipe::{Kitchen, Recipe};
use crate::engines::built;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Both.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        built: built::HYPERLEVELDB,
        archive: Archive {
            registry: Registry::Npm,
            name: "leveldown-hyper",
            version: "2.0.0",
            file: "leveldown-hyper-2.0.0.tgz",
            sha256: "a68babb9f256d0651fcbcfe3ef8e45ee3f7a7fb3e4bcbe865e4566f0ac14e035",
        },
        members: &[],
        how: FLAGS,
        make: |kitchen| {
            let include = ["leveldb-hyper-conf/linux", "leveldb-hyper-1.0.2"];
            compile(kitchen, "leveldb-hyper-1.0.2", &include, &["-DHAVE_CONFIG_H=1"], None)
        },
    },
    Recipe {
        built: built::BASHO,
        archive: Archive {
            registry: Registry::Npm,
            name: "leveldown-basho",
            version: "0.10.1",
            file: "leveldown-basho-0.10.1.tgz",
            sha256: "d7bead1230b8c52bdc11ec72fc561e94ec2d04be1735fe64f39972d0f96f6b64",
        },
        members: &[],
        how: FLAGS,
        make: |kitchen| {
            let include = ["leveldb-basho", "leveldb-basho/include"];
            let supplement = include_str!("basho_supplement.cc");
            compile(kitchen, "leveldb-basho", &include, &[], Some(supplement))
        },
    },
];

/// For both: the C++ that they were written in, and the platform as their own builds define it.
const FLAGS: &[&str] = &[
    "-std=gnu++11",
    "-O2",
    "-DNDEBUG",
    "-fPIC",
    "-w",
    "-pthread",
    "-fno-builtin-memcmp",
    "-DLEVELDB_PLATFORM_POSIX=1",
    "-DOS_LINUX=1",
    "-DSNAPPY=1",
];

/// The parts of the bundled compression library that are compiled.
const SNAPPY: [&str; 3] = ["snappy.cc", "snappy-sinksource.cc", "snappy-stubs-internal.cc"];

/// Compiles the sources below `deps/leveldb` with the configuration that they have there, and what their C interface lacks.
fn compile(
    kitchen: &Kitchen,
    root: &str,
    include: &[&str],
    flags: &[&str],
    supplement: Option<&str>,
) -> Result<()> {
    let deps = kitchen.sources.join("package/deps");
    let snappy = deps.join("snappy/snappy-1.1.1");
    let snappy_config = deps.join("snappy/linux");
    // By itself: it has a config.h of its own.
    let objects = kitchen.work;
    let mut gcc = Command::new("g++");
    gcc.args(FLAGS).args(["-DHAVE_CONFIG_H=1", "-c", "-I"]).arg(&snappy_config);
    gcc.args(SNAPPY.map(|file| snappy.join(file))).current_dir(objects);
    run(&mut gcc)?;

    let leveldb = deps.join("leveldb");
    let mut gcc = Command::new("g++");
    // Nothing undefined, and its own symbols first.
    gcc.args(FLAGS).args(flags).args(["-shared", "-Wl,-z,defs", "-Wl,-Bsymbolic", "-o"]);
    gcc.arg(kitchen.to.join(kitchen.recipe.built.file));
    for dir in include {
        gcc.arg("-I").arg(leveldb.join(dir));
    }
    gcc.arg("-I").arg(&snappy_config).arg("-I").arg(&snappy);
    gcc.args(sources(&leveldb.join(root))?);
    if let Some(text) = supplement {
        let file = kitchen.work.join("supplement.cc");
        std::fs::write(&file, text)?;
        gcc.arg(file);
    }
    gcc.args(SNAPPY.map(|file| objects.join(file).with_extension("o")));
    run(&mut gcc)?;
    Ok(())
}

/// The sources of the library, without tests, tools and other platforms.
fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![root.join("port/port_posix.cc")];
    for folder in ["db", "table", "util"] {
        let folder = root.join(folder);
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("{} is not in the archive", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let is_source = path.extension().is_some_and(|extension| extension == "cc");
            let is_tool = ["leveldb_main", "db_bench", "testharness", "testutil"];
            if is_source && !name.ends_with("_test") && !is_tool.contains(&name.as_str()) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_tools_are_no_sources() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["db", "table", "util", "port"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for file in ["db/c.cc", "db/c.h", "db/db_test.cc", "db/db_bench.cc", "util/testutil.cc"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let found = sources(dir.path()).unwrap();
        assert_eq!(found, [dir.path().join("db/c.cc"), dir.path().join("port/port_posix.cc")]);
        assert!(sources(&dir.path().join("none")).is_err());
    }
}
