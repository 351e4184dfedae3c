//! The `--format` flag: which of [`crate::formats`] to read or write.

use std::io::{Read, Write};
use std::path::Path;

use clap::ValueEnum;

use crate::encoding::Encoding;
use crate::exit::{Failure, Outcome};
use crate::formats::jsonl::FieldPath;
use crate::formats::{Limits, ReadEntries, WriteEntries, bin, jsonl, tsv};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Key, tab, value on a line, with escapes
    Tsv,
    /// A JSON object on a line; one of its fields is the key
    Jsonl,
    /// Length-prefixed binary
    Bin,
}

impl Format {
    /// The format that was asked for, or else what the file's name says, or else tsv.
    pub fn pick(asked_for: Option<Format>, file: Option<&Path>) -> Format {
        let by_name = || match file?.extension()?.to_str()? {
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            "bin" => Some(Format::Bin),
            _ => None,
        };
        asked_for.or_else(by_name).unwrap_or(Format::Tsv)
    }

    /// Refuses flags that have no meaning in this format, rather than ignoring them.
    pub fn check(self, has_key: bool, encoding: Encoding) -> Outcome {
        let wrong = |text: &str| Err(Failure::Usage(text.into()));
        match self {
            Format::Bin if encoding != Encoding::Plain => {
                wrong("bin holds bytes as they are; leave out --hex and --base64")
            }
            Format::Tsv | Format::Bin if has_key => {
                wrong("--key names a field of JSON lines; leave it out, or add --format jsonl")
            }
            _ => Ok(()),
        }
    }

    /// A reader of this format. `key` must be given for JSON lines.
    pub fn reader<R: Read + 'static>(
        self,
        source: R,
        key: Option<FieldPath>,
        encoding: Encoding,
        limits: Limits,
    ) -> Box<dyn ReadEntries> {
        match (self, key) {
            (Format::Jsonl, Some(key)) => {
                Box::new(jsonl::Reader::new(source, key, encoding, limits))
            }
            (Format::Bin, _) => Box::new(bin::Reader::new(source, limits)),
            _ => Box::new(tsv::Reader::new(source, encoding, limits)),
        }
    }

    /// A writer of this format.
    pub fn writer<'o, W: Write>(
        self,
        out: &'o mut W,
        key: Option<FieldPath>,
        encoding: Encoding,
    ) -> Box<dyn WriteEntries + 'o> {
        match self {
            Format::Tsv => Box::new(tsv::Writer::new(out, encoding)),
            Format::Jsonl => Box::new(jsonl::Writer::new(out, key, encoding)),
            Format::Bin => Box::new(bin::Writer::new(out)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_file_decides_when_nothing_else_does() {
        let pick = |asked_for, name: &str| Format::pick(asked_for, Some(Path::new(name)));
        assert_eq!(pick(None, "a.jsonl"), Format::Jsonl);
        assert_eq!(pick(None, "a.b.ndjson"), Format::Jsonl);
        assert_eq!(pick(None, "a.bin"), Format::Bin);
        assert_eq!(pick(None, "a.txt"), Format::Tsv);
        assert_eq!(pick(Some(Format::Tsv), "a.bin"), Format::Tsv);
        assert_eq!(Format::pick(None, None), Format::Tsv);
    }
}
