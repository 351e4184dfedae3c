//! Tables read into a sorter, whatever the order of their keys, and past what is damaged.
//!
//! Where the index of a table is damaged its blocks are found without it: they lie one behind the
//! other from the beginning on, and a block ends where the checksum behind it is right.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::block;
use super::coding::masked;
use super::edit::TableMeta;
use super::internal_key::split;
use super::read::Position;
use super::table::{self, FOOTER, TRAILER, Table, TableCursor};
use super::tables::{ends, path_of};
use crate::error::{Error, Lost, Report, Result, shown};
use crate::sort::Sorter;

pub(super) struct Salvage<'a> {
    pub sorter: &'a mut Sorter,
    pub report: &'a mut Report,
    pub position: &'a Position,
    /// Damage is an error: only the order is not what it should be.
    pub strict: bool,
    /// The order is what it should be: there are only too many tables to merge.
    pub is_sorted: bool,
}

impl Salvage<'_> {
    fn lose(&mut self, error: Error) -> Result<()> {
        if self.strict {
            return Err(error);
        }
        self.report.lose(table::lost(error)?);
        Ok(())
    }

    /// A table that the manifest names. What it does not hold of what the manifest says is lost.
    pub fn table_of(&mut self, dir: &Path, meta: &TableMeta) -> Result<()> {
        match path_of(dir, meta.number) {
            Ok(path) => self.read(&path, Some(meta)),
            Err(e) => self.lose_table(e, meta),
        }
    }

    /// Any table.
    pub fn table(&mut self, path: &Path) -> Result<()> {
        self.read(path, None)
    }

    /// Says what the table held that is missing, or is another.
    fn lose_table(&mut self, error: Error, meta: &TableMeta) -> Result<()> {
        let Error::Damaged(mut lost) = error else { return Err(error) };
        let (from, to) = (shown(ends(&meta.smallest).0), shown(ends(&meta.largest).0));
        lost.what += &format!("; it held keys from {from} to {to}");
        self.lose(Error::Damaged(lost))
    }

    fn read(&mut self, path: &Path, meta: Option<&TableMeta>) -> Result<()> {
        let opened = Table::open(path).and_then(|table| TableCursor::new(table, self.is_sorted));
        let mut cursor = match opened {
            Ok(cursor) => cursor,
            Err(e) => {
                self.lose(e)?;
                return self.without_index(path);
            }
        };
        // What the manifest says is compared until something of the table is known to be lost.
        let mut whole = meta;
        if let Some(meta) = whole
            && let Err(e) = cursor.check_size(meta)
        {
            whole = None;
            self.lose_table(e, meta)?;
        }
        let (mut counted, mut is_first, mut ends_right) = (0, true, false);
        loop {
            let step = cursor.advance();
            self.position.add(cursor.read - counted);
            counted = cursor.read;
            let more = match step {
                Ok(more) => more,
                Err(e) => {
                    whole = None;
                    self.lose(e)?;
                    continue;
                }
            };
            let version = (cursor.key(), cursor.tag());
            if let Some(meta) = whole {
                let begins_right = !is_first || more && version == ends(&meta.smallest);
                if !begins_right || !more && !ends_right {
                    whole = None;
                    self.lose_table(cursor.other_keys(), meta)?;
                } else {
                    ends_right = version == ends(&meta.largest);
                }
            }
            if !more {
                return Ok(());
            }
            is_first = false;
            self.sorter.push(cursor.key(), cursor.tag(), cursor.value())?;
        }
    }

    fn without_index(&mut self, path: &Path) -> Result<()> {
        let Ok(file) = File::open(path) else { return Ok(()) };
        let len = file.metadata().map_or(0, |m| m.len());
        let mut blocks = Blocks::new(BufReader::new(file), len.saturating_sub(FOOTER as u64));
        let mut found = 0;
        loop {
            let at = blocks.at;
            match blocks.next() {
                Ok(Some(bytes)) => {
                    self.position.add(blocks.at - at);
                    if !self.block(bytes)? {
                        // Behind all data lie filters, then the names of them: a block that is empty, or whose
                        // keys are none of versions.
                        break;
                    }
                    found += 1;
                }
                Ok(None) => break,
                Err(e) => {
                    self.report.lose(Lost::new(path, at, format!("read: {e}")));
                    break;
                }
            }
        }
        let found = if found == 1 { "1 block was".into() } else { format!("{found} blocks were") };
        let what = format!("{found} found in it without its index, up to byte {}", blocks.at);
        self.report.note(format!("{}: {what}", path.display()));
        Ok(())
    }

    /// Takes the versions of a block, if all that it has are some.
    fn block(&mut self, bytes: Vec<u8>) -> Result<bool> {
        let Ok(bytes) = table::check_and_unpack(bytes) else { return Ok(false) };
        // Twice: nothing is taken of a block that turns out to be another's.
        let mut found = 0;
        for push in [false, true] {
            if push && found == 0 {
                return Ok(false);
            }
            let Ok(mut entries) = block::Entries::new(&bytes[..]) else { return Ok(false) };
            while let Ok(true) = entries.advance() {
                let Some((key, tag)) = split(entries.key()) else { return Ok(false) };
                found += 1;
                if push {
                    self.sorter.push(key, tag, entries.value())?;
                }
            }
        }
        Ok(true)
    }
}

/// Finds blocks by their checksums.
struct Blocks<R> {
    source: R,
    /// Where the next block begins, and where blocks end.
    at: u64,
    end: u64,
    /// What was read behind `at`.
    ahead: Vec<u8>,
}

/// Bytes that are searched for the end of a block; a larger one is not found.
const REACH: usize = 64 << 20;

impl<R: Read> Blocks<R> {
    fn new(source: R, end: u64) -> Blocks<R> {
        Blocks { source, at: 0, end, ahead: Vec::new() }
    }

    /// The next block with its trailer.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (mut crc, mut len) = (0, 0);
        while len < REACH {
            while self.ahead.len() < len + TRAILER {
                if !self.read_on()? {
                    return Ok(None);
                }
            }
            let stored = &self.ahead[len + 1..len + TRAILER];
            let with_kind = crc32c::crc32c_append(crc, &self.ahead[len..=len]);
            if stored == masked(with_kind).to_le_bytes() {
                let rest = self.ahead.split_off(len + TRAILER);
                self.at += (len + TRAILER) as u64;
                return Ok(Some(std::mem::replace(&mut self.ahead, rest)));
            }
            crc = with_kind;
            len += 1;
        }
        Ok(None)
    }

    fn read_on(&mut self) -> io::Result<bool> {
        let left = self.end.saturating_sub(self.at + self.ahead.len() as u64);
        let before = self.ahead.len();
        self.source.by_ref().take(left.min(64 << 10)).read_to_end(&mut self.ahead)?;
        Ok(self.ahead.len() > before)
    }
}
