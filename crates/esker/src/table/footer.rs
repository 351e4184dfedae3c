//! The end of a table: properties of variable length, then a footer of fixed length that says how
//! much of everything lies before it.

use std::sync::Arc;

use super::SegmentRef;
use super::block::PAGE;
use super::dictionary::Dictionary;
use super::hash_index::Geometry;
use super::wire::{ONLY, SectionReader, SectionWriter, checksum};
use crate::key::{Codec, MAX_KEY_LEN, Seq, TableMeta};

/// "ESKERTBL", the last eight bytes of every table.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"ESKERTBL");
/// The format this build writes and reads.
pub(super) const VERSION: u32 = 3;
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
    pub block_index_checksum: u64,
    pub props_len: u64,
    pub props_checksum: u64,
}

impl Footer {
    pub fn encode(&self, file_len: u64) -> Vec<u8> {
        let mut w = SectionWriter::default();
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
        w.u64(self.block_index_checksum);
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
        let mut end =
            SectionReader::new(bytes.get(FOOTER_LEN - 20..FOOTER_LEN).ok_or(bad("length"))?);
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
            Some(v @ 1..) => return Err(FooterError::OfVersion(v)),
            _ => return Err(bad("format version")),
        }
        Footer::fields(bytes, file_len).ok_or(bad("footer"))
    }

    fn fields(bytes: &[u8], file_len: u64) -> Option<Footer> {
        let mut r = SectionReader::new(bytes);
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
            block_index_checksum: r.u64()?,
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
    OfVersion(u32),
}

/// Where the sections lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub index: u64,
    pub sums: u64,
    pub block_index: u64,
    pub props: u64,
    pub footer: u64,
}

impl Layout {
    /// Offsets from lengths; `None` where they are not those of a file.
    pub fn new(f: &Footer, block_index_len: u64) -> Option<Layout> {
        let index = u64::from(f.data_pages) * PAGE as u64;
        let sums = index + f.geometry.bytes() as u64;
        let block_index = sums + 8 * f.geometry.chunks() as u64;
        let props = block_index + block_index_len;
        let footer = props.checked_add(f.props_len)?;
        Some(Layout { index, sums, block_index, props, footer })
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
    /// What a manifest says of the table. Its entries without a sequence of their own have `base_seq`.
    pub fn meta(&self, number: u64, size: u64, base_seq: Seq) -> TableMeta {
        let (min_seq, max_seq) = match self.base_entries {
            0 => (self.min_seq, self.max_seq),
            n if n == self.entries => (base_seq, base_seq),
            _ => (self.min_seq.min(base_seq), self.max_seq.max(base_seq)),
        };
        TableMeta {
            number,
            size,
            entries: self.entries,
            tombstones: self.tombstones,
            raw_bytes: self.raw_bytes,
            smallest: self.smallest.clone(),
            largest: self.largest.clone(),
            min_seq,
            max_seq,
            base_seq,
            unique_keys: self.keys == self.entries,
            references: self.references.clone(),
        }
    }

    /// Bytes of memory that it takes besides itself and its dictionary.
    pub fn memory(&self) -> usize {
        let keys = self.smallest.len() + self.largest.len();
        self.order.len() + keys + size_of_val(&self.references[..])
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut w = SectionWriter::default();
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
        }
        w.bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<Properties> {
        Properties::decode_first(bytes).filter(|(_, len)| *len == bytes.len()).map(|(p, _)| p)
    }

    /// The properties that `bytes` begin with, and how many bytes they take.
    pub fn decode_first(bytes: &[u8]) -> Option<(Properties, usize)> {
        let mut r = SectionReader::new(bytes);
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
            p.references.push(SegmentRef { segment: r.u64()?, bytes: r.u64()? });
        }
        let sane = p.max_key_len as usize <= MAX_KEY_LEN
            && p.prefix_len as usize <= p.smallest.len()
            && p.base_entries <= p.entries
            && p.tombstones <= p.entries
            && p.keys <= p.entries;
        sane.then(|| (p, bytes.len() - r.left()))
    }

    /// Whether what follows `props` is the footer of a table with these properties, or what is left
    /// of one. Its checksum of them tells; where that is what was damaged, or their length, the
    /// footer's own checksum does, once they are put right.
    pub fn are_vouched_for(props: &[u8], footer: &[u8], number: u64) -> bool {
        let sum = checksum(props, number, ONLY).to_le_bytes();
        if footer.get(64..72) == Some(&sum[..]) {
            return true;
        }
        let Some(said) = footer.get(FOOTER_LEN - 16..FOOTER_LEN - 8) else { return false };
        let mut head = footer[..FOOTER_LEN - 16].to_vec();
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[56..64].copy_from_slice(&(props.len() as u64).to_le_bytes());
        head[64..72].copy_from_slice(&sum);
        xxhash_rust::xxh3::xxh3_64(&head).to_le_bytes() == said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer() -> Footer {
        Footer {
            number: 7,
            data_pages: 3,
            blocks: 2,
            geometry: Geometry { lines: 5, slot_bits: 6, place_bits: 9 },
            guess_first: 30,
            guess_stride: 7000,
            sums_checksum: 11,
            block_index_checksum: 12,
            props_len: 100,
            props_checksum: 13,
        }
    }

    /// The footer with this field changed and the checksum set right.
    fn forged(at: usize, with: &[u8]) -> Vec<u8> {
        let mut bytes = footer().encode(9000);
        bytes[at..at + with.len()].copy_from_slice(with);
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..FOOTER_LEN - 16]);
        bytes[FOOTER_LEN - 16..FOOTER_LEN - 8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    #[test]
    fn a_footer_comes_back_whole_or_not_at_all() {
        let bytes = footer().encode(9000);
        assert_eq!(Footer::decode(&bytes, 9000).unwrap(), footer());
        assert!(Footer::decode(&bytes, 9001).is_err(), "a file of another length");
        assert!(Footer::decode(&bytes[..FOOTER_LEN - 1], 9000).is_err());
        for at in 0..FOOTER_LEN {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                let error = Footer::decode(&bad, 9000).unwrap_err();
                assert!(matches!(error, FooterError::Damaged(_)), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn other_formats_are_told_from_none() {
        let version = |v: u32| Footer::decode(&forged(FOOTER_LEN - 20, &v.to_le_bytes()), 9000);
        assert!(version(VERSION).is_ok());
        for other in [1, VERSION + 1] {
            assert!(matches!(version(other), Err(FooterError::OfVersion(v)) if v == other));
        }
        assert!(matches!(version(0), Err(FooterError::Damaged("format version"))));
    }

    #[test]
    fn an_index_has_no_wider_places_than_entries_hold() {
        // Slot bits and place bits are bytes 28 and 29.
        let bits = |slot: u8, place: u8| Footer::decode(&forged(28, &[slot, place]), 9000).is_ok();
        assert!(bits(6, 28) && bits(9, 9) && bits(0, 0));
        assert!(!bits(6, 29) && !bits(10, 9));
    }

    #[test]
    fn sections_follow_each_other() {
        let layout = Layout::new(&footer(), 24).unwrap();
        let index = 3 * PAGE as u64;
        let sums = index + 5 * 64;
        assert_eq!((layout.index, layout.sums, layout.block_index), (index, sums, sums + 8));
        assert_eq!((layout.props, layout.footer), (sums + 8 + 24, sums + 8 + 24 + 100));
        assert!(Layout::new(&Footer { props_len: u64::MAX, ..footer() }, 24).is_none());
    }

    fn properties() -> Properties {
        Properties {
            keyspace: 3,
            order: "esker.bytewise".to_owned(),
            entries: 10,
            tombstones: 2,
            base_entries: 4,
            min_seq: 5,
            max_seq: 9,
            keys: 8,
            raw_bytes: 1000,
            max_key_len: 20,
            prefix_len: 1,
            smallest: b"ab".to_vec(),
            largest: b"ax".to_vec(),
            dictionary: None,
            references: vec![SegmentRef { segment: 4, bytes: 500 }],
        }
    }

    fn is_taken(change: impl Fn(&mut Properties)) -> bool {
        let mut p = properties();
        change(&mut p);
        Properties::decode(&p.encode()).is_some()
    }

    #[test]
    fn properties_come_back_and_have_no_more_bytes() {
        for codec in [None, Some(Codec::Lz4), Some(Codec::Zstd)] {
            let dictionary = codec.map(|c| Dictionary::new(c, b"some bytes"));
            let bytes = Properties { dictionary, ..properties() }.encode();
            let p = Properties::decode(&bytes).unwrap();
            assert_eq!(p.encode(), bytes);
            assert_eq!(p.dictionary.map(|d| d.codec()), codec);
            for cut in 0..bytes.len() {
                assert!(Properties::decode(&bytes[..cut]).is_none(), "cut at {cut}");
            }
            assert!(Properties::decode(&[&bytes[..], &[0]].concat()).is_none());
        }
    }

    #[test]
    fn entries_without_a_sequence_have_that_of_the_table() {
        let seqs = |base_entries: u64| {
            [0, 7, 20].map(|base_seq| {
                let m = Properties { base_entries, ..properties() }.meta(3, 4096, base_seq);
                assert_eq!(m.base_seq, base_seq);
                (m.min_seq, m.max_seq)
            })
        };
        assert_eq!(seqs(0), [(5, 9); 3]);
        assert_eq!(seqs(4), [(0, 9), (5, 9), (5, 20)]);
        assert_eq!(seqs(10), [(0, 0), (7, 7), (20, 20)]);
    }

    #[test]
    fn properties_agree_with_each_other() {
        assert!(is_taken(|p| p.max_key_len = MAX_KEY_LEN as u32));
        assert!(!is_taken(|p| p.max_key_len = MAX_KEY_LEN as u32 + 1));
        assert!(is_taken(|p| p.prefix_len = 2));
        assert!(!is_taken(|p| p.prefix_len = 3));
        let counts: [fn(&mut Properties, u64); 3] =
            [|p, n| p.base_entries = n, |p, n| p.tombstones = n, |p, n| p.keys = n];
        for set in counts {
            assert!(is_taken(|p| set(p, 0)));
            assert!(is_taken(|p| set(p, 10)));
            assert!(!is_taken(|p| set(p, 11)));
        }
    }
}
