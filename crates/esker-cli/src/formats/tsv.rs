//! One entry a line: key, tab, value, newline. Safe for any bytes.
//!
//! In both fields a tab, newline, carriage return and backslash are written `\t`, `\n`, `\r` and
//! `\\`; every other byte stands for itself, valid UTF-8 or not. With hexadecimal or base64 the
//! fields are that instead. The newline of the last line may be missing, and a bare carriage
//! return before a newline belongs to the line's end (a file that passed through Windows), not to
//! the value: one that belongs to the value is written `\r`.
//!
//! A second tab is an error, not the start of a value's tail: it comes from a value that was never
//! escaped, where the backslashes are wrong too, or from a table with more columns, of which two can
//! be chosen.

use std::io::{self, Read, Write};

use super::all::{CODECS, Head, ReadKeyspaces, WriteKeyspaces};
use super::columns::{Columns, MOST_COLUMNS, Picked, TOO_MANY};
use super::input::{Line, Lines};
use super::{Bad, Limits, ReadEntries, ReadError, WriteEntries, WriteError};
use crate::encoding::Encoding;

/// Reads tab-separated entries.
pub struct Reader<R: Read> {
    lines: Lines<R>,
    line: Vec<u8>,
    encoding: Encoding,
    limits: Limits,
    /// Key and value are chosen from the columns of a table; which, once a row was seen.
    columns: Option<(Columns, Option<Picked>)>,
    /// What was found of the first line, which is in `line`, until it is read as an entry.
    first: Option<Line>,
    /// In a dump of all keyspaces: whether the line before the entries of the next is in `line`.
    all: Option<bool>,
}

/// The first field of the line that stands before the entries of a keyspace.
const KEYSPACE: &[u8] = b"#keyspace";

impl<R: Read> Reader<R> {
    /// Reads from `source`, whose fields are in `encoding`.
    pub fn new(source: R, encoding: Encoding, limits: Limits) -> Self {
        // `\xNN` is four bytes for one; two more for the tab and a carriage return.
        let max_line = 4 * (limits.key + limits.value) + 2;
        let lines = Lines::new(source, max_line);
        let (line, columns, first, all) = (Vec::new(), None, None, None);
        Reader { lines, line, encoding, limits, columns, first, all }
    }

    /// Takes key and value from columns of a table.
    #[must_use]
    pub fn with_columns(mut self, columns: Columns) -> Self {
        self.columns = Some((columns, None));
        self
    }

    /// Reads a dump of all keyspaces.
    #[must_use]
    pub fn of_all(mut self) -> Self {
        self.all = Some(false);
        self
    }

    fn bad(&self, what: String, fatal: bool) -> ReadError {
        ReadError::Bad(Bad { unit: "line", number: self.lines.number, what, fatal })
    }

    /// The line without its end.
    fn text(&self) -> &[u8] {
        self.line.strip_suffix(b"\r").unwrap_or(&self.line)
    }

    /// How many fields the line has, if it can be one that names a keyspace.
    fn fields_of_head(&self) -> Option<usize> {
        let mut fields = self.text().split(|&b| b == b'\t');
        let is_head = self.all.is_some() && fields.next() == Some(KEYSPACE);
        is_head.then(|| 1 + fields.count())
    }

    fn is_keyspace(&self) -> bool {
        self.fields_of_head() == Some(5)
    }

    /// The keyspace that the line in `line` names.
    fn head(&self) -> Result<Head, String> {
        let mut fields = self.text().split(|&b| b == b'\t').skip(1);
        let mut next = || {
            let mut bytes = Vec::new();
            Encoding::Plain.decode_field(fields.next().unwrap_or_default(), &mut bytes)?;
            String::from_utf8(bytes).map_err(|_| "a name is not UTF-8".to_owned())
        };
        let (name, order, compression, threshold) = (next()?, next()?, next()?, next()?);
        if !CODECS.contains(&compression.as_str()) {
            return Err(format!("{compression:?} is no compression"));
        }
        let blob_threshold =
            threshold.parse().map_err(|_| format!("{threshold:?} is no number of bytes"))?;
        Ok(Head { name, order, compression, blob_threshold })
    }

    /// Finds the columns in the line that was read, the first of the input.
    fn pick(&mut self) -> Result<(), ReadError> {
        if memchr::memchr_iter(b'\t', self.text()).count() >= MOST_COLUMNS {
            return Err(self.bad(TOO_MANY.into(), true));
        }
        let mut fields = Vec::new();
        for text in self.text().split(|&b| b == b'\t') {
            let mut field = Vec::new();
            // The names of columns are text, whatever the fields below them are.
            if Encoding::Plain.decode_field(text, &mut field).is_err() {
                field = text.to_vec();
            }
            fields.push(field);
        }
        let Some((columns, picked)) = &mut self.columns else { return Ok(()) };
        match columns.pick(&fields) {
            Ok(found) => {
                *picked = Some(found);
                Ok(())
            }
            Err(what) => Err(self.bad(what, true)),
        }
    }

    /// The texts of key and value in the line.
    fn fields(&self) -> Result<(&[u8], &[u8]), String> {
        let line = self.text();
        if let Some((_, Some(picked))) = &self.columns {
            let fields = || line.split(|&b| b == b'\t');
            picked.check(fields().count())?;
            let of = |column| fields().nth(column).unwrap_or_default();
            return Ok((of(picked.key), of(picked.value)));
        }
        let Some(tab) = memchr::memchr(b'\t', line) else {
            return Err(if line.is_empty() {
                "the line is empty; a line is a key, a tab and a value".into()
            } else {
                "no tab between key and value".into()
            });
        };
        let (key_text, value_text) = (&line[..tab], &line[tab + 1..]);
        if memchr::memchr(b'\t', value_text).is_some() {
            return Err("a second tab; a tab inside a key or value is written \\t, and --key and \
                        --value choose from more columns"
                .into());
        }
        Ok((key_text, value_text))
    }

    fn parse(&self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<(), String> {
        let (key_text, value_text) = self.fields()?;
        self.encoding.decode_field(key_text, key).map_err(|e| format!("key: {e}"))?;
        self.encoding.decode_field(value_text, value).map_err(|e| format!("value: {e}"))?;
        self.limits.check(key.len() as u64, value.len() as u64)
    }

    /// Reads the names of the columns, where there are some and they were not read yet.
    fn header(&mut self) -> Result<(), ReadError> {
        let Some((Columns { header: true, .. }, None)) = &self.columns else { return Ok(()) };
        match self.lines.next_line(&mut self.line)? {
            Line::End => Ok(()),
            Line::TooLong => {
                Err(self.bad("the header is longer than any key and value".into(), true))
            }
            Line::Whole => {
                if self.line.starts_with("\u{feff}".as_bytes()) {
                    self.line.drain(..3);
                }
                self.pick()
            }
        }
    }

    /// Takes what was read of a line for an entry; false at the end.
    fn entry(
        &mut self,
        line: Line,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        let parsed = match line {
            Line::End => return Ok(false),
            Line::TooLong => Err("the line is longer than any key and value can be".into()),
            Line::Whole if self.is_keyspace() => {
                self.all = Some(true);
                return Ok(false);
            }
            // Two fields are an entry. Behind any others the entries of another keyspace would come, which
            // must not go into this one.
            Line::Whole if self.fields_of_head().is_some_and(|fields| fields != 2) => {
                let what = "the line that names a keyspace has five fields, and this has not";
                return Err(self.bad(what.into(), true));
            }
            Line::Whole => {
                if matches!(self.columns, Some((_, None))) {
                    self.pick()?;
                }
                self.parse(key, value)
            }
        };
        parsed.map(|()| true).map_err(|what| self.bad(what, false))
    }
}

impl<R: Read> ReadEntries for Reader<R> {
    fn start(&mut self) -> Result<(), ReadError> {
        self.header()
    }

    fn look_at_first(&mut self) -> Result<(), ReadError> {
        let first = self.lines.next_line(&mut self.line)?;
        self.first = Some(first);
        self.entry(first, &mut Vec::new(), &mut Vec::new()).map(drop)
    }

    fn read(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, ReadError> {
        key.clear();
        value.clear();
        self.header()?;
        let line = match self.first.take() {
            Some(first) => first,
            None => self.lines.next_line(&mut self.line)?,
        };
        self.entry(line, key, value)
    }
}

impl<R: Read> ReadKeyspaces for Reader<R> {
    fn next_keyspace(&mut self) -> Result<Option<Head>, ReadError> {
        if self.all != Some(true) {
            match self.lines.next_line(&mut self.line)? {
                Line::End => return Ok(None),
                Line::Whole if self.is_keyspace() => {}
                _ => {
                    let what = "no line that names a keyspace; this is no dump of all keyspaces, \
                                leave out --all"
                        .into();
                    return Err(self.bad(what, true));
                }
            }
        }
        self.all = Some(false);
        self.head().map(Some).map_err(|what| self.bad(what, true))
    }
}

/// Writes tab-separated entries.
pub struct Writer<W: Write> {
    out: W,
    encoding: Encoding,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes to `out` (which should be buffered) with fields in `encoding`.
    pub fn new(out: W, encoding: Encoding) -> Self {
        Writer { out, encoding, line: Vec::new() }
    }
}

impl<W: Write> WriteEntries for Writer<W> {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        self.line.clear();
        self.encoding.encode_field(key, &mut self.line);
        self.line.push(b'\t');
        self.encoding.encode_field(value, &mut self.line);
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> WriteKeyspaces for Writer<W> {
    fn begin(&mut self, _keyspaces: u32) -> io::Result<()> {
        Ok(())
    }

    fn begin_keyspace(&mut self, head: &Head) -> Result<(), WriteError> {
        self.line.clear();
        self.line.extend_from_slice(KEYSPACE);
        for text in [&head.name, &head.order, &head.compression] {
            self.line.push(b'\t');
            Encoding::Plain.encode_field(text.as_bytes(), &mut self.line);
        }
        self.line.extend_from_slice(format!("\t{}\n", head.blob_threshold).as_bytes());
        Ok(self.out.write_all(&self.line)?)
    }

    fn end_keyspace(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Dribble, LIMITS, read_all};
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8]) -> (super::super::testing::Entries, Vec<Bad>) {
        read_all(Reader::new(text, Encoding::Plain, LIMITS))
    }

    #[test]
    fn good_lines() {
        let (good, bad) = read(b"k\tv\n\\\\a\\tb\tx\\ny\\r\r\n\t\n\xff\t\xfe");
        assert_eq!(bad, []);
        let expected: [(&[u8], &[u8]); 4] =
            [(b"k", b"v"), (b"\\a\tb", b"x\ny\r"), (b"", b""), (b"\xff", b"\xfe")];
        for ((k, v), (ek, ev)) in good.iter().zip(expected) {
            assert_eq!((k.as_slice(), v.as_slice()), (ek, ev));
        }
        assert_eq!(good.len(), 4);
    }

    #[test]
    fn bad_lines_have_numbers_and_the_rest_is_read() {
        let long_key = "k".repeat(LIMITS.key + 1);
        let text = format!("a\t1\nno tab\n\nb\tx\\\nb\t\\q\nb\t1\t2\n{long_key}\tv\nz\t26\n");
        let (good, bad) = read(text.as_bytes());
        assert_eq!(good.len(), 2);
        let said: Vec<_> = bad.iter().map(Bad::to_string).collect();
        let expected = [
            "line 2: no tab",
            "line 3: the line is empty",
            "line 4: value: unfinished escape",
            "line 5: value: unknown escape `\\q`",
            "line 6: a second tab",
            "line 7: a key of 65537 bytes is over the limit of 65536",
        ];
        assert_eq!(said.len(), expected.len(), "{said:?}");
        for (said, expected) in said.iter().zip(expected) {
            assert!(said.starts_with(expected), "{said}");
        }
    }

    #[test]
    fn columns_of_a_table() {
        let choose = |key: &str, value: &str, header| Columns {
            key: Some(key.into()),
            value: Some(value.into()),
            header,
        };
        let read = |columns, text: &str| {
            read_all(Reader::new(text.as_bytes(), Encoding::Plain, LIMITS).with_columns(columns))
        };
        let text = "\u{feff}id\tname\tnote\r\n1\tAda\ta\\tb\n2\tBob\n3\t\t\n4\t\\q\tx\n";
        let (good, bad) = read(choose("note", "1", true), text);
        let expected = [("a\tb", "1"), ("", "3"), ("x", "4")].map(|(k, v)| (k.into(), v.into()));
        assert_eq!(good, expected, "a field that is not chosen may hold anything");
        assert_eq!(bad[0].to_string(), "line 3: columns: 2 here, 3 in the first row");
        let (good, _) = read(choose("2", "1", false), "a\tb\tc\nd\te\tf");
        assert_eq!(good, [("b", "a"), ("e", "d")].map(|(k, v)| (k.into(), v.into())));
        let (good, bad) = read(choose("x", "1", true), text);
        assert!(good.is_empty() && bad[0].fatal && bad[0].what.contains("id, name, note"));
    }

    #[test]
    fn a_line_that_can_hold_no_entry_is_skipped_in_constant_memory() {
        let limits = Limits { key: 4, value: 4 };
        let text = format!("a\t{}\nb\t2\n", "x".repeat(100_000));
        let (good, bad) = read_all(Reader::new(text.as_bytes(), Encoding::Plain, limits));
        assert_eq!(good, [(b"b".to_vec(), b"2".to_vec())]);
        assert!(bad[0].what.contains("longer"), "{}", bad[0]);
    }

    proptest! {
        #[test]
        fn round_trip(entries: Vec<(Vec<u8>, Vec<u8>)>) {
            for encoding in [Encoding::Plain, Encoding::Hex, Encoding::Base64] {
                let mut text = Vec::new();
                let mut writer = Writer::new(&mut text, encoding);
                for (k, v) in &entries {
                    writer.write(k, v).unwrap();
                }
                writer.finish().unwrap();
                let (good, bad) = read_all(Reader::new(Dribble(&text), encoding, LIMITS));
                prop_assert_eq!(&good, &entries);
                prop_assert_eq!(bad, vec![]);
            }
        }

        #[test]
        fn any_bytes_are_read_to_the_end(
            text in prop::collection::vec(prop::sample::select(b"\t\n\r\\tnra\xff\x00".to_vec()), 0..200)
        ) {
            let lines = text.split(|&b| b == b'\n').count() - usize::from(text.ends_with(b"\n") || text.is_empty());
            for encoding in [Encoding::Plain, Encoding::Hex, Encoding::Base64] {
                let (good, bad) = read_all(Reader::new(Dribble(&text), encoding, LIMITS));
                prop_assert_eq!(good.len() + bad.len(), lines);
            }
        }

        #[test]
        fn what_is_read_is_written_back(entries: Vec<(Vec<u8>, Vec<u8>)>) {
            // Text to entries to text, starting from text that a writer made.
            let write = |entries: &[(Vec<u8>, Vec<u8>)]| {
                let mut text = Vec::new();
                let mut writer = Writer::new(&mut text, Encoding::Plain);
                entries.iter().for_each(|(k, v)| writer.write(k, v).unwrap());
                text
            };
            let text = write(&entries);
            let (good, _) = read(&text);
            prop_assert_eq!(write(&good), text);
        }
    }
}
