//! What is in a directory or file, by the names and first bytes that stores have.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// A store by its maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are names")]
pub enum Kind {
    Esker,
    LevelDb,
    RocksDb,
    Lmdb,
    Sqlite,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Esker => "an Esker store",
            Kind::LevelDb => "a LevelDB database",
            Kind::RocksDb => "a RocksDB database",
            Kind::Lmdb => "an LMDB environment",
            Kind::Sqlite => "an SQLite database",
        })
    }
}

/// What is at `path`; `None` when that cannot be told.
pub fn kind_of(path: &Path) -> Option<Kind> {
    if path.is_file() {
        return kind_of_file(path);
    }
    let names: Vec<String> = fs::read_dir(path)
        .ok()?
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    let any = |is: &dyn Fn(&str) -> bool| names.iter().any(|n| is(n));
    let current = start_of(&path.join("CURRENT"), OFlags::NOFOLLOW);
    let rest = current.strip_prefix(b"MANIFEST-");
    let digits = rest.map_or(0, |r| r.iter().take_while(|b| b.is_ascii_digit()).count());
    // Esker's line goes on behind the name; LevelDB's ends with it, as RocksDB's does, and its numbers are shorter.
    match rest.map(|r| &r[digits..]) {
        Some([b' ', ..]) => return Some(Kind::Esker),
        _ if any(&|n| n == "IDENTITY" || n.starts_with("OPTIONS-")) => return Some(Kind::RocksDb),
        Some(b"\n") if (1..10).contains(&digits) => return Some(Kind::LevelDb),
        _ => {}
    }
    // Without CURRENT, or as damage may leave it.
    let numbered = |n: &str, from: usize, to: usize| {
        let digits = n.strip_prefix("MANIFEST-").or_else(|| n.strip_suffix(".log"));
        digits
            .is_some_and(|d| (from..to).contains(&d.len()) && d.bytes().all(|b| b.is_ascii_digit()))
    };
    if any(&|n| n.ends_with(".tbl") || n.starts_with("MANIFEST-") && numbered(n, 10, 21)) {
        return Some(Kind::Esker);
    }
    if any(&|n| n == "data.mdb") {
        return Some(Kind::Lmdb);
    }
    any(&|n| n.ends_with(".ldb") || n.ends_with(".sst") || numbered(n, 6, 10))
        .then_some(Kind::LevelDb)
}

/// The first bytes of a regular file. What else has the name could hang whoever reads it.
fn start_of(path: &Path, follow: OFlags) -> Vec<u8> {
    let flags = (OFlags::NONBLOCK | follow).bits() as i32;
    let mut bytes = Vec::new();
    if let Ok(file) = File::options().read(true).custom_flags(flags).open(path)
        && file.metadata().is_ok_and(|m| m.is_file())
    {
        let _ = file.take(64).read_to_end(&mut bytes);
    }
    bytes
}

fn kind_of_file(path: &Path) -> Option<Kind> {
    let start = start_of(path, OFlags::empty());
    if start.starts_with(b"SQLite format 3\0") {
        return Some(Kind::Sqlite);
    }
    // The first page's header, then a magic number in the machine's byte order.
    let magic = start.get(16..20)?;
    (u32::from_ne_bytes(magic.try_into().ok()?) == 0xbeef_c0de).then_some(Kind::Lmdb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_by_their_files() {
        let of = |files: &[(&str, &[u8])]| {
            let dir = tempfile::tempdir().unwrap();
            for (name, bytes) in files {
                fs::write(dir.path().join(name), bytes).unwrap();
            }
            kind_of(dir.path())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("CURRENT", b"MANIFEST-000004\n")]), Some(Kind::LevelDb));
        assert_eq!(of(&[("000005.ldb", b"")]), Some(Kind::LevelDb));
        let rocks = [("CURRENT", &b"MANIFEST-000004\n"[..]), ("IDENTITY", b"x")];
        assert_eq!(of(&rocks), Some(Kind::RocksDb));
        for damaged in ["", "x", "MANIFEST-00"] {
            let of_current = |beside| of(&[("CURRENT", damaged.as_bytes()), (beside, b"")]);
            assert_eq!(of_current("000005.ldb"), Some(Kind::LevelDb), "{damaged:?}");
            assert_eq!(of_current("MANIFEST-0000000004"), Some(Kind::Esker), "{damaged:?}");
        }
        let esker = [("CURRENT", &b"MANIFEST-0000000004 1 2\n"[..]), ("MANIFEST-0000000004", b"")];
        assert_eq!(of(&esker), Some(Kind::Esker));
        assert_eq!(of(&[("data.mdb", b"")]), Some(Kind::Lmdb));
        assert_eq!(kind_of(Path::new("/nonexistent")), None);
    }
}
