//! Length-prefixed binary: the smallest and fastest form, and the one that notices its own end
//! missing.
//!
//! ```text
//! file   = dump+                       dumps may be put one after the other with cat
//! dump   = magic entry* end
//! magic  = 45 53 4b 45 52 4b 56 01     "ESKERKV", then the version of the format, 1
//! entry  = key_len: u32  value_len: u32  key: key_len bytes  value: value_len bytes
//! end    = ff ff ff ff  ff ff ff ff  count: u64     count of the entries since the magic
//! ```
//!
//! All numbers are little-endian. The end mark tells a whole dump from one whose writer was
//! stopped, by a full disk for instance, between two entries; no entry begins like it, since no
//! key is 4 GiB long. There are no checksums: a dump that has to survive a journey can be piped
//! through a compressor that has them, such as `zstd`.
//!
//! The dump of one entry, key `k` and value `vw`:
//!
//! ```text
//! 45 53 4b 45 52 4b 56 01  01 00 00 00  02 00 00 00  6b  76 77
//! ff ff ff ff  ff ff ff ff  01 00 00 00 00 00 00 00
//! ```

use std::io::{self, BufReader, Read, Write};

use super::all::{CODECS, Head, LONGEST_NAME, ReadKeyspaces, WriteKeyspaces};
use super::{Bad, Limits, ReadEntries, ReadError, WriteEntries, WriteError};

const MAGIC: [u8; 8] = *b"ESKERKV\x01";
/// Begins a dump of all keyspaces.
const ALL_MAGIC: [u8; 8] = *b"ESKERDB\x01";
/// Stands where an entry's two lengths would.
const END: [u8; 8] = [0xff; 8];
const BUFFER_BYTES: usize = 256 << 10;

/// Reads length-prefixed entries.
pub struct Reader<R: Read> {
    source: BufReader<R>,
    limits: Limits,
    /// Records seen so far, in all dumps of the input.
    record: u64,
    /// Entries since the last magic; `None` when a magic comes next.
    in_dump: Option<u64>,
    dumps: u64,
    /// Of a dump of all keyspaces.
    all: Option<All>,
}

/// How far a dump of all keyspaces is read.
#[derive(Clone, Copy)]
enum All {
    NotBegun,
    /// So many keyspaces are to come.
    Left(u32),
}

impl<R: Read> Reader<R> {
    /// Reads from `source`.
    pub fn new(source: R, limits: Limits) -> Self {
        let source = BufReader::with_capacity(BUFFER_BYTES, source);
        Reader { source, limits, record: 0, in_dump: None, dumps: 0, all: None }
    }

    /// Reads a dump of all keyspaces.
    #[must_use]
    pub fn of_all(mut self) -> Self {
        self.all = Some(All::NotBegun);
        self
    }

    fn bad(&self, fatal: bool, what: impl Into<String>) -> ReadError {
        ReadError::Bad(Bad { unit: "record", number: self.record, what: what.into(), fatal })
    }

    fn truncated(&self, inside: &str) -> ReadError {
        self.bad(true, format!("the input is truncated: it ends inside {inside}"))
    }

    /// Fills `bytes` as far as the input goes and returns how many there were.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.source.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }

    /// Reads the magic; false at the end of the input.
    fn begin_dump(&mut self) -> Result<bool, ReadError> {
        let mut magic = [0; 8];
        let n = self.fill(&mut magic)?;
        if n == 0 && self.dumps > 0 {
            return Ok(false);
        }
        self.record += 1; // the record that would come first, so that an error can name it
        if magic[..n] != MAGIC[..n] {
            let what = if magic[..7] == MAGIC[..7] {
                newer(magic[7])
            } else if magic == ALL_MAGIC {
                "this is a dump of all keyspaces; load it with --all".into()
            } else {
                "this is not an Esker binary dump (it does not begin with ESKERKV)".into()
            };
            return Err(self.bad(true, what));
        }
        if n < 8 {
            return Err(self.truncated("the first 8 bytes, which name the format"));
        }
        self.record -= 1;
        self.dumps += 1;
        self.in_dump = Some(0);
        Ok(true)
    }

    fn end_dump(&mut self, entries: u64) -> Result<(), ReadError> {
        let mut count = [0; 8];
        if self.fill(&mut count)? < 8 {
            return Err(self.truncated("the end mark"));
        }
        let count = u64::from_le_bytes(count);
        if count != entries {
            return Err(self.bad(
                true,
                format!("the end mark counts {count} entries, the dump has {entries}"),
            ));
        }
        self.record -= 1; // the end mark is no record
        self.in_dump = None;
        Ok(())
    }

    /// Reads what a dump of all keyspaces begins with, and returns how many there are.
    fn begin_all(&mut self) -> Result<u32, ReadError> {
        let mut magic = [0; 8];
        let n = self.fill(&mut magic)?;
        self.record = 1;
        if magic[..n] != ALL_MAGIC[..n] {
            let what = if magic[..7] == ALL_MAGIC[..7] {
                newer(magic[7])
            } else if magic == MAGIC {
                "this is a dump of one keyspace; leave out --all".into()
            } else {
                "this is no Esker dump of all keyspaces (it does not begin with ESKERDB)".into()
            };
            return Err(self.bad(true, what));
        }
        let mut count = [0; 4];
        if n < 8 || self.fill(&mut count)? < 4 {
            return Err(self.truncated("the first 12 bytes, which name the format"));
        }
        self.record = 0;
        Ok(u32::from_le_bytes(count))
    }

    fn name(&mut self) -> Result<String, ReadError> {
        let mut len = [0; 4];
        if self.fill(&mut len)? < 4 {
            return Err(self.truncated("the description of a keyspace"));
        }
        let len = u32::from_le_bytes(len);
        if len > LONGEST_NAME {
            return Err(self.bad(true, format!("a name of {len} bytes")));
        }
        let mut name = Vec::new();
        self.take(len, &mut name, "the name of a keyspace or order")?;
        String::from_utf8(name).map_err(|_| self.bad(true, "a name is not UTF-8"))
    }

    fn head(&mut self) -> Result<Head, ReadError> {
        let (name, order) = (self.name()?, self.name()?);
        let mut rest = [0; 9];
        if self.fill(&mut rest)? < 9 {
            return Err(self.truncated("the description of a keyspace"));
        }
        let [codec, threshold @ ..] = rest;
        let Some(compression) = CODECS.get(usize::from(codec)) else {
            return Err(self.bad(true, format!("{codec} is the number of no compression")));
        };
        let blob_threshold = u64::from_le_bytes(threshold);
        Ok(Head { name, order, compression: (*compression).into(), blob_threshold })
    }

    /// Appends `len` bytes to `to`, growing it as bytes come in: a wrong length must not make this
    /// allocate what the input does not have.
    fn take(&mut self, len: u32, to: &mut Vec<u8>, inside: &str) -> Result<(), ReadError> {
        let n = (&mut self.source).take(u64::from(len)).read_to_end(to)?;
        if n < len as usize { Err(self.truncated(inside)) } else { Ok(()) }
    }

    /// Passes over an entry that is too large, so that `--skip-bad` finds the next one.
    fn pass_over(&mut self, len: u64) -> Result<(), ReadError> {
        let n = io::copy(&mut (&mut self.source).take(len), &mut io::sink())?;
        if n < len { Err(self.truncated("a key or value")) } else { Ok(()) }
    }
}

impl<R: Read> ReadEntries for Reader<R> {
    fn read(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, ReadError> {
        key.clear();
        value.clear();
        loop {
            let Some(entries) = self.in_dump else {
                // The dump of a keyspace begins with its head, not by itself.
                if self.all.is_none() && self.begin_dump()? {
                    continue;
                }
                return Ok(false);
            };
            self.record += 1;
            let mut lengths = [0; 8];
            match self.fill(&mut lengths)? {
                0 => return Err(self.truncated("the dump, before its end mark")),
                8 => {}
                _ => return Err(self.truncated("the lengths of a key and value")),
            }
            if lengths == END {
                self.end_dump(entries)?;
                continue;
            }
            let key_len = u32::from_le_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]);
            let value_len = u32::from_le_bytes([lengths[4], lengths[5], lengths[6], lengths[7]]);
            self.in_dump = Some(entries + 1);
            if let Err(what) = self.limits.check(u64::from(key_len), u64::from(value_len)) {
                self.pass_over(u64::from(key_len) + u64::from(value_len))?;
                return Err(self.bad(false, what));
            }
            self.take(key_len, key, "a key")?;
            self.take(value_len, value, "a value")?;
            return Ok(true);
        }
    }
}

fn newer(version: u8) -> String {
    let known = MAGIC[7];
    format!(
        "the dump has version {version}, this build reads version {known}; load it with a newer \
         esker"
    )
}

impl<R: Read> ReadKeyspaces for Reader<R> {
    fn next_keyspace(&mut self) -> Result<Option<Head>, ReadError> {
        let left = match self.all {
            Some(All::Left(left)) => left,
            _ => self.begin_all()?,
        };
        self.record += 1; // so that an error names the record that would come next
        if left == 0 {
            if self.fill(&mut [0])? > 0 {
                return Err(self.bad(true, "there is more behind the end of the dump"));
            }
            return Ok(None);
        }
        self.all = Some(All::Left(left - 1));
        let head = self.head()?;
        self.record -= 1;
        if !self.begin_dump()? {
            self.record += 1;
            return Err(self.truncated("the dump, before the entries of a keyspace"));
        }
        Ok(Some(head))
    }
}

/// Writes length-prefixed entries.
pub struct Writer<W: Write> {
    out: W,
    entries: Option<u64>,
    /// Whether this is a dump of all keyspaces.
    all: bool,
}

impl<W: Write> Writer<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Writer { out, entries: None, all: false }
    }

    fn end(&mut self) -> io::Result<()> {
        let entries = self.opened()?;
        self.out.write_all(&END)?;
        self.out.write_all(&entries.to_le_bytes())
    }

    /// Writes the magic before anything else and returns the count of entries so far.
    fn opened(&mut self) -> io::Result<u64> {
        if let Some(entries) = self.entries {
            return Ok(entries);
        }
        self.out.write_all(&MAGIC)?;
        Ok(*self.entries.insert(0))
    }
}

impl<W: Write> WriteEntries for Writer<W> {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        let entries = self.opened()?;
        let (Ok(key_len), Ok(value_len)) = (u32::try_from(key.len()), u32::try_from(value.len()))
        else {
            return Err(WriteError::Unfit("a key or value of 4 GiB or more".into()));
        };
        self.out.write_all(&key_len.to_le_bytes())?;
        self.out.write_all(&value_len.to_le_bytes())?;
        self.out.write_all(key)?;
        self.out.write_all(value)?;
        self.entries = Some(entries + 1);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        // Of a dump of all keyspaces the last was ended.
        if !self.all {
            self.end()?;
        }
        self.out.flush()
    }
}

impl<W: Write> WriteKeyspaces for Writer<W> {
    fn begin(&mut self, keyspaces: u32) -> io::Result<()> {
        self.all = true;
        self.out.write_all(&ALL_MAGIC)?;
        self.out.write_all(&keyspaces.to_le_bytes())
    }

    fn begin_keyspace(&mut self, head: &Head) -> Result<(), WriteError> {
        let Some(codec) = CODECS.iter().position(|c| *c == head.compression) else {
            return Err(WriteError::Unfit(format!(
                "compression {} has no number",
                head.compression
            )));
        };
        for name in [&head.name, &head.order] {
            let len = u32::try_from(name.len()).ok().filter(|len| *len <= LONGEST_NAME);
            let Some(len) = len else {
                return Err(WriteError::Unfit(format!("a name of {} bytes", name.len())));
            };
            self.out.write_all(&len.to_le_bytes())?;
            self.out.write_all(name.as_bytes())?;
        }
        self.out.write_all(&[codec as u8])?;
        Ok(self.out.write_all(&head.blob_threshold.to_le_bytes())?)
    }

    fn end_keyspace(&mut self) -> io::Result<()> {
        self.end()?;
        self.entries = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Dribble, Entries, LIMITS, read_all};
    use super::*;
    use proptest::prelude::*;

    fn dump(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        for (k, v) in entries {
            writer.write(k, v).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    fn entry(k: &str, v: &str) -> (Vec<u8>, Vec<u8>) {
        (k.into(), v.into())
    }

    #[test]
    fn the_documented_example() {
        let bytes = dump(&[entry("k", "vw")]);
        let hex = "45534b45524b5601010000000200000\
                   06b7677ffffffffffffffff0100000000000000";
        assert_eq!(data_encoding::HEXLOWER.encode(&bytes), hex);
        assert_eq!(dump(&[]).len(), 24);
    }

    #[test]
    fn dumps_one_after_the_other() {
        let bytes = [dump(&[entry("a", "1")]), dump(&[]), dump(&[entry("b", "2")])].concat();
        let (good, bad) = read_all(Reader::new(bytes.as_slice(), LIMITS));
        assert_eq!((good, bad), (vec![entry("a", "1"), entry("b", "2")], vec![]));
    }

    #[test]
    fn every_truncation_is_noticed() {
        let bytes = dump(&[entry("key", "value"), entry("", "")]);
        for len in 0..bytes.len() {
            let (_, bad) = read_all(Reader::new(&bytes[..len], LIMITS));
            assert_eq!(bad.len(), 1, "cut at {len}");
            assert!(bad[0].fatal && bad[0].what.contains("truncated"), "cut at {len}: {}", bad[0]);
        }
        let (_, bad) = read_all(Reader::new(&bytes[..20], LIMITS));
        assert_eq!(bad[0].number, 1);
        let (_, bad) = read_all(Reader::new(&bytes[..24 + 4], LIMITS));
        assert_eq!(bad[0].number, 2);
    }

    fn head(name: &str) -> Head {
        Head {
            name: name.into(),
            order: "esker.bytewise".into(),
            compression: "zstd".into(),
            blob_threshold: 4096,
        }
    }

    #[test]
    fn all_keyspaces_and_every_truncation_of_them() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        WriteKeyspaces::begin(&mut writer, 2).unwrap();
        for (name, key) in [("default", "a"), ("b\n", "c")] {
            writer.begin_keyspace(&head(name)).unwrap();
            writer.write(key.as_bytes(), b"value").unwrap();
            writer.end_keyspace().unwrap();
        }
        writer.finish().unwrap();
        let read = |bytes: &[u8]| -> Result<Vec<(String, usize)>, ReadError> {
            let mut reader = Reader::new(Dribble(bytes), LIMITS).of_all();
            let (mut found, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
            while let Some(head) = reader.next_keyspace()? {
                let mut entries = 0;
                while reader.read(&mut key, &mut value)? {
                    entries += 1;
                }
                found.push((head.name, entries));
            }
            Ok(found)
        };
        let found = read(&bytes).unwrap();
        assert_eq!(found, [("default".into(), 1), ("b\n".into(), 1)]);
        for len in 0..bytes.len() {
            match read(&bytes[..len]) {
                Err(ReadError::Bad(bad)) => {
                    assert!(bad.fatal && bad.what.contains("truncated"), "cut at {len}: {bad}");
                }
                other => panic!("cut at {len}: {other:?}"),
            }
        }
        bytes.push(0);
        assert!(
            matches!(read(&bytes), Err(ReadError::Bad(bad)) if bad.what.contains("behind the end"))
        );
        assert!(
            matches!(read(&dump(&[])), Err(ReadError::Bad(bad)) if bad.what.contains("leave out --all"))
        );
        let (_, bad) = read_all(Reader::new(&bytes[..], LIMITS));
        assert!(bad[0].what.contains("with --all"), "{}", bad[0]);
    }

    #[test]
    fn other_files_and_wrong_counts() {
        let (_, bad) = read_all(Reader::new(&b"key\tvalue\n"[..], LIMITS));
        assert!(bad[0].what.contains("not an Esker binary dump"));
        let (_, bad) = read_all(Reader::new(&b"ESKERKV\x02"[..], LIMITS));
        assert!(bad[0].what.contains("version 2"));
        let mut bytes = dump(&[entry("a", "1")]);
        let at = bytes.len() - 8;
        bytes[at] = 9;
        let (good, bad) = read_all(Reader::new(bytes.as_slice(), LIMITS));
        assert_eq!(good.len(), 1);
        assert!(bad[0].what.contains("counts 9 entries"), "{}", bad[0]);
    }

    #[test]
    fn a_key_over_the_limit_can_be_skipped() {
        let bytes =
            dump(&[entry("a", "1"), entry(&"k".repeat(LIMITS.key + 1), "v"), entry("b", "2")]);
        let (good, bad) = read_all(Reader::new(Dribble(&bytes), LIMITS));
        assert_eq!(good, [entry("a", "1"), entry("b", "2")]);
        assert_eq!((bad.len(), bad[0].number, bad[0].fatal), (1, 2, false));
    }

    #[test]
    fn a_huge_length_allocates_nothing() {
        let limits = Limits { key: 1 << 16, value: 1 << 30 };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0x3f, b'k', b'v']);
        let mut reader = Reader::new(bytes.as_slice(), limits);
        let mut value = Vec::new();
        assert!(reader.read(&mut Vec::new(), &mut value).is_err());
        assert!(value.capacity() < 1 << 20);
    }

    proptest! {
        #[test]
        fn round_trip(entries: Entries) {
            let bytes = dump(&entries);
            let (good, bad) = read_all(Reader::new(Dribble(&bytes), LIMITS));
            prop_assert_eq!(dump(&good), bytes);
            prop_assert_eq!((good, bad), (entries, vec![]));
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>, with_magic: bool) {
            let mut input = if with_magic { MAGIC.to_vec() } else { vec![] };
            input.extend(bytes);
            read_all(Reader::new(input.as_slice(), LIMITS));
        }
    }
}
