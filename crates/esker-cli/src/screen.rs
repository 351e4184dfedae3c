//! What a terminal is not sent as it is: bytes it would act on instead of showing them.
//!
//! Stored bytes come from anywhere. Escape sequences among them could recolour a terminal, rename
//! it, or overwrite what stands above; characters that turn the direction of text could show it in
//! another order than it has. They are written `\x1b`, byte by byte, as is what is not UTF-8. Where
//! backslashes are doubled, as in TSV, nothing is ambiguous, and `esker load` reads it back.
//! Newlines and tabs stay, and so does what merely looks odd.

use std::io::{self, Write};

/// How a character that a terminal would act on is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `\x1b` for every byte of it.
    Bytes,
    /// `\u001b`: inside a string of JSON it means the same character.
    Json,
}

/// Whether a terminal does more with `c` than show it.
fn acts(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Marks, embeddings, overrides and isolates of the bidirectional algorithm; U+2028 and
        // U+2029 end a line.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        c => c.is_control(),
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'\r' => out.extend_from_slice(b"\\r"),
            byte => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}

fn write_char(c: char, style: Style, out: &mut Vec<u8>) {
    let mut utf8 = [0; 4];
    let utf8 = c.encode_utf8(&mut utf8);
    match style {
        _ if !acts(c) => out.extend_from_slice(utf8.as_bytes()),
        Style::Bytes => write_bytes(utf8.as_bytes(), out),
        // Within a string JSON has none: it is white space between two words of it.
        Style::Json if c == '\r' => out.push(b' '),
        // All of them lie in the plane that four digits reach.
        Style::Json => out.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes()),
    }
}

/// Appends `bytes` as a terminal may have them. What may be the beginning of a character that is
/// cut off at the end is left; returns how many bytes that is.
fn shown(bytes: &[u8], style: Style, out: &mut Vec<u8>) -> usize {
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        for c in chunk.valid().chars() {
            write_char(c, style, out);
        }
        let bad = chunk.invalid();
        let cut_off = || std::str::from_utf8(bad).is_err_and(|e| e.error_len().is_none());
        if chunks.peek().is_none() && !bad.is_empty() && cut_off() {
            return bad.len();
        }
        write_bytes(bad, out);
    }
    0
}

/// A line of text as a terminal may have it, on one line.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\t']) {
        shown(&rest.as_bytes()[..at], Style::Bytes, &mut out);
        out.extend_from_slice(if rest.as_bytes()[at] == b'\n' { b"\\n" } else { b"\\t" });
        rest = &rest[at + 1..];
    }
    shown(rest.as_bytes(), Style::Bytes, &mut out);
    String::from_utf8(out).expect("text was escaped in ASCII")
}

/// Passes on what a terminal may have.
pub(crate) struct Screen<W: Write> {
    sink: W,
    style: Style,
    /// The beginning of a character whose rest comes with the next write.
    begun: Vec<u8>,
}

impl<W: Write> Screen<W> {
    pub fn new(sink: W, style: Style) -> Screen<W> {
        Screen { sink, style, begun: Vec::new() }
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut input = std::mem::take(&mut self.begun);
        input.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(input.len());
        let left = shown(&input, self.style, &mut out);
        self.begun = input.split_off(input.len() - left);
        self.sink.write_all(&out)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        write_bytes(&std::mem::take(&mut self.begun), &mut out);
        self.sink.write_all(&out)?;
        self.sink.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Encoding, unescape};
    use proptest::prelude::*;

    fn screened(parts: &[&[u8]], style: Style) -> Vec<u8> {
        let mut out = Vec::new();
        let mut screen = Screen::new(&mut out, style);
        parts.iter().for_each(|part| screen.write_all(part).unwrap());
        screen.flush().unwrap();
        out
    }

    #[test]
    fn what_acts_is_escaped_and_what_shows_is_not() {
        let text = "a\tb\n🗝é\u{200d}\x1b[0m\r\u{7f}\u{85}\u{202e}";
        let expected = "a\tb\n🗝é\u{200d}\\x1b[0m\\r\\x7f\\xc2\\x85\\xe2\\x80\\xae";
        assert_eq!(screened(&[text.as_bytes()], Style::Bytes), expected.as_bytes());
        let json = "a\tb\n🗝é\u{200d}\\u001b[0m \\u007f\\u0085\\u202e";
        assert_eq!(screened(&[text.as_bytes()], Style::Json), json.as_bytes());
        assert_eq!(one_line("a\nb\t\x1b"), "a\\nb\\t\\x1b");
    }

    #[test]
    fn a_character_cut_off_at_the_end_is_escaped() {
        assert_eq!(screened(&[b"a\xf0\x9f"], Style::Bytes), b"a\\xf0\\x9f");
        assert_eq!(screened(&[b"\xf0\x9f", b"\x97\x9d"], Style::Bytes), "🗝".as_bytes());
        assert_eq!(screened(&[b"\xf0\x9f", b"x"], Style::Bytes), b"\\xf0\\x9fx");
    }

    proptest! {
        #[test]
        fn fields_come_back_wherever_writes_are_cut(bytes: Vec<u8>, cut: prop::sample::Index) {
            let mut field = Vec::new();
            Encoding::Plain.encode_field(&bytes, &mut field);
            let (a, b) = field.split_at(if field.is_empty() { 0 } else { cut.index(field.len()) });
            let out = screened(&[a, b], Style::Bytes);
            prop_assert!(std::str::from_utf8(&out).unwrap().chars().all(|c| !acts(c)));
            let mut back = Vec::new();
            unescape(&out, &mut back).unwrap();
            prop_assert_eq!(back, bytes);
        }
    }
}
