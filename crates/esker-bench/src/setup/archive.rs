//! Archives of package registries, got by each registry's own client. Each must be the very one that is known here: what
//! will run on this machine should be what was looked at.

use super::command::run;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where an archive comes from, and by which client.
pub enum Registry {
    /// npm: `npm pack`.
    Npm,
    /// PyPI, a package's sources: `pip3 download`.
    PypiSources,
    /// PyPI, the build for CPython 3.11 on Linux with x86-64, whatever is here.
    PypiBuild,
    /// Maven Central, a jar of this group: `mvn dependency:copy`.
    Maven(&'static str),
}

/// An archive.
pub struct Archive {
    /// Where from.
    pub registry: Registry,
    /// The package there.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The file that the client makes.
    pub file: &'static str,
    /// What it must hash to.
    pub sha256: &'static str,
}

/// Unpacks what is named, or all, from a zip file; Python is there where pip is.
const UNZIP: &str = "import sys, zipfile; \
                     zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2], sys.argv[3:] or None)";

impl Archive {
    /// The archive in words.
    pub fn told(&self) -> String {
        let registry = match self.registry {
            Registry::Npm => "npm",
            Registry::PypiSources | Registry::PypiBuild => "PyPI",
            Registry::Maven(_) => "Maven",
        };
        format!("{} {} of {registry}", self.name, self.version)
    }

    /// Where it is now: the one that lies in `dir`, or fetched into `work`.
    pub fn fetch(&self, dir: &Path, work: &Path) -> Result<PathBuf> {
        let given = dir.join(self.file);
        let archive = if given.is_file() {
            given
        } else {
            self.download(work).with_context(|| {
                format!("no {}; {} is taken where it exists", self.told(), given.display())
            })?;
            work.join(self.file)
        };
        let sum = run(Command::new("sha256sum").arg(&archive))?;
        let sum = sum.split_whitespace().next().unwrap_or_default();
        ensure!(sum == self.sha256, "{} is not the archive that is known", archive.display());
        Ok(archive)
    }

    /// Nothing is left in the clients' caches, where they can be told so: nobody needs it twice.
    fn download(&self, work: &Path) -> Result<()> {
        let (name, version) = (self.name, self.version);
        let pip = |arguments: &[&str]| {
            // With its hash, pip runs nothing of a package that is another one.
            let wanted = work.join("wanted.txt");
            std::fs::write(&wanted, format!("{name}=={version} --hash=sha256:{}\n", self.sha256))?;
            let mut pip = Command::new("pip3");
            pip.args(["download", "--quiet", "--no-deps", "--no-cache-dir", "--require-hashes"]);
            run(pip.args(arguments).arg("-d").arg(work).arg("-r").arg(wanted))
        };
        match self.registry {
            Registry::Npm => {
                let wanted = format!("{name}@{version}");
                run(Command::new("npm").args(["pack", "--silent", &wanted]).current_dir(work))
            }
            Registry::PypiSources => pip(&["--no-binary", name]),
            Registry::PypiBuild => pip(&[
                "--only-binary=:all:",
                "--platform=manylinux2014_x86_64",
                "--implementation=cp",
                "--python-version=3.11",
                "--abi=cp311",
            ]),
            Registry::Maven(group) => run(Command::new("mvn")
                .args(["--quiet", "--batch-mode", "dependency:copy"])
                .arg(format!("-Dmaven.repo.local={}", work.join("maven").display()))
                .arg(format!("-Dartifact={group}:{name}:{version}"))
                .arg(format!("-DoutputDirectory={}", work.display()))),
        }
        .map(|_| ())
    }

    /// Unpacks it into a directory; of zip files the members named, or all.
    pub fn unpack(&self, archive: &Path, into: &Path, members: &[&str]) -> Result<()> {
        let zipped = self.file.ends_with(".jar") || self.file.ends_with(".whl");
        let mut command = Command::new(if zipped { "python3" } else { "tar" });
        if zipped {
            command.args(["-c", UNZIP]).arg(archive).arg(into).args(members);
        } else {
            command.arg("xzf").arg(archive).arg("-C").arg(into);
        }
        run(&mut command).map(|_| ())
    }
}
