//! Libraries whose C interface is methods in structs (Berkeley DB, WiredTiger). Only their own
//! header knows where in a struct a method lies, so a file of C stands between them and us
//! (`shim/`), compiled on first use against the header that is installed, and kept.
//!
//! The structs could be declared here instead, or internal functions of the library be called by
//! name; either would be silently wrong with another version, where a compiler notices.

use super::built::{self, Built};
use super::library;
use super::places::setup_dir;
use anyhow::{Context, Result, bail};
use libloading::Library;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADER: &str = include_str!("../../shim/shim.h");

/// A shim: its source, and what it is compiled with.
pub struct Shim {
    /// The engine that it is of; one of them, where there are several.
    engine: &'static str,
    source: &'static str,
    /// What `--setup` makes, which it is compiled with where that is taken.
    built: Option<Built>,
    /// Otherwise: names of the library for the linker; the first that links.
    links: &'static [&'static str],
    package: &'static str,
}

/// Between Berkeley DB and us.
pub const BDB: Shim = Shim {
    engine: "bdb",
    source: include_str!("../../shim/bdb.c"),
    built: None,
    links: &["db-5.3", "db"],
    package: "libdb5.3-dev",
};

/// Between WiredTiger and us.
pub const WIREDTIGER: Shim = Shim {
    engine: "wiredtiger",
    source: include_str!("../../shim/wiredtiger.c"),
    built: Some(built::WIREDTIGER),
    links: &["wiredtiger"],
    package: "libwiredtiger-dev",
};

/// Between the C library and whatever waits for the device ([`crate::device`]).
pub const DEVICE: Shim = Shim {
    engine: "device",
    source: include_str!("../../shim/device.c"),
    built: None,
    links: &["dl"],
    package: "libc6-dev",
};

/// Those of engines.
pub const ALL: [Shim; 2] = [BDB, WIREDTIGER];

impl Shim {
    /// The engine that it is of.
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    fn taken(&self) -> Option<&Built> {
        self.built.as_ref().filter(|built| built.is_taken())
    }

    /// Whether it stands between us and what `--setup` made.
    pub fn takes_built(&self) -> bool {
        self.taken().is_some()
    }

    /// What the library says of its version, and whose build it is.
    pub fn told(&self, version: &str) -> String {
        self.built.as_ref().map_or_else(|| format!("{version} system"), |built| built.told(version))
    }

    /// Whether it was compiled into a directory.
    pub fn is_in(&self, dir: &Path) -> bool {
        self.path(dir).exists()
    }

    /// Where it is, compiled now if it never was.
    pub fn made(&self) -> Result<PathBuf> {
        let dir = setup_dir();
        if !self.is_in(&dir) {
            self.build(&dir)?;
        }
        Ok(self.path(&dir))
    }

    /// Loads it, compiled now if it never was.
    pub fn load(&self) -> Result<&'static Library> {
        let path = self.made()?;
        let name = path.to_str().context("the path of the shim is not UTF-8")?;
        library::load(&[name], self.package).with_context(|| {
            format!("{name} does not load; if its library is installed, delete the file")
        })
    }

    /// What finds header and library, a set for each name to be tried.
    fn arguments(&self) -> Vec<Vec<String>> {
        let Some(built) = self.taken() else {
            return self.links.iter().map(|link| vec![format!("-l{link}")]).collect();
        };
        let dir = built.dir().display().to_string();
        let library = format!("{dir}/{}", built.file);
        vec![vec![format!("-I{dir}"), library, format!("-Wl,-rpath,{dir}")]]
    }

    /// Another source, or another library, has another name, so that what is kept is never out of date.
    fn path(&self, dir: &Path) -> PathBuf {
        let hash = HEADER
            .bytes()
            .chain(self.source.bytes())
            .chain(self.arguments().concat().concat().bytes())
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ b as u64).wrapping_mul(0x100_0000_01b3));
        let suffix = std::env::consts::DLL_SUFFIX;
        dir.join(format!("libesker-bench-{}-{hash:016x}{suffix}", self.engine))
    }

    /// Compiles it into a directory.
    pub fn build(&self, dir: &Path) -> Result<()> {
        let path = self.path(dir);
        std::fs::create_dir_all(dir)
            .with_context(|| format!("cannot make the directory {}", dir.display()))?;
        // In a directory of its own and then renamed, because two processes may do so at once.
        let work = tempfile::tempdir_in(dir).context("cannot make a temporary directory")?;
        let (source, made) = (work.path().join("shim.c"), work.path().join("shim.so"));
        std::fs::write(work.path().join("shim.h"), HEADER)?;
        std::fs::write(&source, self.source)?;
        let compiler = std::env::var_os("CC").filter(|c| !c.is_empty()).unwrap_or("cc".into());
        let mut complaint = String::new();
        for arguments in self.arguments() {
            let output = Command::new(&compiler)
                .args(["-std=gnu11", "-O2", "-shared", "-fPIC", "-o"])
                .arg(&made)
                .arg(&source)
                .args(&arguments)
                .output();
            let output = match output {
                Ok(output) => output,
                Err(e) => bail!(
                    "not installed: apt-get install gcc {} ({}: {e})",
                    self.package,
                    Path::new(&compiler).display()
                ),
            };
            if output.status.success() {
                std::fs::rename(&made, &path)?;
                return Ok(());
            }
            complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        }
        let lines = complaint.lines();
        let first = lines.clone().find(|line| line.contains("error")).or(lines.last());
        let first = first.unwrap_or("the compiler failed");
        bail!("not installed: apt-get install {} ({first})", self.package)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_says_how_to_get_it() {
        let dir = tempfile::tempdir().unwrap();
        let source = "#include <no-such-store.h>\n";
        let shim =
            Shim { engine: "none", source, built: None, links: &["none"], package: "libnone-dev" };
        let error = format!("{:#}", shim.build(dir.path()).unwrap_err());
        assert!(error.starts_with("not installed: apt-get install"), "{error}");
        assert!(error.contains("libnone-dev"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
