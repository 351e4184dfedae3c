//! The text that `mdb_dump` of LMDB and `db_dump` of Berkeley DB write, and `mdb_load` and `db_load`
//! read: a header, then a line for each key and for each value.
//!
//! ```text
//! VERSION=3
//! format=bytevalue
//! database=NAME            where it is one of several
//! type=btree
//! HEADER=END
//!  6b6579                  a blank, then bytes as pairs of hexadecimal digits
//!  76616c7565
//! DATA=END
//! ```
//!
//! With `format=print` bytes that are printed stand for themselves, others are `\` and two digits, and
//! a backslash is `\\`. (`mdb_dump -p` of LMDB 0.9.24 does not double it: what it writes of such bytes is
//! ambiguous.) `db_dump` writes names like that in both forms, `mdb_dump` and this as they are: the header
//! tells whose it is. Several databases come one after the other, each whole. What else a header says
//! (sizes of maps and pages) is passed over, but for what makes it no map of keys to values. What is
//! written is `bytevalue`: every program that reads one of the two reads that.

use std::io::{self, Read, Write};

use super::all::{Head, ReadKeyspaces, WriteKeyspaces};
use super::input::{Line, Lines};
use super::{Bad, Limits, ReadEntries, ReadError, WriteEntries, WriteError};

/// The order that keys have where they are loaded.
const ORDER: &str = "esker.bytewise";
/// Keyspaces of a dump have the settings of the store: all say the same, whatever it is.
const COMPRESSION: &str = "lz4";
/// The keyspace of a database without a name.
const UNNAMED: &str = "default";

/// How bytes are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Hex,
    Print,
}

/// Where reading is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Header,
    Data,
    /// Behind the entries of a database.
    Behind,
}

/// Reads a dump.
pub struct Reader<R: Read> {
    lines: Lines<R>,
    line: Vec<u8>,
    limits: Limits,
    form: Form,
    at: At,
    /// Whether each database is a keyspace.
    all: bool,
    /// Whether a key may have several values, and the last key then.
    has_many: bool,
    last: Option<Vec<u8>>,
}

impl<R: Read> Reader<R> {
    /// Reads from `source`.
    pub fn new(source: R, limits: Limits) -> Self {
        // A byte takes three at most, and there is a blank before them.
        let lines = Lines::new(source, 3 * limits.key.max(limits.value) + 1);
        let (line, form, at) = (Vec::new(), Form::Hex, At::Header);
        Reader { lines, line, limits, form, at, all: false, has_many: false, last: None }
    }

    /// Reads several databases.
    #[must_use]
    pub fn of_all(mut self) -> Self {
        self.all = true;
        self
    }

    fn bad(&self, what: impl Into<String>, fatal: bool) -> ReadError {
        ReadError::Bad(Bad { unit: "line", number: self.lines.number, what: what.into(), fatal })
    }

    fn truncated(&mut self) -> ReadError {
        self.lines.number += 1;
        self.bad("the input is truncated: DATA=END is missing", true)
    }

    /// Reads a header and gives the name in it; none at the end of the input.
    fn header(&mut self) -> Result<Option<Head>, ReadError> {
        let (mut name, mut version, mut form) = (None::<String>, None, None);
        let (mut has_pages, mut is_lmdb) = (false, false);
        (self.has_many, self.last) = (false, None);
        loop {
            match self.lines.next_line(&mut self.line)? {
                Line::Whole => {}
                Line::TooLong => return Err(self.bad("no header of a dump", true)),
                Line::End if version.is_none() && self.at == At::Behind => return Ok(None),
                Line::End => return Err(self.truncated()),
            }
            let text = String::from_utf8_lossy(&self.line).into_owned();
            let Some((field, value)) = text.split_once('=') else {
                return Err(self.bad(
                    "no header of a dump of mdb_dump or db_dump, which begins with VERSION=3",
                    true,
                ));
            };
            match (field, value) {
                ("VERSION", "3") => version = Some(()),
                ("VERSION", other) => {
                    return Err(self.bad(format!("version {other} of the format; 3 is read"), true));
                }
                ("HEADER", "END") => break,
                ("format", "bytevalue") => form = Some(Form::Hex),
                ("format", "print") => form = Some(Form::Print),
                ("format", other) => return Err(self.bad(format!("unknown format {other}"), true)),
                ("type", "btree" | "hash") => {}
                ("type", other) => {
                    return Err(self.bad(format!("type {other} has no keys; btree is read"), true));
                }
                ("keys", "0") => return Err(self.bad("the dump has no keys", true)),
                // Without --all it is not looked at.
                ("database", _) if self.all && std::str::from_utf8(&self.line).is_err() => {
                    return Err(self.bad(
                        "the name of the database is not UTF-8, as that of a keyspace is; dump it \
                         alone and load it without --all",
                        true,
                    ));
                }
                ("database", value) => name = Some(value.to_owned()),
                ("duplicates" | "dupsort", "1") => self.has_many = true,
                ("db_pagesize", _) => has_pages = true,
                ("mapsize" | "maxreaders", _) => is_lmdb = true,
                _ => {}
            }
        }
        if version.is_none() {
            return Err(self.bad("a header without VERSION=3", true));
        }
        let Some(form) = form else { return Err(self.bad("a header without format", true)) };
        if let Some(name) = name.as_mut().filter(|_| self.all && has_pages && !is_lmdb) {
            let mut bytes = Vec::new();
            let decoded = unprint(name.as_bytes(), &mut bytes).ok();
            *name = decoded.and_then(|()| String::from_utf8(bytes).ok()).ok_or_else(|| {
                let what = format!(
                    "the name of the database, {name}, is not UTF-8 in the escapes of db_dump; dump \
                     it alone and load it without --all"
                );
                self.bad(what, true)
            })?;
        }
        self.form = form;
        self.at = At::Data;
        Ok(Some(Head {
            name: name.unwrap_or_else(|| UNNAMED.into()),
            order: ORDER.into(),
            compression: COMPRESSION.into(),
            blob_threshold: 0,
        }))
    }

    /// Reads a line of bytes; false where the entries end. What is wrong with them goes to `wrong`, so
    /// that a key is never taken for a value.
    fn field(
        &mut self,
        name: &str,
        out: &mut Vec<u8>,
        wrong: &mut Option<ReadError>,
    ) -> Result<bool, ReadError> {
        out.clear();
        let mut note = |e| {
            wrong.get_or_insert(e);
        };
        match self.lines.next_line(&mut self.line)? {
            Line::End => return Err(self.truncated()),
            Line::TooLong => note(self.bad(format!("{name}: the line is too long"), false)),
            Line::Whole => match self.line.split_first() {
                Some((b' ', text)) => {
                    let decoded = match self.form {
                        Form::Hex => unhex(text, out),
                        Form::Print => unprint(text, out),
                    };
                    if let Err(what) = decoded {
                        note(self.bad(format!("{name}: {what}"), false));
                    }
                }
                _ if self.line == b"DATA=END" => return Ok(false),
                _ => return Err(self.bad("a line that does not begin with a blank", true)),
            },
        }
        Ok(true)
    }

    /// Behind the only database nothing may come.
    fn check_end(&mut self) -> Result<(), ReadError> {
        self.at = At::Behind;
        if !self.all && self.lines.next_line(&mut self.line)? != Line::End {
            return Err(self.bad(
                "another database begins; --all loads each into the keyspace of its name",
                true,
            ));
        }
        Ok(())
    }
}

impl<R: Read> ReadEntries for Reader<R> {
    fn start(&mut self) -> Result<(), ReadError> {
        self.header().map(drop)
    }

    fn read(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, ReadError> {
        match self.at {
            At::Header => self.start()?,
            At::Data => {}
            At::Behind => return Ok(false),
        }
        let mut wrong = None;
        if !self.field("key", key, &mut wrong)? {
            self.check_end()?;
            return Ok(false);
        }
        if !self.field("value", value, &mut wrong)? {
            return Err(self.bad("a key without a value", true));
        }
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        let checked = self.limits.check(key.len() as u64, value.len() as u64);
        checked.map_err(|what| self.bad(what, false))?;
        if self.has_many {
            // They are beside each other.
            if self.last.as_ref() == Some(key) {
                return Err(self.bad(
                    "another value of the key before it, and a keyspace has one for each",
                    false,
                ));
            }
            self.last.get_or_insert_default().clone_from(key);
        }
        Ok(true)
    }
}

impl<R: Read> ReadKeyspaces for Reader<R> {
    fn next_keyspace(&mut self) -> Result<Option<Head>, ReadError> {
        self.header()
    }
}

fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|d| d as u8)
}

fn unhex(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    if !text.len().is_multiple_of(2) {
        return Err("an odd number of hexadecimal digits".into());
    }
    for pair in text.chunks_exact(2) {
        match (digit(pair[0]), digit(pair[1])) {
            (Some(high), Some(low)) => out.push(high << 4 | low),
            _ => return Err("not hexadecimal".into()),
        }
    }
    Ok(())
}

fn unprint(mut text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    while let Some(at) = memchr::memchr(b'\\', text) {
        out.extend_from_slice(&text[..at]);
        match text[at + 1..] {
            [b'\\', ..] => {
                out.push(b'\\');
                text = &text[at + 2..];
            }
            [high, low, ..] if digit(high).is_some() && digit(low).is_some() => {
                unhex(&[high, low], out)?;
                text = &text[at + 3..];
            }
            // Some releases of mdb_dump write it as it is.
            _ => {
                return Err(
                    "a backslash without two hexadecimal digits behind it; dump without -p, \
                            which not every mdb_dump does right"
                        .into(),
                );
            }
        }
    }
    out.extend_from_slice(text);
    Ok(())
}

/// Writes a dump.
pub struct Writer<W: Write> {
    out: W,
    begun: bool,
    all: bool,
    line: String,
}

impl<W: Write> Writer<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Writer { out, begun: false, all: false, line: String::new() }
    }

    fn header(&mut self, name: &str) -> io::Result<()> {
        self.begun = true;
        self.out.write_all(b"VERSION=3\nformat=bytevalue\n")?;
        if name != UNNAMED {
            writeln!(self.out, "database={name}")?;
        }
        self.out.write_all(b"type=btree\nHEADER=END\n")
    }

    fn end(&mut self) -> io::Result<()> {
        if !self.begun {
            self.header(UNNAMED)?;
        }
        self.begun = false;
        self.out.write_all(b"DATA=END\n")
    }
}

impl<W: Write> WriteEntries for Writer<W> {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        if !self.begun {
            self.header(UNNAMED)?;
        }
        for field in [key, value] {
            self.line.clear();
            self.line.push(' ');
            data_encoding::HEXLOWER.encode_append(field, &mut self.line);
            self.line.push('\n');
            self.out.write_all(self.line.as_bytes())?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.all {
            self.end()?;
        }
        self.out.flush()
    }
}

impl<W: Write> WriteKeyspaces for Writer<W> {
    fn begin(&mut self, _keyspaces: u32) -> io::Result<()> {
        self.all = true;
        Ok(())
    }

    fn begin_keyspace(&mut self, head: &Head) -> Result<(), WriteError> {
        if head.order != ORDER {
            let what = format!("the dump has no word for the order {}", head.order);
            return Err(WriteError::Unfit(what));
        }
        if head.name.contains(['\n', '\r']) {
            return Err(WriteError::Unfit("a name that is not on one line".into()));
        }
        Ok(self.header(&head.name)?)
    }

    fn end_keyspace(&mut self) -> io::Result<()> {
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Dribble, Entries, LIMITS, read_all};
    use super::*;
    use proptest::prelude::*;

    fn dump(entries: &Entries) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        entries.iter().for_each(|(k, v)| writer.write(k, v).unwrap());
        writer.finish().unwrap();
        out
    }

    fn read(text: &str) -> (Entries, Vec<Bad>) {
        read_all(Reader::new(Dribble(text.as_bytes()), LIMITS))
    }

    #[test]
    fn the_documented_example() {
        let text =
            "VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n 6b6579\n 76616c7565\nDATA=END\n";
        let entries = vec![(b"key".to_vec(), b"value".to_vec())];
        assert_eq!(String::from_utf8(dump(&entries)).unwrap(), text);
        assert_eq!(read(text), (entries, vec![]));
        let print = text.replace("bytevalue", "print").replace(" 6b6579", " k\\65\\\\\\0a ");
        assert_eq!(read(&print).0, [(b"ke\\\n ".to_vec(), b"76616c7565".to_vec())]);
    }

    const HEAD: &str = "VERSION=3\nformat=bytevalue\ntype=btree\nHEADER=END\n";

    #[test]
    fn what_is_wrong_is_said() {
        let long = "6b".repeat(LIMITS.key + 1);
        for (text, line, what, is_fatal) in [
            ("", 1, "truncated", true),
            ("a\tb\n", 1, "no header", true),
            ("VERSION=2\n", 1, "version 2", true),
            ("VERSION=3\nformat=html\n", 2, "unknown format", true),
            ("VERSION=3\nHEADER=END\n", 2, "without format", true),
            ("VERSION=3\nformat=print\ntype=recno\n", 3, "type recno has no keys", true),
            ("VERSION=3\nkeys=0\n", 2, "no keys", true),
            (&format!("{HEAD} 6b\n"), 6, "truncated", true),
            (&format!("{HEAD} 6b\n 76\n"), 7, "truncated", true),
            (&format!("{HEAD} 6b\nDATA=END\n"), 6, "a key without a value", true),
            (&format!("{HEAD}6b\n"), 5, "does not begin with a blank", true),
            (&format!("{HEAD} 6\n 76\nDATA=END\n"), 5, "an odd number", false),
            (&format!("{HEAD} 6b\n 7g\nDATA=END\n"), 6, "value: not hexadecimal", false),
            (&format!("{HEAD} {long}\n 76\nDATA=END\n"), 6, "over the limit", false),
            (&format!("{HEAD}DATA=END\n{HEAD}"), 6, "another database begins; --all", true),
        ] {
            let (entries, bad) = read(text);
            assert!(entries.len() <= 1 && bad.len() == 1, "{text}: {bad:?}");
            assert_eq!((bad[0].number, bad[0].fatal), (line, is_fatal), "{text}: {bad:?}");
            assert!(bad[0].what.contains(what), "{text}: {bad:?}");
        }
        // Behind a bad entry the next is read, key for key.
        let (entries, bad) = read(&format!("{HEAD} 6\n 76\n 61\n 62\nDATA=END\n"));
        assert_eq!((entries, bad.len()), (vec![(b"a".to_vec(), b"b".to_vec())], 1));
    }

    #[test]
    fn several_values_of_a_key() {
        let head = HEAD.replace("type", "duplicates=1\ntype");
        let text = " \n 61\n \n 62\n 61\n 62\n 61\n 63\n 62\n 63\nDATA=END\n";
        let (entries, bad) = read(&format!("{head}{text}"));
        assert_eq!(entries.len(), 3);
        assert!(bad.len() == 2 && bad[0].what.contains("another value"), "{bad:?}");
    }

    #[test]
    fn several_databases() {
        let head = |name: &str| Head {
            name: name.into(),
            order: ORDER.into(),
            compression: COMPRESSION.into(),
            blob_threshold: 0,
        };
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.begin(2).unwrap();
        for name in ["default", "users"] {
            writer.begin_keyspace(&head(name)).unwrap();
            writer.write(name.as_bytes(), b"").unwrap();
            writer.end_keyspace().unwrap();
        }
        let reverse = Head { order: "esker.reverse".into(), ..head("x") };
        assert!(matches!(writer.begin_keyspace(&reverse), Err(WriteError::Unfit(_))));
        writer.finish().unwrap();
        let mut reader = Reader::new(&out[..], LIMITS).of_all();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for name in ["default", "users"] {
            assert_eq!(reader.next_keyspace().unwrap(), Some(head(name)));
            assert!(reader.read(&mut key, &mut value).unwrap() && key == name.as_bytes());
            assert!(!reader.read(&mut key, &mut value).unwrap());
        }
        assert_eq!(reader.next_keyspace().unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_entries_come_back(entries: Entries) {
            let bytes = dump(&entries);
            prop_assert_eq!(read_all(Reader::new(Dribble(&bytes), LIMITS)), (entries, vec![]));
        }
    }
}
