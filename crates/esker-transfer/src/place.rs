//! Where a new database gets its name: it is made beside that place and renamed when it is whole.
//!
//! What a rename cannot replace is refused before anything is read, not at the end of the work.

use std::fs::{self, File, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::{Error, Result};

/// The place of a new database.
#[derive(Debug, Clone)]
pub struct Place {
    /// As it was asked for, for messages.
    asked_for: PathBuf,
    /// Without links, and without a slash behind it.
    target: PathBuf,
    partial: PathBuf,
    dir: PathBuf,
}

impl Place {
    /// The place that `path` names. Links are followed to it, so that they stay.
    pub fn of(path: &Path) -> Result<Place> {
        // This drops a slash at the end, which would make `x/.partial` of `x/`.
        let plain: PathBuf = path.components().collect();
        let is_link = || fs::symlink_metadata(&plain).is_ok_and(|m| m.is_symlink());
        let target = match plain.file_name() {
            Some(name) if !is_link() => {
                let dir = plain.parent().filter(|dir| *dir != Path::new(""));
                let dir = dir.unwrap_or(Path::new(".")).canonicalize();
                dir.map_err(Error::io("create", &with_partial(&plain)))?.join(name)
            }
            // `.`, `..` or a link: it has no name that something could be made beside.
            _ => plain.canonicalize().map_err(Error::io("follow", path))?,
        };
        let Some(dir) = target.parent() else {
            return Err(Error::Refused(format!("{} is the root directory", path.display())));
        };
        let (dir, partial) = (dir.to_owned(), with_partial(&target));
        Ok(Place { asked_for: path.to_owned(), target, partial, dir })
    }

    /// The directory that the database will be in.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the database is made.
    #[must_use]
    pub fn partial(&self) -> &Path {
        &self.partial
    }

    /// Refuses a place that could not be renamed to, or that another is made for.
    pub fn check(&self) -> Result<()> {
        self.check_empty()?;
        if fs::symlink_metadata(&self.partial).is_ok() {
            return Err(self.is_taken());
        }
        Ok(())
    }

    fn refused(&self, what: &str) -> Error {
        Error::Refused(format!("{} {what}", self.asked_for.display()))
    }

    fn is_taken(&self) -> Error {
        Error::Refused(format!(
            "{} is there: another import or export writes it, or one was killed; if none runs, \
             remove it",
            self.partial.display()
        ))
    }

    fn check_empty(&self) -> Result<()> {
        let mut entries = match fs::read_dir(&self.target) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() == ErrorKind::NotADirectory => {
                return Err(self.refused("is there, and no directory"));
            }
            Err(e) => return Err(Error::io("list", &self.target)(e)),
        };
        if let Some(entry) = entries.next() {
            let name = entry.map_err(Error::io("list", &self.target))?.file_name();
            return Err(self.refused(&format!(
                "holds other files, {name:?} for one; a database is made in a new directory, or in \
                 an empty one"
            )));
        }
        let owner = fs::metadata(&self.target).map_err(Error::io("look at", &self.target))?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            return Err(self.refused(&format!(
                "belongs to user {owner}, and what is made in its place would not; do this as that \
                 user, or name a new directory"
            )));
        }
        if is_mounted(&self.target, &self.dir)? {
            return Err(self.refused(
                "is where something is mounted, and cannot be replaced by a directory that is \
                 whole; name a new directory in it",
            ));
        }
        // The shell that is in it would stay in a directory that is gone.
        if Path::new(".").canonicalize().is_ok_and(|here| here == self.target) {
            return Err(self.refused(
                "is the directory that this runs in, which would be replaced; go to another, or \
                 name a new directory in it",
            ));
        }
        Ok(())
    }

    /// Makes the directory for the database beside its place. Where one gives way, nobody else can look into it until it is
    /// whole.
    pub fn begin(&self) -> Result<()> {
        let mode = if self.target.exists() { 0o700 } else { 0o777 };
        fs::DirBuilder::new().mode(mode).create(&self.partial).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => self.is_taken(),
            _ => Error::io("create", &self.partial)(e),
        })
    }

    /// Gives the database its name. An empty directory gives way, and its permissions stay; what came into
    /// it meanwhile does not.
    pub fn rename(&self) -> Result<()> {
        if let Ok(there) = fs::metadata(&self.target) {
            let set = self.succeed(&there);
            set.map_err(Error::io("set the permissions of", &self.partial))?;
        }
        fs::rename(&self.partial, &self.target).map_err(Error::io("rename to", &self.target))
    }

    /// By the directory that was made, whatever somebody who may rename here has put in its place. Where it cannot have the
    /// group, those in it get no rights.
    fn succeed(&self, there: &Metadata) -> std::io::Result<()> {
        let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
        let made = File::options().read(true).custom_flags(flags).open(&self.partial)?;
        if made.metadata()?.uid() != there.uid() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let gid = there.gid();
        let has_group = made.metadata()?.gid() == gid || fchown(&made, None, Some(gid)).is_ok();
        let mode = if has_group { 0o7777 } else { 0o7707 } & there.mode();
        made.set_permissions(Permissions::from_mode(mode))
    }

    /// Makes the name durable.
    pub fn sync(&self) -> Result<()> {
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(Error::io("sync", &self.dir))
    }
}

fn with_partial(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    partial.into()
}

/// Whether something is mounted at `target`: then nothing is renamed to it.
fn is_mounted(target: &Path, dir: &Path) -> Result<bool> {
    let device = |path| fs::metadata(path).map(|m| m.dev()).map_err(Error::io("look at", path));
    Ok(device(target)? != device(dir)? || is_mount_root(target))
}

/// A directory mounted at another place has the device of both.
#[cfg(target_os = "linux")]
fn is_mount_root(target: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    let stat = statx(CWD, target, AtFlags::empty(), StatxFlags::TYPE);
    stat.is_ok_and(|s| s.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
fn is_mount_root(_target: &Path) -> bool {
    false
}
