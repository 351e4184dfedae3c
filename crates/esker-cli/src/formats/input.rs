//! Lines of any bytes, read with a limit so that a file without newlines cannot fill the memory.

use std::io::{self, BufRead, BufReader, Read};

/// Bytes asked of the source at a time: large enough that system calls do not show.
const BUFFER_BYTES: usize = 256 << 10;

/// What [`Lines::next_line`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// A line; its newline is dropped. The last line of an input may lack one.
    Whole,
    /// A line over the limit. It was read to its end and dropped.
    TooLong,
    /// No more lines.
    End,
}

pub(super) struct Lines<R: Read> {
    source: BufReader<R>,
    /// Number of the line that was read last, from 1.
    pub number: u64,
    max_bytes: usize,
}

impl<R: Read> Lines<R> {
    pub fn new(source: R, max_bytes: usize) -> Self {
        Lines { source: BufReader::with_capacity(BUFFER_BYTES, source), number: 0, max_bytes }
    }

    /// Replaces `line` with the next line.
    pub fn next_line(&mut self, line: &mut Vec<u8>) -> io::Result<Line> {
        line.clear();
        let mut result = Line::End;
        loop {
            let chunk = match self.source.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if chunk.is_empty() {
                break;
            }
            if result == Line::End {
                self.number += 1;
                result = Line::Whole;
            }
            let newline = memchr::memchr(b'\n', chunk);
            let part = &chunk[..newline.unwrap_or(chunk.len())];
            if result == Line::Whole {
                if line.len() + part.len() > self.max_bytes {
                    result = Line::TooLong;
                    line.clear();
                } else {
                    line.extend_from_slice(part);
                }
            }
            let used = part.len() + usize::from(newline.is_some());
            self.source.consume(used);
            if newline.is_some() {
                break;
            }
        }
        Ok(result)
    }
}

/// Text as programs for tables save it: a byte order mark at the start is dropped, and UTF-16 is an
/// error that says so.
pub(super) struct Unmarked<R: Read> {
    source: R,
    /// The first bytes, until they were looked at and handed on.
    head: Option<io::Cursor<Vec<u8>>>,
}

impl<R: Read> Unmarked<R> {
    pub fn new(source: R) -> Self {
        Unmarked { source, head: None }
    }

    fn head(&mut self) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        (&mut self.source).take(4).read_to_end(&mut head)?;
        if matches!(head[..], [0xff, 0xfe, _, 0] | [0xfe, 0xff, 0, _]) {
            let what = "this is UTF-16; save it as UTF-8, or convert it with iconv";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if head.starts_with("\u{feff}".as_bytes()) {
            head.drain(..3);
        }
        Ok(head)
    }
}

impl<R: Read> Read for Unmarked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.head.is_none() {
            self.head = Some(io::Cursor::new(self.head()?));
        }
        match self.head.as_mut().map_or(Ok(0), |head| head.read(buf))? {
            0 => self.source.read(buf),
            n => Ok(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Dribble;
    use super::*;

    #[test]
    fn marks_are_dropped_and_utf_16_is_named() {
        for (bytes, expected) in [
            (&b"\xef\xbb\xbfab"[..], Some(&b"ab"[..])),
            (b"\xef\xbb", Some(b"\xef\xbb")),
            (b"abcdefgh", Some(b"abcdefgh")),
            (b"\xef\xbb\xbf", Some(b"")),
            (b"", Some(b"")),
            (b"\xff\xfea\0b\0", None),
            (b"\xfe\xff\0a", None),
            (b"\xff\xfeab", Some(b"\xff\xfeab")),
        ] {
            let mut out = Vec::new();
            let read = Unmarked::new(Dribble(bytes)).read_to_end(&mut out);
            assert_eq!(read.ok().map(|_| &out[..]), expected, "{bytes:?}");
        }
    }

    #[test]
    fn lines_with_and_without_the_last_newline() {
        for (text, expected) in [
            ("", vec![]),
            ("\n", vec![""]),
            ("a", vec!["a"]),
            ("a\n", vec!["a"]),
            ("a\n\nbcdefgh\ni", vec!["a", "", "bcdefgh", "i"]),
        ] {
            let mut lines = Lines::new(Dribble(text.as_bytes()), 100);
            let (mut line, mut found) = (Vec::new(), Vec::new());
            while lines.next_line(&mut line).unwrap() != Line::End {
                found.push(String::from_utf8(line.clone()).unwrap());
            }
            assert_eq!(found, expected, "{text:?}");
            assert_eq!(lines.number, expected.len() as u64);
        }
    }

    #[test]
    fn a_long_line_is_dropped_and_the_next_one_read() {
        let text = format!("{}\nok\n", "x".repeat(1000));
        let mut lines = Lines::new(Dribble(text.as_bytes()), 10);
        let mut line = Vec::new();
        assert_eq!(lines.next_line(&mut line).unwrap(), Line::TooLong);
        assert!(line.capacity() < 1000);
        assert_eq!(lines.next_line(&mut line).unwrap(), Line::Whole);
        assert_eq!((line.as_slice(), lines.number), (&b"ok"[..], 2));
        assert_eq!(lines.next_line(&mut line).unwrap(), Line::End);
    }
}
