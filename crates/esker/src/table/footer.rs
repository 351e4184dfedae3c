//! The end of a table: properties of variable length, then a footer of fixed length that says how
//! much of everything lies before it.

use std::sync::Arc;

use super::SegmentRef;
use super::block::PAGE;
use super::dictionary::Dictionary;
use super::index::Geometry;
use super::wire::{Reader, Writer};
use crate::key::{Codec, MAX_KEY_LEN, Seq};

/// "ESKERTBL", the last eight bytes of every table.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"ESKERTBL");
/// The format this build writes and reads.
pub(super) const VERSION: u32 = 1;
/// Bytes of the footer.
pub(super) const FOOTER_LEN: usize = 96;

/// The fixed part. Sections lie one behind the other in the order of the file, so lengths give
/// offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Footer {
    pub number: u64,
    pub data_pages: u32,
    pub blocks: u32,
    pub geometry: Geometry,
    /// Mean offset of a block's first record.
    pub guess_first: u32,
    /// Mean length of a record in 1/256 bytes.
    pub guess_stride: u32,
    pub sums_checksum: u64,
    pub fences_checksum: u64,
    pub props_len: u64,
    pub props_checksum: u64,
}

impl Footer {
    pub fn encode(&self, file_len: u64) -> Vec<u8> {
        let mut w = Writer::default();
        w.u64(self.number);
        w.u64(file_len);
        w.u32(self.data_pages);
        w.u32(self.blocks);
        w.u32(self.geometry.lines);
        w.u8(self.geometry.slot_bits);
        w.u8(self.geometry.place_bits);
        w.u8(0);
        w.u8(0);
        w.u32(self.guess_first);
        w.u32(self.guess_stride);
        w.u64(self.sums_checksum);
        w.u64(self.fences_checksum);
        w.u64(self.props_len);
        w.u64(self.props_checksum);
        w.u32(0);
        w.u32(VERSION);
        let sum = xxhash_rust::xxh3::xxh3_64(&w.bytes);
        w.u64(sum);
        w.u64(MAGIC);
        assert_eq!(w.bytes.len(), FOOTER_LEN);
        w.bytes
    }

    /// Takes the last [`FOOTER_LEN`] bytes of a file of `file_len`.
    pub fn decode(bytes: &[u8], file_len: u64) -> Result<Footer, FooterError> {
        let bad = FooterError::Damaged;
        let mut end = Reader::new(bytes.get(FOOTER_LEN - 20..FOOTER_LEN).ok_or(bad("length"))?);
        let (version, sum, magic) = (end.u32(), end.u64(), end.u64());
        if magic != Some(MAGIC) {
            return Err(bad("no table ends here (magic number)"));
        }
        // Magic and version keep their places in every format; the rest may not.
        if sum != Some(xxhash_rust::xxh3::xxh3_64(&bytes[..FOOTER_LEN - 16])) {
            return Err(bad("footer checksum"));
        }
        match version {
            Some(VERSION) => {}
            Some(v) if v > VERSION => return Err(FooterError::Newer(v)),
            _ => return Err(bad("format version")),
        }
        Footer::fields(bytes, file_len).ok_or(bad("footer"))
    }

    fn fields(bytes: &[u8], file_len: u64) -> Option<Footer> {
        let mut r = Reader::new(bytes);
        let number = r.u64()?;
        if r.u64()? != file_len {
            return None;
        }
        let (data_pages, blocks) = (r.u32()?, r.u32()?);
        let geometry = Geometry { lines: r.u32()?, slot_bits: r.u8()?, place_bits: r.u8()? };
        r.take(2)?;
        let footer = Footer {
            number,
            data_pages,
            blocks,
            geometry,
            guess_first: r.u32()?,
            guess_stride: r.u32()?,
            sums_checksum: r.u64()?,
            fences_checksum: r.u64()?,
            props_len: r.u64()?,
            props_checksum: r.u64()?,
        };
        geometry.is_valid().then_some(footer)
    }
}

/// Why a footer was not taken.
#[derive(Debug)]
pub(super) enum FooterError {
    Damaged(&'static str),
    Newer(u32),
}

/// Where the sections lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub index: u64,
    pub sums: u64,
    pub fences: u64,
    pub props: u64,
    pub footer: u64,
}

impl Layout {
    /// Offsets from lengths; `None` where they are not those of a file.
    pub fn new(f: &Footer, fences_len: u64) -> Option<Layout> {
        let index = u64::from(f.data_pages) * PAGE as u64;
        let sums = index + f.geometry.bytes() as u64;
        let fences = sums + 8 * f.geometry.chunks() as u64;
        let props = fences + fences_len;
        let footer = props.checked_add(f.props_len)?;
        Some(Layout { index, sums, fences, props, footer })
    }
}

/// What a table says of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Properties {
    pub keyspace: u32,
    pub order: String,
    pub entries: u64,
    pub tombstones: u64,
    /// Entries whose sequence is the table's base sequence.
    pub base_entries: u64,
    /// Smallest and largest explicit sequence; both 0 when there is none.
    pub min_seq: Seq,
    pub max_seq: Seq,
    pub keys: u64,
    pub raw_bytes: u64,
    pub max_key_len: u32,
    pub prefix_len: u32,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
    pub dictionary: Option<Arc<Dictionary>>,
    pub references: Vec<SegmentRef>,
}

impl Properties {
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u32(self.keyspace);
        w.string(self.order.as_bytes());
        for n in [self.entries, self.tombstones, self.base_entries, self.min_seq, self.max_seq] {
            w.u64(n);
        }
        w.u64(self.keys);
        w.u64(self.raw_bytes);
        w.u32(self.max_key_len);
        w.u32(self.prefix_len);
        w.string(&self.smallest);
        w.string(&self.largest);
        match &self.dictionary {
            None => w.u8(0),
            Some(d) => {
                w.u8(d.codec() as u8);
                w.string(d.bytes());
            }
        }
        w.u32(self.references.len() as u32);
        for r in &self.references {
            w.u64(r.segment);
            w.u64(r.bytes);
            w.u64(r.count);
        }
        w.bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<Properties> {
        let mut r = Reader::new(bytes);
        let mut p = Properties {
            keyspace: r.u32()?,
            order: std::str::from_utf8(r.string()?).ok()?.to_owned(),
            entries: r.u64()?,
            tombstones: r.u64()?,
            base_entries: r.u64()?,
            min_seq: r.u64()?,
            max_seq: r.u64()?,
            keys: r.u64()?,
            raw_bytes: r.u64()?,
            max_key_len: r.u32()?,
            prefix_len: r.u32()?,
            smallest: r.string()?.to_vec(),
            largest: r.string()?.to_vec(),
            ..Properties::default()
        };
        p.dictionary = match r.u8()? {
            0 => None,
            1 => Some(Dictionary::new(Codec::Lz4, r.string()?)),
            2 => Some(Dictionary::new(Codec::Zstd, r.string()?)),
            _ => return None,
        };
        for _ in 0..r.u32()? {
            p.references.push(SegmentRef { segment: r.u64()?, bytes: r.u64()?, count: r.u64()? });
        }
        let sane = r.is_empty()
            && p.max_key_len as usize <= MAX_KEY_LEN
            && p.prefix_len as usize <= p.smallest.len()
            && p.base_entries <= p.entries
            && p.tombstones <= p.entries
            && p.keys <= p.entries;
        sane.then_some(p)
    }
}
