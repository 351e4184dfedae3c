//! Engines that the distribution has: Debian's packages and those of its relatives.

use super::command::{find, run, run_as};
use super::outcome::{Outcome, Place};
use anyhow::{Result, bail};
use std::process::Command;

/// Packages with the libraries of engines, and what the others are fetched and built with; each with the engines that it is
/// for. The names of development packages, unlike those of the libraries, stay the same from release to release.
const PACKAGES: &[(&str, &[&str])] = &[
    ("g++", &["lmdb", "leveldb", "sqlite", "hyperleveldb", "basho", "bdb", "wiredtiger"]),
    ("cmake", &["wiredtiger"]),
    ("npm", &["sqlite", "hyperleveldb", "basho"]),
    ("python3-pip", &["lmdb", "leveldb", "wiredtiger"]),
    ("maven", &["rocksdb"]),
    ("libsnappy-dev", &["wiredtiger"]),
    ("libdb5.3-dev", &["bdb"]),
    ("libkyotocabinet-dev", &["kyoto"]),
];

/// A program that makes its package unnecessary, wherever it came from.
fn stands_for(package: &str) -> Option<&'static str> {
    match package {
        "g++" => Some("g++"),
        "cmake" => Some("cmake"),
        "npm" => Some("npm"),
        "python3-pip" => Some("pip3"),
        "maven" => Some("mvn"),
        _ => None,
    }
}

/// Installs the packages that are missing.
pub fn install(place: &Place) -> Vec<(String, Outcome)> {
    let is_there = |package: &&str| {
        installed(package) || stands_for(package).is_some_and(|program| find(program).is_some())
    };
    let is_wanted = |engines: &[&str]| engines.iter().any(|engine| place.wants(engine));
    let wanted = PACKAGES.iter().filter(|(_, engines)| is_wanted(engines)).map(|(p, _)| *p);
    let (present, missing): (Vec<&str>, Vec<&str>) = wanted.partition(is_there);
    let mut lines = Vec::new();
    if !present.is_empty() {
        let how = Outcome::Present("as packages or on the path".to_string());
        lines.push((present.join(" "), how));
    }
    if missing.is_empty() {
        return lines;
    }
    // The lists of packages may be missing (a fresh container) or old.
    let together = apt_get_install(&missing).or_else(|_| {
        apt_get(&["update"])?;
        apt_get_install(&missing)
    });
    match together {
        Ok(()) => {
            lines.push((missing.join(" "), Outcome::Installed("apt-get install".to_string())));
        }
        // One that this release does not have must not keep the others out.
        Err(_) if missing.len() > 1 && as_root().is_ok() => lines.extend(missing.iter().map(|p| {
            let done = |()| Outcome::Installed("apt-get install".to_string());
            (p.to_string(), Outcome::of(apt_get_install(&[p]).map(done)))
        })),
        Err(e) => lines.push((missing.join(" "), Outcome::Failed(format!("{e:#}")))),
    }
    lines
}

fn installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    run(query.args(["-W", "-f=${Status}", package])).is_ok_and(|said| said.contains("ok installed"))
}

fn apt_get_install(packages: &[&str]) -> Result<()> {
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if find("apt-get").is_none() {
        bail!("no apt-get here; install by hand what other systems call {}", packages.join(" "));
    }
    if as_root().is_err() {
        bail!("neither root nor sudo without a password; run: sudo {by_hand}");
    }
    apt_get(&[&["install", "-y", "--no-install-recommends"], packages].concat())
}

fn apt_get(args: &[&str]) -> Result<()> {
    let mut command = as_root()?;
    command.args(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
    // Somebody else may be installing.
    command.args(["-o", "DPkg::Lock::Timeout=300"]).args(args);
    run_as("apt-get", &mut command).map(|_| ())
}

/// A command to which a command line can be added that then runs as root.
fn as_root() -> Result<Command> {
    if rustix::process::geteuid().is_root() {
        // `env` twice is harmless, and keeps both ways alike.
        return Ok(Command::new("env"));
    }
    run(Command::new("sudo").args(["-n", "true"]))?;
    let mut sudo = Command::new("sudo");
    sudo.arg("-n");
    Ok(sudo)
}
