//! What is done to Esker's files: damage at random, all there is for one file, and what people put into
//! directories; and what may be said of it.

use esker_trust::Rng;
use esker_trust::harm::Kind;
pub use esker_trust::harm::{Files, Harm, What, used};

pub fn is_of_log(harm: &Harm) -> bool {
    harm.file.ends_with(".log") && !matches!(harm.what, What::Extra(_) | What::Nothing)
}

/// Whether nothing is changed that is the store's own, or has a name as its files have.
pub fn is_foreign(harm: &Harm) -> bool {
    let own = harm.file.ends_with(".log") || harm.file.ends_with(".tbl");
    let own = own && harm.file.starts_with("00000");
    matches!(harm.what, What::Nothing | What::ExtraDirectory)
        || matches!(harm.what, What::Extra(_)) && !own
}

/// Whether a segment of the log is gone, or what is in it.
pub fn takes_segment(harm: &Harm) -> bool {
    is_of_log(harm) && matches!(harm.what, What::Missing | What::Cut(_) | What::Copy(_))
}

/// Damage drawn at random to one of a store's files.
pub fn random(files: &Files, rng: &mut Rng) -> Harm {
    let mut names: Vec<&String> = files.keys().filter(|n| *n != "LOCK").collect();
    if rng.one_in(4) {
        // The small files have few bytes but much to say.
        names.retain(|n| n.starts_with("MANIFEST") || *n == "CURRENT");
    }
    let name = *rng.pick(&names);
    let (len, used) = (files[name].len(), used(&files[name]));
    let what = match rng.below(16) {
        0..=5 => return Kind::Flip.draw(name, files, rng),
        6 | 7 => return Kind::Zero.draw(name, files, rng),
        8 | 9 if used > 0 => {
            let (at, most) = (rng.index(used), if rng.one_in(2) { 64 } else { 4096 });
            let n = (len - at).min(1 + rng.index(most));
            What::Garbage(at, rng.bytes(n))
        }
        10 => {
            let most = if rng.one_in(2) { used } else { len };
            What::Cut(rng.index(most.max(1)))
        }
        11 => {
            let more = rng.index(200);
            What::Longer(rng.bytes(more))
        }
        12 => What::Cut(0),
        13 => {
            let end = if rng.one_in(2) { &name[name.len() - 3..] } else { "" };
            let like = |n: &&String| n.ends_with(end) && *n != "LOCK";
            What::Copy(rng.pick(&files.keys().filter(like).collect::<Vec<_>>()).to_string())
        }
        14 => return extra(files, rng),
        _ => What::Missing,
    };
    Harm::new(name, what)
}

/// A file with a name as the store's own have, or nearly.
fn extra(files: &Files, rng: &mut Rng) -> Harm {
    let end = rng.pick(&[".log", ".tbl", ".log.bak", "~", ".tmp"]);
    let (name, len) = (format!("{:010}{end}", rng.below(40)), rng.index(5000));
    let what = What::Extra(rng.bytes(len));
    Harm::new(&name, if files.contains_key(&name) { What::Nothing } else { what })
}

/// All ways for a file: every byte of a small one, otherwise `flips` places, half of them at its
/// beginning and its end, where structure is.
pub fn all(file: &str, bytes: &[u8], flips: usize, rng: &mut Rng) -> Vec<Harm> {
    let (len, used) = (bytes.len(), used(bytes));
    let mut what = vec![What::Missing, What::Cut(0), What::Cut(1), What::Cut(len - 1)];
    what.extend([What::Cut(len / 2), What::Cut(used / 2), What::Cut(used.saturating_sub(1))]);
    what.extend((0..4).map(|_| What::Cut(rng.index(len))));
    if len <= flips {
        what.extend((0..len).map(|at| What::Flip(at, rng.below(8) as u8)));
    } else {
        for n in 0..flips {
            let at = match n % 6 {
                0 => rng.index(96.min(len)),
                1 => len - 1 - rng.index(96.min(len)),
                2 => rng.index(len),
                3 => used.saturating_sub(1 + rng.index(200)),
                4 => (4096 + rng.index(64)).min(len - 1),
                _ => rng.index(used.max(1)),
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
