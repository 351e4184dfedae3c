//! The `--format` flag: which of [`crate::formats`] to read or write.

use std::io::{Read, Write};
use std::path::Path;

use clap::ValueEnum;

use crate::encoding::Encoding;
use crate::exit::{Failure, Outcome};
use crate::formats::all::{ReadKeyspaces, WriteKeyspaces};
use crate::formats::columns::Columns;
use crate::formats::jsonl::FieldPath;
use crate::formats::{Limits, ReadEntries, WriteEntries, bin, csv, dbdump, jsonl, tsv};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Key, tab, value on a line, with escapes
    Tsv,
    /// Comma-separated, with quotes and a header
    Csv,
    /// A JSON object on a line; one of its fields is the key
    Jsonl,
    /// Length-prefixed binary
    Bin,
    /// The text of mdb_dump and db_dump
    Dbdump,
}

/// What was said about the input beside its format.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Field or column of the key and of the value.
    pub key: Option<String>,
    pub value: Option<String>,
    /// Whether the first row is a header, if that was said.
    pub header: Option<bool>,
    pub delimiter: Option<u8>,
    pub encoding: Encoding,
}

fn wrong<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Usage(text.into()))
}

/// A delimiter of CSV on the command line.
pub(crate) fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [b'"' | b'\n' | b'\r'] => Err("a quote or the end of a line delimits no fields".into()),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("one ASCII character is wanted, such as ; or \\t".into()),
    }
}

fn field(flag: &str, path: &str) -> Result<FieldPath, Failure> {
    path.parse().or_else(|why| wrong(format!("{flag} {path:?}: {why}")))
}

impl Format {
    /// The format that was asked for, or else what the file's name says, or else tsv.
    pub fn pick(asked_for: Option<Format>, file: Option<&Path>) -> Format {
        let by_name = || match file?.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            "bin" => Some(Format::Bin),
            "dbdump" => Some(Format::Dbdump),
            _ => None,
        };
        asked_for.or_else(by_name).unwrap_or(Format::Tsv)
    }

    /// Refuses an encoding that has no meaning in this format, rather than ignoring it.
    pub fn check_encoding(self, encoding: Encoding) -> Outcome {
        let has_own = match self {
            Format::Bin => "bin holds bytes as they are",
            Format::Dbdump => "dbdump has an encoding of its own",
            Format::Tsv | Format::Csv | Format::Jsonl => return Ok(()),
        };
        if encoding != Encoding::Plain {
            return wrong(format!("{has_own}; leave out --hex and --base64"));
        }
        Ok(())
    }

    /// Refuses formats that hold the entries of one keyspace only.
    pub fn check_all(self) -> Outcome {
        match self {
            Format::Tsv | Format::Bin | Format::Dbdump => Ok(()),
            Format::Csv | Format::Jsonl => wrong("--all is of the formats tsv, bin and dbdump"),
        }
    }

    /// A reader of this format. Refuses what has no meaning in it.
    pub fn reader<R: Read + 'static>(
        self,
        source: R,
        choice: &Choice,
        limits: Limits,
    ) -> Result<Box<dyn ReadEntries>, Failure> {
        let Choice { key, value, header, delimiter, encoding } = choice;
        self.check_encoding(*encoding)?;
        if self != Format::Csv && delimiter.is_some() {
            return wrong("--delimiter is of CSV; leave it out, or add --format csv");
        }
        if matches!(self, Format::Jsonl | Format::Bin | Format::Dbdump) && header.is_some() {
            return wrong("a header is of tables; leave it out, or add --format csv or tsv");
        }
        let chosen = key.is_some() || value.is_some();
        match self {
            Format::Bin | Format::Dbdump if chosen => {
                let name = if self == Format::Bin { "bin" } else { "dbdump" };
                wrong(format!(
                    "{name} holds keys and values and nothing else; leave out --key and --value"
                ))
            }
            Format::Dbdump => Ok(Box::new(dbdump::Reader::new(source, limits))),
            Format::Bin => Ok(Box::new(bin::Reader::new(source, limits))),
            Format::Jsonl => {
                let Some(key) = key else {
                    return wrong(
                        "a load of jsonl needs --key FIELD, the field that holds the key",
                    );
                };
                let key = field("--key", key)?;
                let value = value.as_ref().map(|path| field("--value", path)).transpose()?;
                let reader = jsonl::Reader::new(source, key, *encoding, limits);
                Ok(Box::new(reader.with_value(value)))
            }
            Format::Tsv | Format::Csv => {
                let header = header.unwrap_or(self == Format::Csv);
                for (flag, column) in [("--key", key), ("--value", value)] {
                    if let Some(column) = column
                        && !header
                        && column.parse::<usize>().is_err()
                    {
                        return wrong(format!(
                            "{flag} {column} names a column, and without a header columns have \
                             numbers, from 1; --header says that the first line has names, and \
                             JSON lines are --format jsonl"
                        ));
                    }
                }
                let columns = Columns { key: key.clone(), value: value.clone(), header };
                if self == Format::Csv {
                    let delimiter = delimiter.unwrap_or(b',');
                    return Ok(Box::new(csv::Reader::new(
                        source, delimiter, columns, *encoding, limits,
                    )));
                }
                let reader = tsv::Reader::new(source, *encoding, limits);
                // A file of two columns and no header has messages of its own.
                let plain = !chosen && !header;
                Ok(Box::new(if plain { reader } else { reader.with_columns(columns) }))
            }
        }
    }

    /// A reader of a dump of all keyspaces.
    pub fn reader_of_all<R: Read + 'static>(
        self,
        source: R,
        encoding: Encoding,
        limits: Limits,
    ) -> Result<Box<dyn ReadKeyspaces>, Failure> {
        self.check_all()?;
        self.check_encoding(encoding)?;
        Ok(match self {
            Format::Bin => Box::new(bin::Reader::new(source, limits).of_all()),
            Format::Dbdump => Box::new(dbdump::Reader::new(source, limits).of_all()),
            _ => Box::new(tsv::Reader::new(source, encoding, limits).of_all()),
        })
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
            Format::Csv => Box::new(csv::Writer::new(out, encoding)),
            Format::Jsonl => Box::new(jsonl::Writer::new(out, key, encoding)),
            Format::Bin => Box::new(bin::Writer::new(out)),
            Format::Dbdump => Box::new(dbdump::Writer::new(out)),
        }
    }

    /// A writer of all keyspaces in this format, which has one.
    pub fn writer_of_all<'o, W: Write>(
        self,
        out: &'o mut W,
        encoding: Encoding,
    ) -> Box<dyn WriteKeyspaces + 'o> {
        match self {
            Format::Bin => Box::new(bin::Writer::new(out)),
            Format::Dbdump => Box::new(dbdump::Writer::new(out)),
            _ => Box::new(tsv::Writer::new(out, encoding)),
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
        assert_eq!(pick(None, "a.csv"), Format::Csv);
        assert_eq!(pick(None, "a.bin"), Format::Bin);
        assert_eq!(pick(None, "A.CSV"), Format::Csv);
        assert_eq!(pick(None, "a.txt"), Format::Tsv);
        assert_eq!(pick(Some(Format::Tsv), "a.bin"), Format::Tsv);
        assert_eq!(Format::pick(None, None), Format::Tsv);
    }

    #[test]
    fn delimiters() {
        assert_eq!(parse_delimiter(";"), Ok(b';'));
        assert_eq!(parse_delimiter("\\t"), Ok(b'\t'));
        for bad in ["", "\"", "\n", ";;", "é"] {
            assert!(parse_delimiter(bad).is_err(), "{bad:?}");
        }
    }
}
