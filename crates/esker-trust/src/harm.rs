//! Ways to damage a store, as values: drawn, told, and applied to its files.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs, io};

use serde::{Deserialize, Serialize};

use crate::Rng;

/// Paths below a store's directory, and contents.
pub type Files = BTreeMap<String, Vec<u8>>;

const SECTOR: usize = 512;

/// Damage to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Harm {
    /// Its path below the store's directory.
    pub file: String,
    /// What is done to it.
    pub what: What,
}

/// What is done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Nothing at all.
    Nothing,
    /// The bit of the byte at this offset is flipped.
    Flip(usize, u8),
    /// So many bytes from this offset on are zeros.
    Zero(usize, usize),
    /// From this offset on there are other bytes.
    Garbage(usize, Vec<u8>),
    /// It ends at this offset.
    Cut(usize),
    /// More bytes follow.
    Longer(Vec<u8>),
    /// It is gone.
    Missing,
    /// The content of another file is in the place of its own.
    Copy(String),
    /// It and another have each other's content.
    Swap(String),
    /// A file that was not there, with what is in it.
    Extra(Vec<u8>),
    /// A directory that was not there, with a file in it.
    ExtraDirectory,
}

/// A kind of damage that can be drawn for any file of any engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One bit of one byte.
    Flip,
    /// A sector of 512 bytes is zeros.
    Zero,
    /// Up to 4 KiB are random bytes.
    Garbage,
    /// A file is cut off.
    Cut,
    /// A file is gone.
    Remove,
    /// Two files have each other's content.
    Swap,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] =
        [Kind::Flip, Kind::Zero, Kind::Garbage, Kind::Cut, Kind::Remove, Kind::Swap];

    /// Those for a store of so many files: without its only file it is not damaged but gone, and there
    /// is nothing to swap.
    pub fn of(files: usize) -> &'static [Kind] {
        if files > 1 { &Kind::ALL } else { &Kind::ALL[..4] }
    }

    /// As the head of a column.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Flip => "bit flipped",
            Kind::Zero => "sector zeroed",
            Kind::Garbage => "4 KiB of garbage",
            Kind::Cut => "file cut",
            Kind::Remove => "file removed",
            Kind::Swap => "files swapped",
        }
    }

    /// Damage of this kind to one of a store's files.
    pub fn draw(self, file: &str, files: &Files, rng: &mut Rng) -> Harm {
        let bytes = &files[file];
        let (len, used) = (bytes.len(), used(bytes));
        let what = match self {
            // There is nothing in it to be changed.
            Kind::Flip | Kind::Zero | Kind::Garbage if used == 0 => What::Missing,
            Kind::Flip => {
                let at = used_sector(bytes, rng);
                What::Flip(at + rng.index(SECTOR.min(len - at)), rng.below(8) as u8)
            }
            Kind::Zero => What::Zero(used_sector(bytes, rng), SECTOR),
            Kind::Garbage => {
                let at = used_sector(bytes, rng);
                What::Garbage(at, rng.bytes((8 * SECTOR).min(len - at)))
            }
            Kind::Cut => What::Cut(rng.index(used.max(1))),
            Kind::Remove => What::Missing,
            Kind::Swap => {
                let others: Vec<_> = files.keys().filter(|name| *name != file).collect();
                What::Swap(rng.pick(&others).to_string())
            }
        };
        Harm::new(file, what)
    }
}

/// A file: every other time any of them, every other time that of one byte of them all, so that
/// neither small files nor large ones are passed over.
pub fn any_file<'a>(files: &'a Files, rng: &mut Rng) -> &'a str {
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let mut at = rng.index(files.values().map(Vec::len).sum());
    let holds = |name: &&&str| {
        let len = files[**name].len();
        let found = at < len;
        at = at.wrapping_sub(len);
        found
    };
    let of_byte = names.iter().find(holds).expect("the lengths were summed");
    let any = *rng.pick(&names);
    if rng.one_in(2) { any } else { of_byte }
}

/// How much of a file holds something: space in reserve is zeros, and damage there is none.
pub fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1)
}

/// Where a sector begins that has something in it, in a file that has.
fn used_sector(bytes: &[u8], rng: &mut Rng) -> usize {
    let holds = |at: &usize| bytes[*at..].iter().take(SECTOR).any(|byte| *byte != 0);
    *rng.pick(&(0..bytes.len()).step_by(SECTOR).filter(holds).collect::<Vec<_>>())
}

impl Harm {
    /// Damage to a file.
    pub fn new(file: &str, what: What) -> Harm {
        Harm { file: file.to_string(), what }
    }

    /// Damages the store in `dir`. What an earlier damage took away is passed over.
    pub fn apply(&self, dir: &Path) -> io::Result<()> {
        let path = dir.join(&self.file);
        let mut bytes = fs::read(&path).unwrap_or_default();
        match &self.what {
            What::Nothing => return Ok(()),
            What::Missing if path.exists() => return fs::remove_file(&path),
            What::Missing => return Ok(()),
            What::ExtraDirectory => {
                fs::create_dir(&path)?;
                return fs::write(path.join("file"), b"not of this store");
            }
            // Of two at once the first may have cut off where the second falls.
            What::Flip(at, bit) => bytes.iter_mut().skip(*at).take(1).for_each(|b| *b ^= 1 << bit),
            What::Zero(at, n) => bytes.iter_mut().skip(*at).take(*n).for_each(|b| *b = 0),
            What::Garbage(at, new) => {
                bytes.iter_mut().skip(*at).zip(new).for_each(|(old, new)| *old = *new);
            }
            What::Cut(len) => bytes.truncate(*len),
            What::Longer(more) => bytes.extend(more),
            What::Copy(other) => bytes = fs::read(dir.join(other)).unwrap_or_default(),
            What::Swap(other) => {
                let theirs = fs::read(dir.join(other)).unwrap_or_default();
                fs::write(dir.join(other), std::mem::replace(&mut bytes, theirs))?;
            }
            What::Extra(content) => bytes.clone_from(content),
        }
        fs::write(path, bytes)
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        match &self.what {
            What::Nothing => write!(f, "nothing"),
            What::Flip(at, bit) => write!(f, "{file}: bit {bit} of byte {at} flipped"),
            What::Zero(at, n) => write!(f, "{file}: bytes {at} to {} zeroed", at + n),
            What::Garbage(at, new) => write!(f, "{file}: bytes {at} to {} random", at + new.len()),
            What::Cut(len) => write!(f, "{file}: cut to {len} bytes"),
            What::Longer(more) => write!(f, "{file}: {} bytes longer", more.len()),
            What::Missing => write!(f, "{file} removed"),
            What::Copy(other) => write!(f, "{file}: the content of {other}"),
            What::Swap(other) => write!(f, "{file} and {other} swapped"),
            What::Extra(bytes) => write!(f, "{file}: a file too many, of {} bytes", bytes.len()),
            What::ExtraDirectory => write!(f, "{file}: a directory too many"),
        }
    }
}

/// The files below a directory that have anything in them.
pub fn files(dir: &Path) -> io::Result<Files> {
    let mut found = Files::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            let below = files(&entry.path())?.into_iter();
            found.extend(below.map(|(path, bytes)| (format!("{name}/{path}"), bytes)));
        } else if entry.metadata()?.len() > 0 {
            found.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(found)
}

/// Copies a directory with all below it.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), &target)?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_changes_what_it_says() {
        let parent = tempfile::tempdir().unwrap();
        let [good, bad] = ["good", "bad"].map(|name| parent.path().join(name));
        fs::create_dir_all(good.join("sub")).unwrap();
        let mut long = vec![7; 9000];
        long.resize(1 << 20, 0);
        fs::write(good.join("a"), &long).unwrap();
        fs::write(good.join("sub/b"), b"short").unwrap();
        fs::write(good.join("lock"), b"").unwrap();
        let before = files(&good).unwrap();
        assert_eq!(before.keys().collect::<Vec<_>>(), ["a", "sub/b"]);
        for case in 0..60 {
            let (kind, rng) = (Kind::ALL[case % 6], &mut Rng::new(case as u64));
            copy(&good, &bad).unwrap();
            let harm = kind.draw(any_file(&before, rng), &before, rng);
            harm.apply(&bad).unwrap();
            let after = files(&bad).unwrap();
            let changed = before.iter().filter(|(name, bytes)| after.get(*name) != Some(bytes));
            assert_eq!(changed.count(), if kind == Kind::Swap { 2 } else { 1 }, "{harm}");
            fs::remove_dir_all(&bad).unwrap();
        }
    }

    #[test]
    fn one_file_alone_cannot_be_swapped() {
        assert!(!Kind::of(1).contains(&Kind::Swap) && !Kind::of(1).contains(&Kind::Remove));
    }
}
