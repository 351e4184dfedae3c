//! JSON Lines: one JSON object a line. The key is the value of one of its fields, the value is the
//! whole line as it stands, so a line that is loaded is dumped with the same bytes; or it is another
//! of its fields.
//!
//! The field is named by a path: `id`, or `user.id` for the field `id` of the object `user`; a dot
//! inside a name is written `\.`. A string gives its contents as the key, a number its digits as
//! they stand in the line. Lines of nothing but white space are passed over; a byte order mark at
//! the start of the input is dropped.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read, Write};
use std::str;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::input::{Line, Lines};
use super::{Bad, Limits, ReadEntries, ReadError, WriteEntries, WriteError};
use crate::encoding::Encoding;

/// Which field of a line holds the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    /// As the user wrote it, for messages.
    text: String,
    names: Vec<String>,
}

impl str::FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut names = vec![String::new()];
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '.' => names.push(String::new()),
                '\\' => match chars.next() {
                    Some(c @ ('.' | '\\')) => names.last_mut().expect("never empty").push(c),
                    _ => return Err("a backslash goes before a dot or a backslash".into()),
                },
                c => names.last_mut().expect("never empty").push(c),
            }
        }
        if names.iter().any(String::is_empty) {
            return Err("a name in the path is empty; write `a.b`, or `a\\.b` for one name".into());
        }
        Ok(FieldPath { text: text.into(), names })
    }
}

impl FieldPath {
    /// The text of the field in `line`, as it stands there. Checks all of the line.
    fn find<'l>(&self, line: &'l str) -> Result<Option<&'l RawValue>, String> {
        let mut raw = None;
        let mut object = line;
        for name in &self.names {
            // What is inside a line was checked with the line, so only the first round can fail
            // to parse; a thing that is no object has no fields.
            if raw.is_some() && !object.starts_with('{') {
                return Ok(None);
            }
            raw = field(object, name).map_err(|e| format!("broken JSON: {}", message(&e)))?;
            let Some(found) = raw else { break };
            object = found.get();
        }
        Ok(raw)
    }

    /// Appends the key of `line` to `key`. An error says what is wrong with the line.
    pub fn extract(&self, line: &str, encoding: Encoding, key: &mut Vec<u8>) -> Result<(), String> {
        let raw = self.find(line)?;
        let Some(raw) = raw else { return Err(format!("no field `{}` to take as key", self.text)) };
        let what = match raw.get().as_bytes()[0] {
            b'"' | b'-' | b'0'..=b'9' => return self.decode(raw, encoding, key),
            b'{' => "an object",
            b'[' => "an array",
            b'n' => "null",
            _ => "true or false",
        };
        Err(format!("field `{}` is {what}; a key is a string or a number", self.text))
    }

    /// Appends the value that the field of `line` holds: what a string says, of all else the JSON.
    fn extract_value(
        &self,
        line: &str,
        encoding: Encoding,
        to: &mut Vec<u8>,
    ) -> Result<(), String> {
        match self.find(line)? {
            Some(raw) => self.decode(raw, encoding, to),
            None => Err(format!("no field `{}` to take as value", self.text)),
        }
    }

    fn decode(&self, raw: &RawValue, encoding: Encoding, to: &mut Vec<u8>) -> Result<(), String> {
        let text: Cow<'_, str> = if raw.get().starts_with('"') {
            let broken = |e| format!("broken JSON in `{}`: {}", self.text, message(&e));
            Cow::Owned(serde_json::from_str(raw.get()).map_err(broken)?)
        } else {
            Cow::Borrowed(raw.get())
        };
        encoding
            .decode_argument(text.as_bytes(), to)
            .map_err(|e| format!("field `{}` is {e}", self.text))
    }
}

/// The last value of the field `name` (as most readers take it when a name comes twice), after
/// checking all of `object`.
fn field<'de>(object: &'de str, name: &str) -> serde_json::Result<Option<&'de RawValue>> {
    let mut parser = Deserializer::from_str(object);
    let found = parser.deserialize_any(Find(name))?;
    parser.end()?;
    Ok(found)
}

struct Find<'n>(&'n str);

impl<'de> Visitor<'de> for Find<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(wanted) = map.next_key_seed(Is(self.0))? {
            if wanted {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Compares a name without allocating it.
struct Is<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;
    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<bool, D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }
    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// The parser's message without its line, which is always 1 and not the line of the file.
fn message(e: &serde_json::Error) -> String {
    let text = e.to_string();
    let place = format!(" at line {} column {}", e.line(), e.column());
    match text.strip_suffix(&place) {
        Some(text) => format!("{text} at column {}", e.column()),
        None => text,
    }
}

/// Checks that `line` is one JSON value and nothing else.
fn check_json(line: &str) -> Result<(), String> {
    serde_json::from_str::<IgnoredAny>(line).map(|_| ()).map_err(|e| message(&e))
}

/// Reads JSON Lines.
pub struct Reader<R: Read> {
    lines: Lines<R>,
    line: Vec<u8>,
    key: FieldPath,
    value: Option<FieldPath>,
    encoding: Encoding,
    limits: Limits,
}

impl<R: Read> Reader<R> {
    /// Reads from `source`; the key of a line is its field `key`, whose text is in `encoding`, and
    /// the value is the line.
    pub fn new(source: R, key: FieldPath, encoding: Encoding, limits: Limits) -> Self {
        let lines = Lines::new(source, limits.value);
        Reader { lines, line: Vec::new(), key, value: None, encoding, limits }
    }

    /// Takes the value from the field `value`, if it is given.
    #[must_use]
    pub fn with_value(mut self, value: Option<FieldPath>) -> Self {
        self.value = value;
        self
    }

    fn parse(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<(), String> {
        let text = str::from_utf8(&self.line).map_err(|e| {
            format!("invalid UTF-8 at byte {} of the line; JSON is UTF-8", e.valid_up_to() + 1)
        })?;
        self.key.extract(text, self.encoding, key)?;
        match &self.value {
            Some(field) => field.extract_value(text, self.encoding, value)?,
            None => std::mem::swap(value, &mut self.line),
        }
        self.limits.check(key.len() as u64, value.len() as u64)
    }
}

impl<R: Read> ReadEntries for Reader<R> {
    fn read(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, ReadError> {
        key.clear();
        value.clear();
        let parsed = loop {
            match self.lines.next_line(&mut self.line)? {
                Line::End => return Ok(false),
                Line::TooLong => {
                    break Err(format!(
                        "the line is over the limit of {} bytes for a value",
                        self.limits.value
                    ));
                }
                Line::Whole => {}
            }
            if self.lines.number == 1 && self.line.starts_with("\u{feff}".as_bytes()) {
                self.line.drain(..3);
            }
            if !self.line.trim_ascii().is_empty() {
                break self.parse(key, value);
            }
        };
        match parsed {
            Ok(()) => Ok(true),
            Err(what) => {
                let number = self.lines.number;
                Err(ReadError::Bad(Bad { unit: "line", number, what, fatal: false }))
            }
        }
    }
}

/// Writes the values as lines. Keys are not written: they are a part of the values.
pub struct Writer<W: Write> {
    out: W,
    key: Option<FieldPath>,
    encoding: Encoding,
    expected: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes to `out`, which should be buffered. With `key` every entry's key must be what a load
    /// with that path would make of its value.
    pub fn new(out: W, key: Option<FieldPath>, encoding: Encoding) -> Self {
        Writer { out, key, encoding, expected: Vec::new() }
    }

    fn check(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        if memchr::memchr(b'\n', value).is_some() {
            return Err("its value holds a newline, so it is not a line".into());
        }
        let text = str::from_utf8(value).map_err(|_| "its value is not UTF-8".to_string())?;
        let Some(path) = &self.key else {
            return check_json(text).map_err(|e| format!("its value is not JSON: {e}"));
        };
        self.expected.clear();
        path.extract(text, self.encoding, &mut self.expected)?;
        if self.expected != key {
            return Err(format!(
                "its value says {:?} in field `{}`",
                String::from_utf8_lossy(&self.expected),
                path.text
            ));
        }
        Ok(())
    }
}

impl<W: Write> WriteEntries for Writer<W> {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        self.check(key, value).map_err(WriteError::Unfit)?;
        self.out.write_all(value)?;
        Ok(self.out.write_all(b"\n")?)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Dribble, Entries, LIMITS, read_all};
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> FieldPath {
        text.parse().unwrap()
    }

    fn read(key: &str, text: &[u8]) -> (Entries, Vec<Bad>) {
        read_all(Reader::new(text, path(key), Encoding::Plain, LIMITS))
    }

    #[test]
    fn paths() {
        assert_eq!(path("a.b\\.c").names, ["a", "b.c"]);
        for bad in ["", "a.", ".a", "a..b", "a\\", "a\\b"] {
            assert!(bad.parse::<FieldPath>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn keys_of_lines() {
        for (key, line, expected) in [
            ("id", r#"{"id":"x"}"#, "x"),
            ("id", r#" { "other" : [1,{"id":2}], "id" : "a\tb\u00e9" } "#, "a\tbé"),
            ("id", r#"{"id":12345678901234567890123}"#, "12345678901234567890123"),
            ("id", r#"{"id":1.50}"#, "1.50"),
            ("id", r#"{"id":1,"id":2}"#, "2"),
            ("a.b.c", r#"{"a":{"b":{"c":"deep"}}}"#, "deep"),
            ("a\\.b", r#"{"a.b":"dot","a":{"b":"no"}}"#, "dot"),
            ("é", r#"{"\u00e9":"escaped name"}"#, "escaped name"),
        ] {
            let (good, bad) = read(key, line.as_bytes());
            assert_eq!(bad, [], "{line}");
            assert_eq!(good, [(expected.into(), line.into())]);
        }
    }

    #[test]
    fn values_of_lines() {
        let text =
            b"{\"k\":1,\"v\":\"a\\tb\"}\n{\"k\":2,\"v\":{\"x\": [1]}}\n{\"k\":3,\"v\":1.50}\n\
            {\"k\":4,\"v\":null}\n{\"k\":5}\n{\"k\":6,\"v\":\"\"}\n";
        let reader = Reader::new(&text[..], path("k"), Encoding::Plain, LIMITS);
        let (good, bad) = read_all(reader.with_value(Some(path("v"))));
        let values: Vec<_> = good.iter().map(|(_, v)| str::from_utf8(v).unwrap()).collect();
        assert_eq!(values, ["a\tb", "{\"x\": [1]}", "1.50", "null", ""]);
        assert_eq!(bad[0].to_string(), "line 5: no field `v` to take as value");
        let text = b"{\"k\":\"AA==\",\"v\":\"/w==\"}\n{\"k\":\"AA==\",\"v\":{}}\n";
        let reader = Reader::new(&text[..], path("k"), Encoding::Base64, LIMITS);
        let (good, bad) = read_all(reader.with_value(Some(path("v"))));
        assert_eq!(good, [(vec![0], vec![0xff])]);
        assert!(bad[0].what.contains("`v` is not base64"), "{}", bad[0]);
    }

    #[test]
    fn bad_lines_have_numbers_and_the_rest_is_read() {
        let text = b"{\"id\":1}\n{\"id\":\n\n{\"x\":1}\n[1]\n{\"id\":\"\xff\"}\n{\"id\":null}\n{\"id\":{}}\n\
            {\"id\":1} x\n{\"id\":\"\\ud800\"}\n{\"id\":2}";
        let (good, bad) = read("id", text);
        assert_eq!(good.len(), 2);
        let said: Vec<_> = bad.iter().map(Bad::to_string).collect();
        let expected = [
            "line 2: broken JSON: EOF while parsing a value at column 6",
            "line 4: no field `id` to take as key",
            "line 5: broken JSON: invalid type: sequence, expected a JSON object",
            "line 6: invalid UTF-8 at byte 8 of the line",
            "line 7: field `id` is null; a key is a string or a number",
            "line 8: field `id` is an object",
            "line 9: broken JSON: trailing characters at column 10",
            "line 10: broken JSON in `id`: ",
        ];
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        for (said, expected) in said.iter().zip(expected) {
            assert!(said.starts_with(expected), "{said}");
        }
        let (_, bad) = read("id.x", b"{\"id\":3}\n{\"id\":{\"x\":[]}}");
        assert!(bad[0].what.contains("no field `id.x`"));
        assert!(bad[1].what.contains("is an array"));
    }

    #[test]
    fn long_keys_and_encoded_keys() {
        let line = format!("{{\"id\":\"{}\"}}", "k".repeat(LIMITS.key + 1));
        let (_, bad) = read("id", line.as_bytes());
        assert!(bad[0].what.contains("65537 bytes is over the limit"));
        let line = b"{\"id\":\"00ff\"}\n{\"id\":\"xx\"}";
        let (good, bad) = read_all(Reader::new(&line[..], path("id"), Encoding::Hex, LIMITS));
        assert_eq!(good[0].0, b"\x00\xff");
        assert!(bad[0].what.contains("not hexadecimal"), "{}", bad[0]);
    }

    #[test]
    fn lines_come_back_as_they_were() {
        let text = b"{\"id\": 2}\r\n \t{\"id\":\"z\"} \n";
        let (good, bad) = read("id", text);
        assert_eq!(bad, []);
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, Some(path("id")), Encoding::Plain);
        for (k, v) in &good {
            writer.write(k, v).unwrap();
        }
        assert_eq!(out, text);
        let (good, _) = read("id", "\u{feff}{\"id\":1}".as_bytes());
        assert_eq!(good[0].1, b"{\"id\":1}");
    }

    #[test]
    fn values_that_are_no_lines_are_refused() {
        let unfit = |path: Option<FieldPath>, k: &str, v: &[u8]| match Writer::new(
            io::sink(),
            path,
            Encoding::Plain,
        )
        .write(k.as_bytes(), v)
        {
            Err(WriteError::Unfit(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(unfit(None, "k", b"{\n}").contains("newline"));
        assert!(unfit(None, "k", b"hello").contains("not JSON"));
        assert!(unfit(None, "k", b"").contains("not JSON"));
        assert!(unfit(None, "k", b"\"\xff\"").contains("UTF-8"));
        assert!(unfit(Some(path("id")), "k", b"{\"id\":\"j\"}").contains("says \"j\""));
    }

    proptest! {
        #[test]
        fn round_trip(objects in prop::collection::vec((".*", ".*", any::<f64>()), 0..20)) {
            let mut text = Vec::new();
            for (id, other, number) in &objects {
                let line = serde_json::json!({"n": number, "o": other, "meta": {"id": id}});
                writeln!(text, "{line}").unwrap();
            }
            let reader = Reader::new(Dribble(&text), path("meta.id"), Encoding::Plain, LIMITS);
            let (good, bad) = read_all(reader);
            prop_assert_eq!(bad, vec![]);
            prop_assert_eq!(good.len(), objects.len());
            let mut back = Vec::new();
            let mut writer = Writer::new(&mut back, Some(path("meta.id")), Encoding::Plain);
            for ((k, v), (id, ..)) in good.iter().zip(&objects) {
                prop_assert_eq!(k.as_slice(), id.as_bytes());
                writer.write(k, v).unwrap();
            }
            prop_assert_eq!(back, text);
        }

        #[test]
        fn any_bytes_end(text in prop::collection::vec(
            prop::sample::select(b"{}[]\",:\\uid10 \n\r\xff".to_vec()), 0..200))
        {
            read("id", &text);
        }
    }
}
