//! The user's own keys and values. The parent reads the file once and packs it: sorted, each key
//! once; every process that measures maps what was packed.
//!
//! Packed: the number of entries, the ends of all keys, the ends of all values, the entries in the
//! order of the file (all little-endian, 64 bits), the bytes of all keys, the bytes of all values.

use super::KeyBuf;
use anyhow::{Context, Result, bail, ensure};
use memmap2::Mmap;
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// How the user's file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// A line an entry, columns between tabs; the value is all columns but the key's
    Tsv,
    /// A JSON object a line, which is the value; its field --key is the key
    Jsonl,
}

/// Reads `source` and writes it packed to `target`; how many entries there are.
pub fn pack(source: &Path, format: FileFormat, key: Option<&str>, target: &Path) -> Result<u64> {
    let name = source.display();
    let text = std::fs::read(source).with_context(|| format!("cannot read {name}"))?;
    let mut entries = match format {
        FileFormat::Tsv => tsv(&text, key),
        FileFormat::Jsonl => jsonl(&text, key),
    }
    .with_context(|| format!("in {name}"))?;
    // By key, and for equal keys by line: the last of them stays, as in a store.
    entries.sort_by(|a, b| a.key.cmp(&b.key).then(a.line.cmp(&b.line)));
    entries.reverse();
    entries.dedup_by(|next, kept| next.key == kept.key);
    entries.reverse();
    ensure!(!entries.is_empty(), "{name} has no entries");
    write(&entries, target).with_context(|| format!("cannot write {}", target.display()))?;
    Ok(entries.len() as u64)
}

struct Entry<'a> {
    line: usize,
    key: Vec<u8>,
    value: std::borrow::Cow<'a, [u8]>,
}

fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    text.split(|&b| b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
}

/// The key's column is the first, one given by its number from 1, or one named in the first line.
fn tsv<'a>(text: &'a [u8], key: Option<&str>) -> Result<Vec<Entry<'a>>> {
    let mut lines = lines(text).peekable();
    let column = match key.map(|k| (k, k.parse::<usize>())) {
        None => 0,
        Some((_, Ok(0))) => bail!("columns are counted from 1: --key 1 is the first"),
        Some((_, Ok(number))) => number - 1,
        Some((name, Err(_))) => {
            let (_, head) = lines.next().context("the file is empty")?;
            let found = head.split(|&b| b == b'\t').position(|cell| cell == name.as_bytes());
            found.with_context(|| format!("line 1 names no column '{name}' (see --key)"))?
        }
    };
    let entry = |(line, text): (usize, &'a [u8])| {
        let mut cells: Vec<&[u8]> = text.split(|&b| b == b'\t').collect();
        let (number, count) = (line + 1, cells.len());
        ensure!(
            count > column,
            "line {number} has {count} columns; the key is column {}",
            column + 1
        );
        let key = cells.remove(column).to_vec();
        ensure!(!key.is_empty(), "line {number}: the key is empty");
        let value = match column {
            0 => text[(key.len() + 1).min(text.len())..].into(),
            _ => cells.join(&b'\t').into(),
        };
        Ok(Entry { line, key, value })
    };
    lines.map(entry).collect()
}

fn jsonl<'a>(text: &'a [u8], key: Option<&str>) -> Result<Vec<Entry<'a>>> {
    let field = key.context("say which field is the key: --key FIELD")?;
    let entry = |(line, text): (usize, &'a [u8])| {
        let number = line + 1;
        let object: Value =
            serde_json::from_slice(text).with_context(|| format!("line {number} is not JSON"))?;
        let key = match field_of(&object, field) {
            Some(Value::String(s)) => s.clone(),
            Some(Value::Number(n)) => n.to_string(),
            Some(_) => bail!("line {number}: '{field}' is neither text nor a number"),
            None => bail!("line {number} has no field '{field}' (see --key)"),
        };
        ensure!(!key.is_empty(), "line {number}: the key is empty");
        Ok(Entry { line, key: key.into_bytes(), value: text.into() })
    };
    lines(text).map(entry).collect()
}

/// A field by its name, or one within another: `user.id`.
fn field_of<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    object.get(path).or_else(|| path.split('.').try_fold(object, |at, name| at.get(name)))
}

fn write(entries: &[Entry], target: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(target)?);
    let mut number = |n: usize| out.write_all(&(n as u64).to_le_bytes());
    number(entries.len())?;
    for part in [|e: &Entry| e.key.len(), |e: &Entry| e.value.len()] {
        let mut end = 0;
        for entry in entries {
            end += part(entry);
            number(end)?;
        }
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&i| entries[i].line);
    for i in order {
        number(i)?;
    }
    for entry in entries {
        out.write_all(&entry.key)?;
    }
    for entry in entries {
        out.write_all(&entry.value)?;
    }
    Ok(out.flush()?)
}

/// A packed file, mapped.
pub struct FileData {
    map: Mmap,
    entries: usize,
}

impl std::fmt::Debug for FileData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileData({} entries)", self.entries)
    }
}

impl FileData {
    /// Maps what [`pack`] wrote.
    pub fn open(path: &Path) -> Result<Arc<FileData>> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        // SAFETY: the parent wrote this file in a directory of its own, and nobody changes it again.
        let map = unsafe { Mmap::map(&file) }.context("map the packed file")?;
        ensure!(map.len() >= 8, "the packed file is cut short");
        let entries = word(&map, 0) as usize;
        let data = FileData { map, entries };
        let head = data.bytes_at();
        ensure!(
            data.map.len() >= head
                && data.map.len() == head + data.keys_len() + data.end(1, entries) as usize,
            "the packed file is cut short"
        );
        Ok(Arc::new(data))
    }
    /// How many entries.
    pub fn len(&self) -> u64 {
        self.entries as u64
    }
    /// Where the bytes of keys begin.
    fn bytes_at(&self) -> usize {
        8 * (1 + 3 * self.entries)
    }
    /// Where key (`part` 0) or value (1) number `i - 1` ends.
    fn end(&self, part: usize, i: usize) -> u64 {
        if i == 0 { 0 } else { word(&self.map, part * self.entries + i) }
    }
    fn keys_len(&self) -> usize {
        self.end(0, self.entries) as usize
    }
    fn slice(&self, part: usize, i: usize) -> &[u8] {
        let base = self.bytes_at() + if part == 1 { self.keys_len() } else { 0 };
        &self.map[base + self.end(part, i) as usize..base + self.end(part, i + 1) as usize]
    }
    /// Key number `index`, in byte order.
    pub fn key(&self, index: u64) -> &[u8] {
        self.slice(0, index as usize)
    }
    /// The value of key `index` in `generation`: its own at first, then those of the keys after it.
    pub fn value(&self, index: u64, generation: u32) -> &[u8] {
        let at = index + generation.saturating_sub(1) as u64;
        self.slice(1, (at % self.len()) as usize)
    }
    /// The `n`-th entry of the file.
    pub fn in_file_order(&self, n: u64) -> u64 {
        word(&self.map, 1 + 2 * self.entries + n as usize)
    }
    /// A key that is not there, just after key `index` where there is room.
    pub fn missing<'a>(&self, index: u64, buf: &'a mut KeyBuf) -> &'a [u8] {
        let next = |i: u64| (i < self.len()).then(|| self.key(i));
        let key = buf.long(self.key(index));
        key.push(b'.');
        if next(index + 1).is_some_and(|next| next <= key.as_slice()) {
            // With a byte of 0 in its place it comes directly after, unless that is a key too, and
            // so on.
            key.pop();
            key.push(0);
            let mut at = index + 1;
            while next(at) == Some(key.as_slice()) {
                key.push(0);
                at += 1;
            }
        }
        key
    }
}

fn word(map: &[u8], at: usize) -> u64 {
    let bytes = map[at * 8..at * 8 + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &str, format: FileFormat, key: Option<&str>) -> Result<Arc<FileData>> {
        let dir = tempfile::tempdir()?;
        let (source, target) = (dir.path().join("in"), dir.path().join("out"));
        std::fs::write(&source, text)?;
        pack(&source, format, key, &target)?;
        FileData::open(&target)
    }

    #[test]
    fn a_table_is_sorted_and_its_last_line_of_a_key_stays() {
        let data = packed("b\tone\tx\na\ttwo\r\nb\tthree\n\nc\n", FileFormat::Tsv, None).unwrap();
        let all: Vec<_> = (0..data.len()).map(|i| (data.key(i), data.value(i, 1))).collect();
        assert_eq!(all, [(&b"a"[..], &b"two"[..]), (b"b", b"three"), (b"c", b"")]);
        let order: Vec<u64> = (0..3).map(|n| data.in_file_order(n)).collect();
        assert_eq!(order, [0, 1, 2]);
        assert_eq!(data.value(0, 2), b"three");
        let data = packed("v\tk\n1\tz\n2\ty\n", FileFormat::Tsv, Some("k")).unwrap();
        assert_eq!((data.key(0), data.value(0, 1)), (&b"y"[..], &b"2"[..]));
        assert_eq!(data.in_file_order(0), 1);
        let data = packed("1\tz\tq\n", FileFormat::Tsv, Some("2")).unwrap();
        assert_eq!((data.key(0), data.value(0, 1)), (&b"z"[..], &b"1\tq"[..]));
    }

    #[test]
    fn json_lines_are_their_own_values() {
        let text = "{\"id\": 7, \"n\": 1}\n{\"id\": \"a\"}\n";
        let data = packed(text, FileFormat::Jsonl, Some("id")).unwrap();
        assert_eq!((data.key(0), data.value(0, 1)), (&b"7"[..], &b"{\"id\": 7, \"n\": 1}"[..]));
    }

    #[test]
    fn a_field_may_be_within_another() {
        let text = "{\"user\":{\"id\":\"x\"},\"a.b\":1}\n";
        assert_eq!(packed(text, FileFormat::Jsonl, Some("user.id")).unwrap().key(0), b"x");
        assert_eq!(packed(text, FileFormat::Jsonl, Some("a.b")).unwrap().key(0), b"1");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let why = |text, format, key| format!("{:#}", packed(text, format, key).unwrap_err());
        assert!(why("a\tb\n\tc\n", FileFormat::Tsv, None).contains("line 2: the key is empty"));
        assert!(why("a\tb\n", FileFormat::Tsv, Some("3")).contains("line 1 has 2 columns"));
        assert!(why("a\tb\n", FileFormat::Tsv, Some("k")).contains("no column 'k'"));
        assert!(why("{}\n", FileFormat::Jsonl, Some("k")).contains("line 1 has no field 'k'"));
        assert!(why("{}\n", FileFormat::Jsonl, None).contains("--key FIELD"));
        assert!(why("\n", FileFormat::Tsv, None).contains("has no entries"));
    }

    #[test]
    fn missing_keys_are_not_there() {
        let text = "a\t1\na.\t2\na.\0\t2\na\0\t3\na\0\0\t4\nb\t5\nd\t6\n";
        let data = packed(text, FileFormat::Tsv, None).unwrap();
        let keys: Vec<&[u8]> = (0..data.len()).map(|i| data.key(i)).collect();
        let mut buf = KeyBuf::new();
        for (i, key) in keys.iter().enumerate() {
            let missing = data.missing(i as u64, &mut buf);
            assert!(missing > *key && !keys.contains(&missing), "{i} {missing:?}");
        }
        assert_eq!(data.missing(5, &mut buf), b"b.");
    }
}
