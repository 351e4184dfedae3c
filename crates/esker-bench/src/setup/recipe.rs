//! How a library is made of an archive, whole or not at all: in a directory beside its own, which is renamed when all is done. An
//! interrupted set-up leaves nothing that looks made.

use super::alone::UNFINISHED;
use super::archive::Archive;
use super::command::run;
use super::outcome::{Outcome, Place};
use crate::engines;
use crate::engines::built::Built;
use crate::engines::library::load_built;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// How a library is made.
pub struct Recipe {
    /// What it becomes: the library that is called as its engine is.
    pub built: Built,
    /// What it is made of.
    pub archive: Archive,
    /// The parts of the archive that are unpacked, where not all are.
    pub members: &'static [&'static str],
    /// How, in words; other words make it anew.
    pub how: &'static [&'static str],
    /// Makes it.
    pub make: fn(&Kitchen) -> Result<()>,
}

/// What a recipe is made with.
pub struct Kitchen<'a> {
    /// Its recipe.
    pub recipe: &'a Recipe,
    /// The archive, unpacked.
    pub sources: &'a Path,
    /// A directory for what is made on the way.
    pub work: &'a Path,
    /// Where the library goes.
    pub to: &'a Path,
}

/// Beside the library: how it was made.
const NOTE: &str = "how.txt";

impl Recipe {
    /// Makes it, if it is missing or was made otherwise.
    pub fn follow(&self, place: &Place) -> (String, Outcome) {
        (self.built.name.to_string(), Outcome::of(self.make_in(&place.dir)))
    }

    fn make_in(&self, root: &Path) -> Result<Outcome> {
        let dir = self.built.dir_in(root);
        let said =
            || Ok(format!("{}, {}", engines::version(self.built.name)?, self.archive.told()));
        let same = std::fs::read_to_string(dir.join(NOTE)).is_ok_and(|text| text == self.told());
        if same && load_built(&dir.join(self.built.file)).is_ok() {
            return said().map(Outcome::Present);
        }
        let scratch = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(root)?;
        let [sources, work, to] = ["sources", "work", "made"].map(|name| scratch.path().join(name));
        for dir in [&sources, &work, &to] {
            std::fs::create_dir(dir)?;
        }
        let archive = self.archive.fetch(root, scratch.path())?;
        self.archive.unpack(&archive, &sources, self.members)?;
        (self.make)(&Kitchen { recipe: self, sources: &sources, work: &work, to: &to })?;
        std::fs::write(to.join(NOTE), self.told())?;
        if dir.exists() {
            std::fs::rename(&dir, scratch.path().join("old"))?;
        }
        std::fs::rename(to, dir)?;
        said().map(Outcome::Installed)
    }

    fn told(&self) -> String {
        let archive = &self.archive;
        format!("{}\nSHA-256 {}\n{}\n", archive.told(), archive.sha256, self.how.join(" "))
    }
}

impl Kitchen<'_> {
    /// Compiles files of the sources into the library, with the flags of its recipe.
    pub fn compile(&self, compiler: &str, directory: &Path, files: &[&str]) -> Result<()> {
        let mut command = Command::new(compiler);
        command.args(self.recipe.how).args(["-shared", "-fPIC", "-pthread", "-o"]);
        command.arg(self.to.join(self.recipe.built.file));
        run(command.args(files).current_dir(directory)).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::super::archive::Registry;
    use super::*;

    /// Of an archive that is made here, for an engine that needs no library.
    fn recipe(dir: &Path, make: fn(&Kitchen) -> Result<()>) -> Recipe {
        let file = "sources.tgz";
        run(Command::new("tar").args(["czf", file, "-T", "/dev/null"]).current_dir(dir)).unwrap();
        let sum = run(Command::new("sha256sum").arg(dir.join(file))).unwrap();
        let sum: &'static str = String::leak(sum);
        let sha256 = sum.split_whitespace().next().unwrap();
        let (name, version) = ("fake", "1");
        let archive = Archive { registry: Registry::Npm, name, version, file, sha256 };
        let built = Built { name, version, file: "libnone.so", how: "" };
        Recipe { built, archive, members: &[], how: &[], make }
    }

    #[test]
    fn what_is_only_half_made_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place { dir: dir.path().to_path_buf(), engines: &[], source: None };
        let stops = |kitchen: &Kitchen| {
            std::fs::write(kitchen.to.join("libnone.so"), "half")?;
            anyhow::bail!("it stops here")
        };
        let (_, outcome) = recipe(dir.path(), stops).follow(&place);
        assert!(matches!(outcome, Outcome::Failed(why) if why == "it stops here"));
        assert_eq!(names(dir.path()), ["sources.tgz"]);

        let ends = |kitchen: &Kitchen| Ok(std::fs::write(kitchen.to.join("libnone.so"), "whole")?);
        let (_, outcome) = recipe(dir.path(), ends).follow(&place);
        assert!(matches!(outcome, Outcome::Installed(_)));
        assert_eq!(names(dir.path()), ["fake-1", "sources.tgz"]);
        assert_eq!(names(&dir.path().join("fake-1")), ["how.txt", "libnone.so"]);
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
