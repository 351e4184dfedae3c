//! The program with the engines that are crates: built by cargo from Esker's own sources.

use super::command::{find, run};
use super::outcome::{Outcome, Place};
use crate::external;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds it; cargo knows whether there is anything to do.
pub fn build(place: &Place) -> Vec<(String, Outcome)> {
    vec![(external::NAMES.join(" "), Outcome::of(try_build(place)))]
}

fn try_build(place: &Place) -> Result<Outcome> {
    let manifest = sources(place.source)?.join("crates/esker-bench-engines/Cargo.toml");
    ensure!(
        manifest.is_file(),
        "{} is not there: --source names the directory with the sources of Esker",
        manifest.display()
    );
    let target = place.dir.join("target");
    let mut cargo = Command::new(cargo()?);
    cargo.args(["build", "--release", "--locked", "--manifest-path"]).arg(&manifest);
    cargo.arg("--target-dir").arg(&target);
    // What is set for another build must not lead elsewhere.
    cargo.env_remove("CARGO_BUILD_TARGET").env_remove("CARGO_MAKEFLAGS");
    run(&mut cargo)?;

    let (built, installed) =
        (target.join("release").join(external::PROGRAM), place.dir.join(external::PROGRAM));
    if same(&built, &installed)? {
        return Ok(Outcome::Present(versions()?));
    }
    // A program that is running keeps the file it was started from.
    let beside = place.dir.join(format!("{}.new", external::PROGRAM));
    std::fs::copy(&built, &beside).with_context(|| built.display().to_string())?;
    std::fs::rename(&beside, &installed)?;
    Ok(Outcome::Installed(versions()?))
}

/// The root of Esker's sources: as told, or where this was built.
fn sources(told: Option<&Path>) -> Result<PathBuf> {
    if let Some(told) = told {
        return Ok(std::path::absolute(told)?);
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    ensure!(
        here.is_dir(),
        "the sources that this was built from are gone ({}); --source DIR names others",
        here.display()
    );
    here.ancestors().nth(2).map(Path::to_path_buf).context("the sources have no root")
}

/// Cargo, which may be installed and not on the path of a shell that is no login shell.
fn cargo() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let beside = home.map(|home| home.join("bin/cargo")).filter(|path| path.is_file());
    find("cargo").or(beside).context("cargo is missing; https://rustup.rs installs it")
}

fn same(a: &Path, b: &Path) -> Result<bool> {
    if !b.is_file() {
        return Ok(false);
    }
    Ok(std::fs::read(a).with_context(|| a.display().to_string())? == std::fs::read(b)?)
}

/// What it has; that it answers shows that it runs here.
fn versions() -> Result<String> {
    let version = |name: &&str| Ok(format!("{name} {}", external::version(name)?));
    let versions: Result<Vec<String>> = external::NAMES.iter().map(version).collect();
    Ok(versions?.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_are_not_there_are_a_failure_that_says_what_to_name() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place { dir: dir.path().to_path_buf(), engines: &[], source: Some(dir.path()) };
        let [(what, Outcome::Failed(why))] = &build(&place)[..] else { panic!("it was built") };
        assert!(what.contains("redb") && why.contains("--source names"), "{why}");
        assert!(sources(None).unwrap().join("crates/esker-bench-engines/Cargo.toml").is_file());
    }
}
