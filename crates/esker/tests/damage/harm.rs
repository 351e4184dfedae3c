//! Ways to damage a store, as values: told, applied to its files, and what may be said of them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use crate::common::rng::Rng;

/// Names and contents of a store's files.
pub type Files = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Clone)]
pub struct Harm {
    pub file: String,
    pub what: What,
}

#[derive(Debug, Clone)]
pub enum What {
    Nothing,
    /// The bit of the byte at this offset is flipped.
    Flip(usize, u8),
    /// So many bytes from this offset on are zeros.
    Zero(usize, usize),
    /// From this offset on there are other bytes.
    Garbage(usize, Vec<u8>),
    Cut(usize),
    Longer(Vec<u8>),
    Missing,
    /// The content of another file in the place of its own.
    Copy(String),
    /// A file that was not there, with what is in it.
    Extra(Vec<u8>),
    ExtraDirectory,
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Garbage(at, bytes) => {
                write!(f, "{}: {} bytes of garbage from {at} on", self.file, bytes.len())
            }
            What::Longer(more) => write!(f, "{}: {} bytes longer", self.file, more.len()),
            What::Extra(bytes) => write!(f, "{}: {} bytes too many", self.file, bytes.len()),
            what => write!(f, "{}: {what:?}", self.file),
        }
    }
}

/// How much of a file holds something: space in reserve is zeros, and damage there is none.
pub fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1)
}

impl Harm {
    pub fn new(file: &str, what: What) -> Harm {
        Harm { file: file.to_string(), what }
    }

    pub fn is_of_log(&self) -> bool {
        self.file.ends_with(".log") && !matches!(self.what, What::Extra(_) | What::Nothing)
    }

    /// Whether nothing is changed that is the store's own, or has a name as its files have.
    pub fn is_foreign(&self) -> bool {
        let own = self.file.ends_with(".log") || self.file.ends_with(".tbl");
        let own = own && self.file.starts_with("00000");
        matches!(self.what, What::Nothing | What::ExtraDirectory)
            || matches!(self.what, What::Extra(_)) && !own
    }

    /// Whether a segment of the log is gone, or what is in it.
    pub fn takes_segment(&self) -> bool {
        self.is_of_log() && matches!(self.what, What::Missing | What::Cut(_) | What::Copy(_))
    }

    pub fn apply(&self, dir: &Path) {
        let path = dir.join(&self.file);
        let mut bytes = fs::read(&path).unwrap_or_default();
        match &self.what {
            What::Nothing => return,
            What::Missing => return drop(fs::remove_file(&path)),
            What::ExtraDirectory => {
                fs::create_dir(&path).unwrap();
                return fs::write(path.join("file"), b"not of this store").unwrap();
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
            What::Extra(content) => bytes.clone_from(content),
        }
        fs::write(path, bytes).unwrap();
    }
}

/// Damage drawn at random to one of a store's files.
pub fn random(files: &Files, rng: &mut Rng) -> Harm {
    let mut names: Vec<&String> = files.keys().filter(|n| *n != "LOCK").collect();
    if rng.one_in(4) {
        // The small files have few bytes but much to say.
        names.retain(|n| n.starts_with("MANIFEST") || *n == "CURRENT");
    }
    let name = rng.pick(&names);
    let (len, used) = (files[name].len(), used(&files[name]));
    let what = match rng.below(16) {
        0..=5 if used > 0 => What::Flip(rng.below(used), rng.below(8) as u8),
        6 | 7 if used > 0 => What::Zero(rng.below(used) & !511, 512),
        8 | 9 if used > 0 => {
            let (at, most) = (rng.below(used), if rng.one_in(2) { 64 } else { 4096 });
            let n = (len - at).min(1 + rng.below(most));
            What::Garbage(at, rng.bytes(n))
        }
        10 => {
            let most = if rng.one_in(2) { used } else { len };
            What::Cut(rng.below(most.max(1)))
        }
        11 => {
            let more = rng.below(200);
            What::Longer(rng.bytes(more))
        }
        12 => What::Cut(0),
        13 => {
            let end = &name[name.len() - 3..];
            let like: Vec<_> = files.keys().filter(|n| n.ends_with(end)).collect();
            let all: Vec<_> = files.keys().filter(|n| *n != "LOCK").collect();
            let from = if rng.one_in(2) { like } else { all };
            What::Copy(rng.pick(&from).clone())
        }
        14 => {
            let end = rng.pick(&[".log", ".tbl", ".log.bak", "~", ".tmp"]);
            let (extra, len) = (format!("{:010}{end}", rng.below(40)), rng.below(5000));
            let what = What::Extra(rng.bytes(len));
            return if files.contains_key(&extra) {
                Harm::new(&extra, What::Nothing)
            } else {
                Harm::new(&extra, what)
            };
        }
        _ => What::Missing,
    };
    Harm::new(name, what)
}

/// All ways for a file: every byte of a small one, otherwise `flips` places, half of them at its
/// beginning and its end, where structure is.
pub fn all(file: &str, bytes: &[u8], flips: usize, rng: &mut Rng) -> Vec<Harm> {
    let (len, used) = (bytes.len(), used(bytes));
    let mut what = vec![What::Missing, What::Cut(0), What::Cut(1), What::Cut(len - 1)];
    what.extend([What::Cut(len / 2), What::Cut(used / 2), What::Cut(used.saturating_sub(1))]);
    what.extend((0..4).map(|_| What::Cut(rng.below(len))));
    if len <= flips {
        what.extend((0..len).map(|at| What::Flip(at, rng.below(8) as u8)));
    } else {
        for n in 0..flips {
            let at = match n % 6 {
                0 => rng.below(96.min(len)),
                1 => len - 1 - rng.below(96.min(len)),
                2 => rng.below(len),
                3 => used.saturating_sub(1 + rng.below(200)),
                4 => (4096 + rng.below(64)).min(len - 1),
                _ => rng.below(used.max(1)),
            };
            what.push(What::Flip(at, rng.below(8) as u8));
        }
    }
    what.into_iter().map(|what| Harm::new(file, what)).collect()
}

/// Things people put into directories.
pub fn foreign() -> Vec<Harm> {
    let files = ["notes.txt", "backup.tbl", "old.log", "CURRENT~", "MANIFEST", "12.tbl.bak"];
    let extra = |file| Harm::new(file, What::Extra(b"not of this store".to_vec()));
    let mut all: Vec<Harm> = files.into_iter().map(extra).collect();
    all.push(Harm::new("attic", What::ExtraDirectory));
    all.push(Harm::new("nothing", What::Nothing));
    all
}
