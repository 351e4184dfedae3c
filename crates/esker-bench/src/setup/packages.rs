//! Engines that the distribution has: Debian's packages and those of its relatives.

use super::command::{find, run, run_as};
use super::outcome::{Outcome, Place};
use anyhow::{Result, bail};
use std::process::Command;

/// Packages with the libraries of engines, and what the others are fetched and built with; each with a program that makes it
/// unnecessary, wherever that came from, and with the engines that it is for. The names of development packages, unlike those of
/// the libraries, stay the same from release to release.
const PACKAGES: &[(&str, Option<&str>, &[&str])] = &[
    (
        "g++",
        Some("g++"),
        &["lmdb", "leveldb", "sqlite", "hyperleveldb", "basho", "bdb", "wiredtiger"],
    ),
    ("cmake", Some("cmake"), &["wiredtiger"]),
    ("npm", Some("npm"), &["sqlite", "hyperleveldb", "basho"]),
    ("python3-pip", Some("pip3"), &["lmdb", "leveldb", "wiredtiger"]),
    ("maven", Some("mvn"), &["rocksdb"]),
    ("libsnappy-dev", None, &["wiredtiger"]),
    ("libdb5.3-dev", None, &["bdb"]),
    ("libkyotocabinet-dev", None, &["kyoto"]),
];

/// Installs the packages that are missing.
pub fn install(place: &Place) -> Vec<(String, Outcome)> {
    let (mut present, mut missing) = (Vec::new(), Vec::new());
    for (package, program, engines) in PACKAGES {
        if engines.iter().any(|engine| place.wants(engine)) {
            let is_there = installed(package) || program.and_then(find).is_some();
            if is_there { &mut present } else { &mut missing }.push(*package);
        }
    }
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
