//! HyperLevelDB and Basho's LevelDB, which no distribution has. Their sources are in two packages
//! of npm, which wrap them for JavaScript; here the C++ alone is compiled, with its C interface.

use super::command::run;
use super::{Outcome, Place};
use crate::engines;
use crate::engines::leveldb::{BASHO_LIBRARY, HYPER_LIBRARY};
use crate::engines::library::load_built;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a fork is made.
struct Recipe {
    /// The engine.
    engine: &'static str,
    /// The file that it becomes.
    library: &'static str,
    /// The npm package, and its version.
    package: &'static str,
    version: &'static str,
    /// What the package's archive must hash to: code that will run here should be the code that
    /// was looked at.
    sha512: &'static str,
    /// The sources below `deps/leveldb`, and the configuration that they are built with.
    sources: &'static str,
    flags: &'static [&'static str],
    include: &'static [&'static str],
    /// What its C interface lacks.
    supplement: Option<&'static str>,
}

const RECIPES: [Recipe; 2] = [
    Recipe {
        engine: "hyperleveldb",
        library: HYPER_LIBRARY,
        package: "leveldown-hyper",
        version: "2.0.0",
        sha512: "3f342a249d0fe16fa8e32b91723a1c25d78861f352755bbcaf4fdbcadb45ba4f\
                 fa5877ce26dda5e67eb0e6eb2e0c6f267a710cce0c6be2289d5115b5291123a7",
        sources: "leveldb-hyper-1.0.2",
        flags: &["-DHAVE_CONFIG_H=1"],
        include: &["leveldb-hyper-conf/linux", "leveldb-hyper-1.0.2"],
        supplement: None,
    },
    Recipe {
        engine: "basho",
        library: BASHO_LIBRARY,
        package: "leveldown-basho",
        version: "0.10.1",
        sha512: "ac3058941f2c1d9d878ce4c891d79fde012f6d8fe1b0e5dc0bc062462151f09\
                 191f483122609884c0b99a28a2ed5cd0cbba5611031534a99460a43b36d158e49",
        sources: "leveldb-basho",
        flags: &[],
        include: &["leveldb-basho", "leveldb-basho/include"],
        supplement: Some(include_str!("basho_supplement.cc")),
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

/// Builds the forks that are missing or were built otherwise.
pub fn build(place: &Place) -> Vec<(String, Outcome)> {
    let outcome = |recipe: &Recipe| Outcome::of(recipe.build(&place.dir));
    RECIPES.iter().map(|recipe| (recipe.engine.to_string(), outcome(recipe))).collect()
}

impl Recipe {
    fn build(&self, dir: &Path) -> Result<Outcome> {
        let (library, note) =
            (dir.join(self.library), dir.join(self.library).with_extension("txt"));
        let same = std::fs::read_to_string(&note).is_ok_and(|text| text == self.told());
        if same && load_built(&library).is_ok() {
            return Ok(Outcome::Present(engines::version(self.engine)?));
        }
        ensure!(cfg!(target_os = "linux"), "it is built with flags for Linux only");
        let work = tempfile::Builder::new().prefix("building-").tempdir_in(dir)?;
        let archive = self.fetch(dir, work.path())?;
        run(Command::new("tar").arg("xzf").arg(&archive).current_dir(work.path()))?;
        let made = self.compile(&work.path().join("package/deps"), work.path())?;
        std::fs::rename(made, &library)?;
        std::fs::write(note, self.told())?;
        Ok(Outcome::Installed(engines::version(self.engine)?))
    }

    /// How it is built, as it is noted beside the library.
    fn told(&self) -> String {
        let flags = [FLAGS, self.flags].concat().join(" ");
        let supplement = self.supplement.unwrap_or_default();
        format!("{} {}\n{}\ng++ {flags}\n{supplement}", self.package, self.version, self.sha512)
    }

    /// The package's archive: one that lies in `dir`, or from npm.
    fn fetch(&self, dir: &Path, work: &Path) -> Result<PathBuf> {
        let name = format!("{}-{}.tgz", self.package, self.version);
        let given = dir.join(&name);
        let archive = if given.is_file() {
            given
        } else {
            let wanted = format!("{}@{}", self.package, self.version);
            run(Command::new("npm").args(["pack", "--silent", &wanted]).current_dir(work))
                .with_context(|| {
                    format!("no {wanted} from npm; {} is taken where it exists", given.display())
                })?;
            work.join(&name)
        };
        let sum = run(Command::new("sha512sum").arg(&archive))?;
        let sum = sum.split_whitespace().next().unwrap_or_default();
        ensure!(sum == self.sha512, "{} is not the archive that is known", archive.display());
        Ok(archive)
    }

    /// Compiles everything below `deps` into a library in `work`.
    fn compile(&self, deps: &Path, work: &Path) -> Result<PathBuf> {
        let snappy = deps.join("snappy/snappy-1.1.1");
        let snappy_config = deps.join("snappy/linux");
        // By itself: it has a config.h of its own.
        let objects = work.join("snappy");
        std::fs::create_dir(&objects)?;
        let mut gcc = Command::new("g++");
        gcc.args(FLAGS).args(["-DHAVE_CONFIG_H=1", "-c", "-I"]).arg(&snappy_config);
        gcc.args(SNAPPY.map(|file| snappy.join(file))).current_dir(&objects);
        run(&mut gcc)?;

        let leveldb = deps.join("leveldb");
        let made = work.join(self.library);
        let mut gcc = Command::new("g++");
        // Nothing undefined, and its own symbols first.
        gcc.args(FLAGS).args(self.flags).args(["-shared", "-Wl,-z,defs", "-Wl,-Bsymbolic", "-o"]);
        gcc.arg(&made);
        for dir in self.include {
            gcc.arg("-I").arg(leveldb.join(dir));
        }
        gcc.arg("-I").arg(&snappy_config).arg("-I").arg(&snappy);
        gcc.args(sources(&leveldb.join(self.sources))?);
        if let Some(text) = self.supplement {
            let file = work.join("supplement.cc");
            std::fs::write(&file, text)?;
            gcc.arg(file);
        }
        gcc.args(SNAPPY.map(|file| objects.join(file).with_extension("o")));
        run(&mut gcc)?;
        Ok(made)
    }
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
    fn an_archive_that_is_not_the_known_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for recipe in &RECIPES {
            assert_eq!(recipe.sha512.len(), 128);
            let name = format!("{}-{}.tgz", recipe.package, recipe.version);
            std::fs::write(dir.path().join(name), "something else").unwrap();
        }
        let place = Place { dir: dir.path().to_path_buf(), source: None };
        for (engine, outcome) in build(&place) {
            let Outcome::Failed(why) = outcome else { panic!("{engine} was built") };
            assert!(why.contains("is not the archive that is known"), "{engine}: {why}");
        }
    }

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
