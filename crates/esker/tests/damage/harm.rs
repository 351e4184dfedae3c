//! Ways to damage a file.

use std::fs;
use std::path::Path;

use crate::common::rng::Rng;

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
    Cut(usize),
    Missing,
    /// A file that was not there.
    Extra,
    ExtraDirectory,
}

impl Harm {
    pub fn none() -> Harm {
        Harm { file: "nothing".to_string(), what: What::Nothing }
    }

    pub fn apply(&self, dir: &Path) {
        let path = dir.join(&self.file);
        match self.what {
            What::Nothing => {}
            What::Flip(at, bit) => {
                let mut bytes = fs::read(&path).unwrap();
                bytes[at] ^= 1 << bit;
                fs::write(&path, bytes).unwrap();
            }
            What::Cut(len) => {
                let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(len as u64).unwrap();
            }
            What::Missing => fs::remove_file(&path).unwrap(),
            What::Extra => fs::write(&path, b"not of this store").unwrap(),
            What::ExtraDirectory => {
                fs::create_dir(&path).unwrap();
                fs::write(path.join("file"), b"not of this store").unwrap();
            }
        }
    }
}

/// All ways for a file: every byte of a small one, otherwise `flips` places, half of them at its
/// beginning and its end, where structure is.
pub fn all(file: &str, bytes: &[u8], flips: usize, rng: &mut Rng) -> Vec<Harm> {
    let len = bytes.len();
    let used = len - bytes.iter().rev().take_while(|b| **b == 0).count();
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
    what.into_iter().map(|what| Harm { file: file.to_string(), what }).collect()
}

/// Things people put into directories.
pub fn foreign() -> Vec<Harm> {
    let files = ["notes.txt", "backup.tbl", "old.log", "CURRENT~", "MANIFEST", "12.tbl.bak"];
    let extra = |file: &str, what| Harm { file: file.to_string(), what };
    let mut all: Vec<Harm> = files.into_iter().map(|f| extra(f, What::Extra)).collect();
    all.push(extra("attic", What::ExtraDirectory));
    all
}
