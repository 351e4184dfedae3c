//! How a library is made of an archive (`make.sh`), whole or not at all: in a directory beside its own, which is renamed when all is
//! done. An interrupted set-up leaves nothing that looks made.

use super::alone::UNFINISHED;
use super::command::{run, run_as};
#[cfg(target_arch = "x86_64")]
use super::crc32c;
use super::outcome::{Outcome, Place};
use crate::engines;
use crate::engines::built::{self, Built};
use crate::engines::library::load_built;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// How a library is made.
pub struct Recipe {
    /// What it becomes: the library that is called as its engine is.
    pub built: Built,
    /// Says how, and makes it.
    script: &'static str,
    /// What is done to it then, in the directory where it is.
    then: fn(&Path) -> Result<()>,
}

/// All of them: current releases of engines that a distribution has too, where they are old or have assertions on, and forks of
/// LevelDB that none has. Compiled from sources where that takes seconds; otherwise the release that somebody else built.
pub const ALL: &[Recipe] = &[
    Recipe::plain(built::LMDB),
    Recipe::plain(built::SQLITE),
    // Where `leveldb::crc32c::Extend` begins in the file.
    #[cfg(target_arch = "x86_64")]
    Recipe {
        then: |made| crc32c::put_into(&made.join("libleveldb-dc7a2c76.so.1.23.0"), 0x401d0),
        ..Recipe::plain(built::LEVELDB)
    },
    // Where the function is that `rocksdb::crc32c::Extend` leads to.
    #[cfg(target_arch = "x86_64")]
    Recipe {
        then: |made| crc32c::put_into(&made.join(built::ROCKSDB.file), 0x95_9290),
        ..Recipe::plain(built::ROCKSDB)
    },
    Recipe::plain(built::WIREDTIGER),
    Recipe::plain(built::HYPERLEVELDB),
    Recipe::plain(built::BASHO),
];

/// Beside the library: how it was made.
const NOTE: &str = "how.txt";

impl Recipe {
    const fn plain(built: Built) -> Recipe {
        Recipe { built, script: include_str!("make.sh"), then: |_| Ok(()) }
    }

    /// Makes it, if it is missing or was made otherwise.
    pub fn follow(&self, place: &Place) -> (String, Outcome) {
        (self.built.name.to_string(), Outcome::of(self.make_in(&place.dir)))
    }

    fn make_in(&self, root: &Path) -> Result<Outcome> {
        let dir = self.built.dir_in(root);
        let told = run(&mut self.command("told", root)?)?;
        let archive = told.lines().next().unwrap_or_default();
        let said = || Ok(format!("{}, {archive}", engines::version(self.built.name)?));
        let same = std::fs::read_to_string(dir.join(NOTE)).is_ok_and(|text| text == told);
        if same && load_built(&dir.join(self.built.file)).is_ok() {
            return said().map(Outcome::Present);
        }
        let scratch = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(root)?;
        let made = scratch.path().join("made");
        for name in ["sources", "work", "made"] {
            std::fs::create_dir(scratch.path().join(name))?;
        }
        run_as("make.sh", self.command("make", root)?.current_dir(scratch.path()))?;
        (self.then)(&made)?;
        std::fs::write(made.join(NOTE), &told)?;
        if dir.exists() {
            std::fs::rename(&dir, scratch.path().join("old"))?;
        }
        std::fs::rename(made, dir)?;
        said().map(Outcome::Installed)
    }

    fn command(&self, word: &str, root: &Path) -> Result<Command> {
        let mut command = Command::new("sh");
        command.args(["-euc", self.script, "make.sh", word, self.built.name]);
        // It works in another directory than this process.
        command.arg(std::path::absolute(root)?).arg(self.built.file);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dir: &Path) -> Place<'static> {
        Place { dir: dir.to_path_buf(), engines: &[], source: None }
    }

    #[test]
    fn what_is_only_half_made_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let follow = |script| {
            // An engine that needs no library.
            let built = Built { name: "fake", version: "1", file: "libnone.so", how: "" };
            Recipe { script, ..Recipe::plain(built) }.follow(&place(dir.path())).1
        };
        let stops = r#"[ $1 = told ] || { echo half >made/$4; echo it stops here; exit 7; }"#;
        assert!(matches!(follow(stops), Outcome::Failed(why) if why.ends_with("it stops here")));
        assert!(names(dir.path()).is_empty());

        let ends = r#"[ $1 = told ] && echo so || echo whole >made/$4"#;
        assert!(matches!(follow(ends), Outcome::Installed(how) if how == "0, so"));
        assert_eq!(names(dir.path()), ["fake-1"]);
        assert_eq!(names(&dir.path().join("fake-1")), ["how.txt", "libnone.so"]);
    }

    #[test]
    fn an_archive_that_is_not_the_known_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let words = include_str!("make.sh").split_whitespace();
        let archives: Vec<&str> = words.filter_map(|word| word.strip_prefix("archive=")).collect();
        assert_eq!(archives.len(), 7);
        for archive in archives {
            std::fs::write(dir.path().join(archive), "something else").unwrap();
        }
        for recipe in ALL {
            let (engine, Outcome::Failed(why)) = recipe.follow(&place(dir.path())) else {
                panic!("{} was made", recipe.built.name)
            };
            assert!(why.contains("is not the archive that is known"), "{engine}: {why}");
            assert!(!recipe.built.dir_in(dir.path()).exists(), "{engine}");
        }
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
