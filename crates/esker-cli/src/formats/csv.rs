//! Comma-separated values: a row of columns, two of which are the key and the value.
//!
//! A field that holds a comma, a quote or a line's end is written in quotes, and each quote in it
//! twice, as RFC 4180 has it; newlines in quotes are part of the field. Rows end in a newline, with
//! a carriage return before it or not. Empty lines between rows are passed over, and so is a byte
//! order mark at the start. Fields are any bytes; with hexadecimal or base64 they are that.
//!
//! Readers of CSV do not agree on what a quote means in the middle of a field, or text behind a
//! closing one. Such a row is bad here rather than guessed at, and so is one with more or fewer
//! columns than the first. A quote that is never closed takes all that is left of the input, and is
//! named by the line on which its row begins. Of a row only the two fields are kept, up to the limits.

use std::io::{self, BufRead, BufReader, Read, Write};

use super::columns::{Columns, MOST_COLUMNS, Picked, TOO_MANY};
use super::input::Unmarked;
use super::{Bad, Limits, ReadEntries, ReadError, WriteEntries, WriteError};
use crate::encoding::Encoding;

const BUFFER_BYTES: usize = 256 << 10;

/// Where in a row the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    FieldStart,
    Plain,
    Quoted,
    /// Behind a quote inside quotes: the end of the field, or the first of two.
    QuoteInQuotes,
    /// Behind a carriage return behind the closing quote.
    Return,
    /// In a row that is bad, which goes on to the end of the line.
    Bad,
}

/// Reads comma-separated entries.
pub struct Reader<R: Read> {
    source: BufReader<Unmarked<R>>,
    delimiter: u8,
    columns: Columns,
    picked: Option<Picked>,
    encoding: Encoding,
    limits: Limits,
    /// Lines that were begun.
    line: u64,
    /// The fields of the row that was read last: all of the first row, of others the two.
    fields: Vec<Vec<u8>>,
    /// The line of the first row, while it is no header and was not handed out yet.
    pending: Option<u64>,
    started: bool,
}

/// What a row turned out to be; the line is the one it begins on.
struct Row {
    line: u64,
    columns: usize,
    wrong: Option<String>,
    fatal: bool,
}

impl<R: Read> Reader<R> {
    /// Reads from `source`, whose fields are in `encoding` and stand between `delimiter`s.
    pub fn new(
        source: R,
        delimiter: u8,
        columns: Columns,
        encoding: Encoding,
        limits: Limits,
    ) -> Self {
        Reader {
            source: BufReader::with_capacity(BUFFER_BYTES, Unmarked::new(source)),
            delimiter,
            columns,
            picked: None,
            encoding,
            limits,
            line: 0,
            fields: Vec::new(),
            pending: None,
            started: false,
        }
    }

    /// Reads a row that is not an empty line; none at the end of the input.
    fn row(&mut self) -> io::Result<Option<Row>> {
        let picked = self.picked;
        let keeps = |column| picked.is_none_or(|p| column == p.key || column == p.value);
        // No encoding more than doubles the length.
        let most = 2 * self.limits.key.saturating_add(self.limits.value);
        loop {
            self.line += 1;
            let first_line = self.line;
            for field in &mut self.fields {
                field.clear();
            }
            let mut row = Row { line: first_line, columns: 0, wrong: None, fatal: false };
            let mut at = At::FieldStart;
            let (mut kept, mut seen, mut blank) = (0usize, 0u64, true);
            loop {
                let chunk = match self.source.fill_buf() {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    other => other?,
                };
                if chunk.is_empty() {
                    if at == At::Quoted {
                        row.wrong = Some("a quote is opened in this row and never closed".into());
                        row.fatal = true;
                    }
                    break;
                }
                let (mut used, mut done) = (0, false);
                for &byte in chunk {
                    used += 1;
                    seen += 1;
                    blank &= byte == b'\n' || (byte == b'\r' && seen == 1);
                    let mut push = None;
                    match (at, byte) {
                        (At::Quoted, b'"') => at = At::QuoteInQuotes,
                        (At::Quoted, _) => {
                            self.line += u64::from(byte == b'\n');
                            push = Some(byte);
                        }
                        (At::QuoteInQuotes, b'"') => {
                            at = At::Quoted;
                            push = Some(b'"');
                        }
                        (_, b'\n') => done = true,
                        (At::Bad, _) => {}
                        (At::FieldStart | At::Plain | At::QuoteInQuotes, b)
                            if b == self.delimiter =>
                        {
                            row.columns += 1;
                            at = At::FieldStart;
                            // Of the first row all fields are kept, of others two.
                            if picked.is_none() && row.columns >= MOST_COLUMNS {
                                at = At::Bad;
                                row.wrong = Some(TOO_MANY.into());
                            }
                        }
                        (At::FieldStart, b'"') => at = At::Quoted,
                        (At::FieldStart | At::Plain, b) if b != b'"' => {
                            at = At::Plain;
                            push = Some(byte);
                        }
                        (At::QuoteInQuotes, b'\r') => at = At::Return,
                        (At::FieldStart | At::Plain, _) => {
                            at = At::Bad;
                            row.wrong = Some(
                                "a quote in the middle of a field; a field with quotes stands in \
                                 quotes, and each of them is written twice"
                                    .into(),
                            );
                        }
                        (At::QuoteInQuotes | At::Return, _) => {
                            at = At::Bad;
                            row.wrong = Some(
                                "text behind a closing quote; a quote in quotes is written twice"
                                    .into(),
                            );
                        }
                    }
                    if let Some(byte) = push
                        && keeps(row.columns)
                    {
                        kept += 1;
                        if kept <= most {
                            if self.fields.len() <= row.columns {
                                self.fields.resize_with(row.columns + 1, Vec::new);
                            }
                            self.fields[row.columns].push(byte);
                        }
                    }
                    if done {
                        break;
                    }
                }
                self.source.consume(used);
                if done {
                    break;
                }
            }
            match seen {
                0 => return Ok(None),
                _ if blank => continue,
                _ => {}
            }
            let last = row.columns;
            if keeps(last) && self.fields.len() <= last {
                self.fields.resize_with(last + 1, Vec::new);
            }
            // The carriage return of the line's end, which is part of no field.
            if matches!(at, At::Plain) && self.fields.get(last).is_some_and(|f| f.ends_with(b"\r"))
            {
                self.fields[last].pop();
            }
            row.columns += 1;
            if kept > most {
                row.wrong.get_or_insert_with(|| "the row is longer than any key and value".into());
            }
            return Ok(Some(row));
        }
    }

    fn bad(&self, row: &Row, what: String) -> ReadError {
        ReadError::Bad(Bad { unit: "line", number: row.line, what, fatal: row.fatal })
    }

    /// Reads the first row and finds the columns in it.
    fn begin(&mut self) -> Result<(), ReadError> {
        if self.started {
            return Ok(());
        }
        let Some(mut row) = self.row()? else {
            self.started = true;
            return Ok(());
        };
        // Behind a first row that cannot be read nothing is known about the columns.
        row.fatal = true;
        if let Some(what) = row.wrong.take() {
            return Err(self.bad(&row, what));
        }
        let picked = self.columns.pick(&self.fields[..row.columns]);
        self.picked = Some(picked.map_err(|what| self.bad(&row, what))?);
        self.pending = (!self.columns.header).then_some(row.line);
        self.started = true;
        Ok(())
    }

    fn decode(&self, picked: Picked, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<(), String> {
        let (from, to) = (&self.fields[picked.key], &self.fields[picked.value]);
        self.encoding.decode_argument(from, key).map_err(|e| format!("key: {e}"))?;
        self.encoding.decode_argument(to, value).map_err(|e| format!("value: {e}"))?;
        self.limits.check(key.len() as u64, value.len() as u64)
    }
}

impl<R: Read> ReadEntries for Reader<R> {
    fn start(&mut self) -> Result<(), ReadError> {
        self.begin()
    }

    fn read(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, ReadError> {
        key.clear();
        value.clear();
        self.begin()?;
        let Some(picked) = self.picked else { return Ok(false) };
        let row = match self.pending.take() {
            Some(line) => Some(Row { line, columns: picked.all, wrong: None, fatal: false }),
            None => self.row()?,
        };
        let Some(row) = row else { return Ok(false) };
        if let Some(what) = &row.wrong {
            return Err(self.bad(&row, what.clone()));
        }
        picked.check(row.columns).map_err(|what| self.bad(&row, what))?;
        self.fields.resize_with(picked.all, Vec::new);
        self.decode(picked, key, value).map_err(|what| self.bad(&row, what))?;
        Ok(true)
    }
}

/// Writes a header, `key,value`, and a row for every entry.
pub struct Writer<W: Write> {
    out: W,
    encoding: Encoding,
    begun: bool,
    row: Vec<u8>,
    field: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes to `out` (which should be buffered) with fields in `encoding`.
    pub fn new(out: W, encoding: Encoding) -> Self {
        Writer { out, encoding, begun: false, row: Vec::new(), field: Vec::new() }
    }

    fn begin(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.begun, true) {
            self.out.write_all(b"key,value\n")?;
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) {
        self.field.clear();
        match self.encoding {
            Encoding::Plain => self.field.extend_from_slice(bytes),
            encoding => encoding.encode_field(bytes, &mut self.field),
        }
        if !self.field.iter().any(|b| matches!(b, b'"' | b'\n' | b'\r' | b',')) {
            self.row.extend_from_slice(&self.field);
            return;
        }
        self.row.push(b'"');
        for &byte in &self.field {
            if byte == b'"' {
                self.row.push(b'"');
            }
            self.row.push(byte);
        }
        self.row.push(b'"');
    }
}

impl<W: Write> WriteEntries for Writer<W> {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        self.begin()?;
        self.row.clear();
        self.push(key);
        self.row.push(b',');
        self.push(value);
        self.row.push(b'\n');
        Ok(self.out.write_all(&self.row)?)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Dribble, Entries, LIMITS, read_all};
    use super::*;
    use proptest::prelude::*;

    fn choose(key: &str, value: &str, header: bool) -> Columns {
        Columns { key: Some(key.into()), value: Some(value.into()), header }
    }

    fn read(columns: Columns, text: &[u8]) -> (Entries, Vec<Bad>) {
        read_all(Reader::new(Dribble(text), b',', columns, Encoding::Plain, LIMITS))
    }

    fn texts(entries: &Entries) -> Vec<(&str, &str)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        entries.iter().map(|(k, v)| (text(k.as_slice()), text(v.as_slice()))).collect()
    }

    #[test]
    fn rows_quotes_and_ends_of_lines() {
        let text = "\u{feff}\"id\",name,note\r\n1,Ada,\"a \"\"b\"\", c\"\r\n\n2,,\"two\r\nlines\"\r\n\
                    \"3\",\"\",\n\"4\",x\\,plain";
        let (good, bad) = read(choose("id", "note", true), text.as_bytes());
        assert_eq!(bad, []);
        let expected = [("1", "a \"b\", c"), ("2", "two\r\nlines"), ("3", ""), ("4", "plain")];
        assert_eq!(texts(&good), expected);
        let (good, _) = read(choose("name", "1", true), text.as_bytes());
        assert_eq!(texts(&good), [("Ada", "1"), ("", "2"), ("", "3"), ("x\\", "4")]);
        let (good, bad) = read(choose("2", "1", false), b"a,b\nc,d");
        assert_eq!((texts(&good), bad), (vec![("b", "a"), ("d", "c")], vec![]));
    }

    #[test]
    fn bad_rows_are_named_by_the_line_they_begin_on() {
        let text = b"k,v\na,1\nb,\"x\ny\",2\nc\nd,6\" pipe\ne,\"x\"y\nf,\"1\n2\"\n\"g\"\rh,1\ni,2\nj,\"end\n";
        let (good, bad) = read(Columns { header: true, ..Columns::default() }, text);
        assert_eq!(texts(&good), [("a", "1"), ("f", "1\n2"), ("i", "2")]);
        let said: Vec<_> = bad.iter().map(Bad::to_string).collect();
        let expected = [
            "line 3: columns: 3 here, 2 in the first row",
            "line 5: columns: 1 here, 2 in the first row",
            "line 6: a quote in the middle of a field",
            "line 7: text behind a closing quote",
            "line 10: text behind a closing quote",
            "line 12: a quote is opened in this row and never closed",
        ];
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        for (said, expected) in said.iter().zip(expected) {
            assert!(said.starts_with(expected), "{said}");
        }
        assert!(bad[5].fatal && !bad[4].fatal);
    }

    #[test]
    fn what_is_wrong_with_the_first_row_ends_the_load() {
        for (text, what) in [
            (&b"a,b,c\n1,2,3\n"[..], "3 columns"),
            (b"a\nb\n", "one column"),
            (b"a,\"b\"x\n", "text behind"),
        ] {
            let (good, bad) = read(Columns { header: true, ..Columns::default() }, text);
            assert!(good.is_empty() && bad.len() == 1 && bad[0].fatal, "{bad:?}");
            assert!(bad[0].to_string().starts_with("line 1: ") && bad[0].what.contains(what));
        }
        for text in [&b""[..], b"\n\n", b"k,v\n"] {
            let columns = Columns { header: true, ..Columns::default() };
            assert_eq!(read(columns, text), (vec![], vec![]));
        }
    }

    #[test]
    fn a_row_over_the_limits_is_passed_over_in_constant_memory() {
        let limits = Limits { key: 4, value: 4 };
        let text =
            format!("k,v,w\na,{},1\nb,2,{}\nc,3,3\n", "x".repeat(10_000), "y".repeat(10_000));
        let columns = choose("k", "v", true);
        let mut reader = Reader::new(text.as_bytes(), b',', columns, Encoding::Plain, limits);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        assert!(
            matches!(reader.read(&mut key, &mut value), Err(ReadError::Bad(bad)) if bad.number == 2)
        );
        assert!(reader.fields.iter().all(|f| f.capacity() < 1000));
        assert!(reader.read(&mut key, &mut value).unwrap());
        assert_eq!((&key[..], &value[..]), (&b"b"[..], &b"2"[..]), "a column that is not chosen");
    }

    #[test]
    fn encoded_fields_and_other_delimiters() {
        let columns = Columns { header: true, ..Columns::default() };
        let text = b"k;v\n00ff;\"6a\"\nzz;00\n";
        let (good, bad) = read_all(Reader::new(&text[..], b';', columns, Encoding::Hex, LIMITS));
        assert_eq!(good, [(b"\x00\xff".to_vec(), b"j".to_vec())]);
        assert!(bad[0].what.contains("key: not hexadecimal"), "{}", bad[0]);
    }

    proptest! {
        #[test]
        fn round_trip(entries: Entries) {
            for encoding in [Encoding::Plain, Encoding::Hex, Encoding::Base64] {
                let mut text = Vec::new();
                let mut writer = Writer::new(&mut text, encoding);
                for (k, v) in &entries {
                    writer.write(k, v).unwrap();
                }
                writer.finish().unwrap();
                let columns = Columns { header: true, ..Columns::default() };
                let (good, bad) =
                    read_all(Reader::new(Dribble(&text), b',', columns, encoding, LIMITS));
                prop_assert_eq!(&good, &entries);
                prop_assert_eq!(bad, vec![]);
            }
        }

        #[test]
        fn any_bytes_end(
            text in prop::collection::vec(prop::sample::select(b",\"\n\rab\xff".to_vec()), 0..200),
            header: bool,
        ) {
            let (good, bad) = read(Columns { header, ..Columns::default() }, &text);
            prop_assert!(good.len() + bad.len() <= text.len() + 1);
        }
    }
}
