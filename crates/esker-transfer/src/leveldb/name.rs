//! Names of LevelDB's files.

/// The file that names the manifest.
pub(super) const CURRENT: &str = "CURRENT";
/// The file whose lock makes a database one process's.
pub(super) const LOCK: &str = "LOCK";

/// What a file that holds data is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DataFile {
    Current,
    Manifest(u64),
    Log(u64),
    Table(u64),
}

impl DataFile {
    pub fn of(name: &str) -> Option<DataFile> {
        if name == CURRENT {
            return Some(DataFile::Current);
        }
        let number = |digits: &str| {
            let all = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            if all { digits.parse().ok() } else { None }
        };
        if let Some(digits) = name.strip_prefix("MANIFEST-") {
            return number(digits).map(DataFile::Manifest);
        }
        match name.split_once('.')? {
            (digits, "log") => number(digits).map(DataFile::Log),
            // The second since version 1.13, the third before it.
            (digits, "ldb" | "sst") => number(digits).map(DataFile::Table),
            _ => None,
        }
    }
}

pub(super) fn manifest(number: u64) -> String {
    format!("MANIFEST-{number:06}")
}

pub(super) fn log(number: u64) -> String {
    format!("{number:06}.log")
}

/// The names that a table may have.
pub(super) fn tables(number: u64) -> [String; 2] {
    [format!("{number:06}.ldb"), format!("{number:06}.sst")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(DataFile::of(CURRENT), Some(DataFile::Current));
        assert_eq!(DataFile::of(&manifest(7)), Some(DataFile::Manifest(7)));
        assert_eq!(DataFile::of(&log(1_234_567)), Some(DataFile::Log(1_234_567)));
        for name in tables(9) {
            assert_eq!(DataFile::of(&name), Some(DataFile::Table(9)));
        }
        for other in
            ["LOCK", "LOG", "LOG.old", "MANIFEST-", "MANIFEST-x", "+5.log", ".ldb", "5.ldb.x"]
        {
            assert_eq!(DataFile::of(other), None, "{other}");
        }
    }
}
