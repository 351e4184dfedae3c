//! The names of a store's files: `CURRENT`, `DESTROYED`, `LOCK`, `MANIFEST-NNNNNNNNNN`, `NNNNNNNNNN.log`, `NNNNNNNNNN.tbl`.
//!
//! A number is written with ten digits or more and has one name: one with a sign, with more zeros or fewer, or of a
//! number that no store comes to, is a file of somebody else's.

use crate::util::MAX_NUMBER;

/// Names the manifest in force.
pub(crate) const CURRENT: &str = "CURRENT";
/// Its next content, until it is renamed.
pub(crate) const CURRENT_TEMP: &str = "CURRENT.tmp";
/// What `CURRENT` becomes while the store is removed.
pub(crate) const DESTROYED: &str = "DESTROYED";
/// The file whose lock makes a store one process's.
pub(crate) const LOCK: &str = "LOCK";
/// The folder that a repair puts damaged files in.
pub(crate) const LOST: &str = "lost";
/// What the names of manifests begin with.
pub(crate) const MANIFEST_PREFIX: &str = "MANIFEST-";

/// What a file of a store is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Current,
    CurrentTemp,
    Destroyed,
    Lock,
    Manifest,
    Segment,
    Table,
}

/// The name of manifest `number`.
pub(crate) fn manifest(number: u64) -> String {
    format!("{MANIFEST_PREFIX}{number:010}")
}

/// The name of log segment `number`.
pub(crate) fn segment(number: u64) -> String {
    format!("{number:010}.log")
}

/// The name of table `number`.
pub(crate) fn table(number: u64) -> String {
    format!("{number:010}.tbl")
}

/// What file of a store has this name; `None` when none has.
pub(crate) fn parse(name: &str) -> Option<FileKind> {
    match name {
        CURRENT => Some(FileKind::Current),
        CURRENT_TEMP => Some(FileKind::CurrentTemp),
        DESTROYED => Some(FileKind::Destroyed),
        LOCK => Some(FileKind::Lock),
        _ if manifest_number(name).is_some() => Some(FileKind::Manifest),
        _ if segment_number(name).is_some() => Some(FileKind::Segment),
        _ if table_number(name).is_some() => Some(FileKind::Table),
        _ => None,
    }
}

/// The number of the manifest of this name.
pub(crate) fn manifest_number(name: &str) -> Option<u64> {
    number_in(name, name.strip_prefix(MANIFEST_PREFIX)?, manifest)
}

/// The number of the log segment of this name.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    number_in(name, name.strip_suffix(".log")?, segment)
}

/// The number of the table of this name.
pub(crate) fn table_number(name: &str) -> Option<u64> {
    number_in(name, name.strip_suffix(".tbl")?, table)
}

/// The number that these digits of a name are, where the file of that number has this name.
fn number_in(name: &str, digits: &str, named: fn(u64) -> String) -> Option<u64> {
    let number = digits.parse().ok().filter(|n| *n <= MAX_NUMBER)?;
    (named(number) == name).then_some(number)
}

/// The number of the log segment or table of this name: they are counted together.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    segment_number(name).or_else(|| table_number(name))
}

/// Whether a directory that has a file of this name is, or was, a store: any of its files but the lock's, which
/// is also there where an open found nothing.
pub(crate) fn is_of_a_store(name: &str) -> bool {
    !matches!(parse(name), None | Some(FileKind::Lock | FileKind::CurrentTemp))
}

/// What a file of this name is called under [`LOST`] where others of the name were put there before.
pub(crate) fn put_aside_again(name: &str, times: u32) -> String {
    format!("{name}.{times}")
}

/// Whether a file of this name under [`LOST`] is one that a repair put there.
pub(crate) fn is_put_aside(name: &str) -> bool {
    let again = |(first, times): (&str, &str)| {
        let same = |n| put_aside_again(first, n) == name;
        file_number(first).or(manifest_number(first)).is_some() && times.parse().is_ok_and(same)
    };
    parse(name).is_some() || name.rsplit_once('.').is_some_and(again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_name() {
        assert_eq!(segment(42), "0000000042.log");
        assert_eq!(table(12_345_678_901), "12345678901.tbl");
        for number in [0, 42, 12_345_678_901, MAX_NUMBER] {
            assert_eq!(parse(&segment(number)), Some(FileKind::Segment));
            assert_eq!(parse(&table(number)), Some(FileKind::Table));
            assert_eq!(parse(&manifest(number)), Some(FileKind::Manifest));
            assert_eq!(segment_number(&segment(number)), Some(number));
            assert_eq!(table_number(&table(number)), Some(number));
            assert_eq!(manifest_number(&manifest(number)), Some(number));
        }
        for name in [
            "42.log",
            "+000000042.log",
            "0000000042.LOG",
            "0000000042",
            "00000000042.log",
            "0000000042.log.log",
            "MANIFEST-42",
            "MANIFEST-+000000042",
            "MANIFEST-",
            "CURRENT.log",
            "current",
            "",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
        for named in [manifest, segment, table] {
            assert_eq!(parse(&named(u64::MAX)), None);
        }
    }

    #[test]
    fn what_was_put_aside_is_known_by_its_name() {
        let table = table(42);
        assert!(is_put_aside(&table) && is_put_aside(&put_aside_again(&table, 2)));
        let others = ["notes.txt", "notes.2", "0000000042.tbl.old", "0000000042.tbl.+2", "LOCK.2"];
        assert!(!others.into_iter().any(is_put_aside));
    }

    #[test]
    fn a_lock_alone_is_no_store() {
        assert!(
            [CURRENT, "MANIFEST-0000000001", "0000000001.tbl"].iter().all(|n| is_of_a_store(n))
        );
        assert!(![LOCK, CURRENT_TEMP, LOST, "notes.txt"].iter().any(|n| is_of_a_store(n)));
    }
}
