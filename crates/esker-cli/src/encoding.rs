//! How bytes are written as text: escapes, hexadecimal, base64.
//!
//! All functions append to a buffer that the caller keeps, so that a load or a dump of many
//! entries allocates nothing per entry.

use data_encoding::{BASE64, Encoding as Table, HEXLOWER, HEXLOWER_PERMISSIVE};

/// The text form of keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// The bytes themselves; in a line of text with tab, newline, carriage return and backslash
    /// written `\t`, `\n`, `\r` and `\\`; any byte may be written `\x1b`, and is so on a terminal.
    #[default]
    Plain,
    /// Two hexadecimal digits a byte; lower case when written, either when read.
    Hex,
    /// RFC 4648 base64 with padding.
    Base64,
}

impl Encoding {
    /// Appends `bytes` as one field of a line of text: no tab, no newline.
    pub fn encode_field(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Encoding::Plain => escape(bytes, out),
            Encoding::Hex => append(&HEXLOWER, bytes, out),
            Encoding::Base64 => append(&BASE64, bytes, out),
        }
    }

    /// Appends the bytes that the field `text` stands for; an error says what is wrong with it.
    pub fn decode_field(self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Encoding::Plain => unescape(text, out),
            Encoding::Hex | Encoding::Base64 => self.decode_text(text, out),
        }
    }

    /// Appends the bytes that an argument of the command line stands for. Plain is literal here:
    /// a shell has its own escapes, and a second layer of them would surprise.
    pub fn decode_argument(self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Encoding::Plain => {
                out.extend_from_slice(text);
                Ok(())
            }
            Encoding::Hex | Encoding::Base64 => self.decode_text(text, out),
        }
    }

    fn decode_text(self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let (table, name) = match self {
            Encoding::Base64 => (&BASE64, "base64"),
            _ => (&HEXLOWER_PERMISSIVE, "hexadecimal"),
        };
        let start = out.len();
        let room = table
            .decode_len(text.len())
            .map_err(|_| format!("not {name}: {} digits make no whole bytes", text.len()))?;
        out.resize(start + room, 0);
        match table.decode_mut(text, &mut out[start..]) {
            Ok(n) => {
                out.truncate(start + n);
                Ok(())
            }
            Err(e) => {
                out.truncate(start);
                Err(format!("not {name} at character {}", e.error.position + 1))
            }
        }
    }
}

fn append(table: &Table, bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + table.encode_len(bytes.len()), 0);
    table.encode_mut(bytes, &mut out[start..]);
}

/// The letter that follows the backslash for `byte`, if it has to be escaped.
const fn escape_letter(byte: u8) -> Option<u8> {
    match byte {
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\\' => Some(b'\\'),
        _ => None,
    }
}

/// Appends `bytes` with tab, newline, carriage return and backslash escaped.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len());
    let mut plain_from = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        if let Some(letter) = escape_letter(byte) {
            out.extend_from_slice(&bytes[plain_from..i]);
            out.extend_from_slice(&[b'\\', letter]);
            plain_from = i + 1;
        }
    }
    out.extend_from_slice(&bytes[plain_from..]);
}

/// Appends what `text` stands for. Only the escapes that [`escape`] writes are taken, and `\x` with
/// two hexadecimal digits, which terminals are shown: a guess at another one would store bytes that
/// nobody meant.
pub fn unescape(mut text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    out.reserve(text.len());
    while let Some(at) = memchr::memchr(b'\\', text) {
        out.extend_from_slice(&text[..at]);
        if text.get(at + 1) == Some(&b'x') {
            let digits = text.get(at + 2..at + 4).and_then(|d| std::str::from_utf8(d).ok());
            let byte = digits.filter(|d| !d.starts_with('+'));
            let byte = byte.and_then(|d| u8::from_str_radix(d, 16).ok());
            out.push(byte.ok_or("unfinished escape: two hexadecimal digits go behind \\x")?);
            text = &text[at + 4..];
            continue;
        }
        out.push(match text.get(at + 1) {
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b'\\') => b'\\',
            Some(&other) => {
                return Err(format!(
                    "unknown escape `\\{}`; the escapes are \\t \\n \\r \\\\ and \\x00 to \\xff, a \
                     backslash itself is \\\\",
                    other.escape_ascii()
                ));
            }
            None => {
                return Err("unfinished escape: a lone backslash at the end; a backslash itself \
                            is \\\\"
                    .into());
            }
        });
        text = &text[at + 2..];
    }
    out.extend_from_slice(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(encoding: Encoding, text: &str) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        encoding.decode_field(text.as_bytes(), &mut out).map(|()| out)
    }

    #[test]
    fn known_forms() {
        let mut out = Vec::new();
        Encoding::Plain.encode_field(b"a\tb\nc\rd\\e\x00\xff", &mut out);
        assert_eq!(out, b"a\\tb\\nc\\rd\\\\e\x00\xff");
        out.clear();
        Encoding::Hex.encode_field(b"\x00\xffA", &mut out);
        assert_eq!(out, b"00ff41");
        out.clear();
        Encoding::Base64.encode_field(b"\x00\xffA", &mut out);
        assert_eq!(out, b"AP9B");
        assert_eq!(decoded(Encoding::Hex, "00fF41").unwrap(), b"\x00\xffA");
    }

    #[test]
    fn bad_text_is_named() {
        assert!(decoded(Encoding::Plain, "ab\\").unwrap_err().contains("unfinished escape"));
        assert!(decoded(Encoding::Plain, "a\\q41").unwrap_err().contains("`\\q`"));
        assert_eq!(decoded(Encoding::Plain, "a\\x41\\xFf").unwrap(), b"aA\xff");
        for bad in ["\\x", "\\x4", "\\x4g", "\\x+4", "\\x4\\n"] {
            assert!(
                decoded(Encoding::Plain, bad).unwrap_err().contains("two hexadecimal"),
                "{bad}"
            );
        }
        assert!(decoded(Encoding::Hex, "abc").unwrap_err().contains("hexadecimal"));
        assert!(decoded(Encoding::Hex, "zz").unwrap_err().contains("character 1"));
        assert!(decoded(Encoding::Base64, "AP9").unwrap_err().contains("base64"));
        assert!(decoded(Encoding::Base64, "A*9B").unwrap_err().contains("character 2"));
    }

    #[test]
    fn an_error_leaves_what_was_in_the_buffer() {
        let mut out = b"kept".to_vec();
        assert!(Encoding::Hex.decode_field(b"00zz", &mut out).is_err());
        assert_eq!(out, b"kept");
    }

    #[test]
    fn plain_arguments_are_literal() {
        let mut out = Vec::new();
        Encoding::Plain.decode_argument(b"a\\tb\\", &mut out).unwrap();
        assert_eq!(out, b"a\\tb\\");
    }

    proptest! {
        #[test]
        fn fields_round_trip(bytes: Vec<u8>) {
            for encoding in [Encoding::Plain, Encoding::Hex, Encoding::Base64] {
                let mut text = b"x".to_vec();
                encoding.encode_field(&bytes, &mut text);
                prop_assert!(!text.iter().any(|b| b"\t\n\r".contains(b)));
                let mut back = b"y".to_vec();
                encoding.decode_field(&text[1..], &mut back).unwrap();
                prop_assert_eq!(&back[1..], &bytes[..]);
            }
        }

        #[test]
        fn any_text_is_an_answer_or_an_error(text: Vec<u8>) {
            for encoding in [Encoding::Plain, Encoding::Hex, Encoding::Base64] {
                let _ = encoding.decode_field(&text, &mut Vec::new());
            }
        }
    }
}
