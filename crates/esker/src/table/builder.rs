//! Writes a table, front to back in large writes.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::TableOptions;
use super::block::{PAGE, tag};
use super::block_builder::{Added, BlockBuilder, BlockEntry};
use super::codec::Compressor;
use super::dictionary::SAMPLE;
use super::footer::{FOOTER_LEN, Footer, Properties};
use super::hash_index::{self, Geometry, Keyed};
use super::tally::EntryTally;
use super::wire::{ONLY, checksum};
use crate::env::{Env, File, OpenMode};
use crate::error::{Error, Result};
use crate::key::{
    Codec, KeyOrder, Kind, MAX_KEY_LEN, MAX_VALUE_LEN, Seq, Stored, TableMeta, key_hash,
};
use crate::util::abbreviated_key::{Heads, common_prefix};

/// The file is written in pieces of this many bytes, each at a multiple of it: file systems with
/// large folios then keep each piece in one, and a mapping of the file needs one entry of the
/// address cache for it instead of 512 (`docs/design/table.md`).
const WRITE: usize = 2 << 20;

/// Takes entries in order and makes a table of them.
pub(crate) struct TableBuilder {
    file: Arc<dyn File>,
    path: PathBuf,
    options: TableOptions,
    packer: Compressor,
    blocks: Blocks,
    /// Bytes in the file.
    written: u64,
    last_key: Vec<u8>,
    last_seq: Seq,
    tally: EntryTally,
}

/// The data blocks, and what is gathered while they are laid out.
struct Blocks {
    /// The table's.
    number: u64,
    /// The block to come.
    block: BlockBuilder,
    /// Finished bytes, not yet in the file.
    out: Vec<u8>,
    /// Pages of finished blocks.
    pages: u32,
    block_index: BlockIndexBuilder,
    /// Newest versions, for the hash index; empty for a custom order.
    keyed: Vec<Keyed>,
    /// How many of `keyed` have their page: those of finished blocks.
    placed: usize,
    max_slot: u32,
    /// Sum of the offsets of the blocks' first records, and of the records' lengths.
    first_offsets: u64,
    record_bytes: u64,
}

/// First keys of finished blocks. The table's prefix is known only at the end.
#[derive(Default)]
struct BlockIndexBuilder {
    keys: Vec<u8>,
    ends: Vec<usize>,
    pages: Vec<u32>,
}

impl TableBuilder {
    /// Begins a table in a new file.
    pub(crate) fn new(
        env: &Arc<dyn Env>,
        path: &Path,
        number: u64,
        options: TableOptions,
    ) -> Result<TableBuilder> {
        assert!(
            options.block_size.is_multiple_of(PAGE)
                && (1..=16).contains(&(options.block_size / PAGE))
        );
        let file =
            env.open(path, OpenMode::CreateNew).map_err(|e| Error::io("create table", path, e))?;
        let packer = Compressor::new(options.compression, options.dictionary.clone());
        let props = Properties {
            keyspace: options.keyspace,
            order: options.order.name().to_owned(),
            dictionary: options.dictionary.clone(),
            ..Properties::default()
        };
        Ok(TableBuilder {
            file,
            path: path.to_path_buf(),
            packer,
            blocks: Blocks {
                number,
                block: BlockBuilder::new(options.block_size),
                out: Vec::with_capacity(WRITE + (128 << 10)),
                pages: 0,
                block_index: BlockIndexBuilder::default(),
                keyed: Vec::new(),
                placed: 0,
                max_slot: 0,
                first_offsets: 0,
                record_bytes: 0,
            },
            written: 0,
            last_key: Vec::new(),
            last_seq: 0,
            tally: EntryTally::new(props),
            options,
        })
    }

    /// Adds an entry: keys ascending, versions of a key newest first, one without a sequence
    /// (whose sequence is the table's base) last.
    ///
    /// # Errors
    /// When the order is not kept: what the entries come from is damaged in a way that no checksum
    /// shows, or a compaction went wrong. Neither may become a table.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        seq: Option<Seq>,
        kind: Kind,
        value: Stored<'_>,
    ) -> Result<()> {
        if key.len() > MAX_KEY_LEN {
            return Err(Error::KeyTooLong { len: key.len() });
        }
        let new_key = self.check_order(key, seq)?;
        let (value_tag, payload) = self.packer.encode(kind, value)?;
        let tag = kind as u8 | value_tag | if seq.is_some() { tag::HAS_SEQ } else { 0 };
        let entry = BlockEntry { key, tag, seq: seq.unwrap_or(0), payload };
        let hash = self.options.order.equal_means_same_bytes() && new_key;
        self.blocks.add(entry, hash.then(|| key_hash(key)));
        self.tally.add(key, new_key, seq, kind, value);
        if self.blocks.out.len() >= WRITE {
            self.write_pieces()?;
        }
        Ok(())
    }

    /// Whether the key is a new one.
    fn check_order(&mut self, key: &[u8], seq: Option<Seq>) -> Result<bool> {
        let seq = seq.unwrap_or(0);
        let side = if self.tally.props.entries == 0 {
            Ordering::Less
        } else {
            self.options.order.compare(&self.last_key, key)
        };
        match side {
            Ordering::Less => {
                self.last_key.clear();
                self.last_key.extend_from_slice(key);
            }
            Ordering::Equal if seq < self.last_seq => {}
            Ordering::Equal | Ordering::Greater => {
                let what = "what it is made from holds entries out of order";
                let doubt = self.options.order.doubt();
                return Err(Error::corrupt(&self.path, 0, format!("{what}{doubt}")));
            }
        }
        self.last_seq = seq;
        Ok(side.is_lt())
    }

    /// Whether a packed value can be added as it is: it is packed the way this table packs. A short
    /// one that was packed without a dictionary is not, where there is one.
    pub(crate) fn accepts(&self, value: &Stored<'_>) -> bool {
        match value {
            Stored::Compressed { codec, dict, raw_len, .. } => {
                let ours = self.packer.dictionary().map_or(0, |d| d.id());
                let long = *raw_len as usize > SAMPLE;
                self.packer.codec() == Some(*codec) && (*dict == ours || *dict == 0 && long)
            }
            _ => true,
        }
    }

    /// Length of the file if it were finished now, in bytes, nearly.
    pub(crate) fn size_estimate(&self) -> u64 {
        let index = self.blocks.keyed.len() as u64 * 16 / 3;
        self.written
            + (self.blocks.out.len() + self.blocks.block.len()) as u64
            + index
            + self.blocks.block_index.pages.len() as u64 * 12
            + FOOTER_LEN as u64
    }

    /// Completes the file and makes it durable (its name in the directory is the caller's to sync). The base
    /// sequence counts as 0: see [`TableMeta::based_on`].
    ///
    /// # Panics
    /// When there is no entry: an empty table is none.
    pub(crate) fn finish(mut self) -> Result<TableMeta> {
        assert!(self.tally.props.entries > 0, "an empty table is not finished");
        self.blocks.finish();
        let largest = std::mem::take(&mut self.last_key);
        let mut props = std::mem::take(&mut self.tally).finish(largest);
        let prefix = shared_by_keys(&self.options.order, &props);
        props.prefix_len = prefix as u32;

        let none = Geometry { lines: 0, slot_bits: 0, place_bits: 0 };
        let keyed = &self.blocks.keyed;
        let (geometry, lines) =
            Geometry::choose(keyed.len(), self.blocks.pages - 1, self.blocks.max_slot)
                .and_then(|g| Some((g, hash_index::build(keyed, &g)?)))
                .unwrap_or((none, Vec::new()));
        let data_end = self.blocks.out.len();
        self.blocks.out.extend(lines);
        let sums = chunk_sums(&self.blocks.out[data_end..], self.blocks.number);
        self.blocks.out.extend_from_slice(&sums);
        let block_index = self.blocks.block_index.encode(&self.options.order, prefix);
        self.blocks.out.extend_from_slice(&block_index);
        let section = props.encode();
        self.blocks.out.extend_from_slice(&section);
        let blocks = self.blocks.block_index.pages.len() as u64;
        let footer = Footer {
            number: self.blocks.number,
            data_pages: self.blocks.pages,
            blocks: blocks as u32,
            geometry,
            guess_first: (self.blocks.first_offsets / blocks) as u32,
            guess_stride: (self.blocks.record_bytes * 256 / props.entries).min(u64::from(u32::MAX))
                as u32,
            sums_checksum: checksum(&sums, self.blocks.number, ONLY),
            block_index_checksum: checksum(&block_index, self.blocks.number, ONLY),
            props_len: section.len() as u64,
            props_checksum: checksum(&section, self.blocks.number, ONLY),
        };
        let size = self.written + (self.blocks.out.len() + FOOTER_LEN) as u64;
        let footer = footer.encode(size);
        self.blocks.out.extend_from_slice(&footer);
        self.write_out()?;
        self.file.sync().map_err(|e| Error::io("sync table", &self.path, e))?;
        Ok(props.meta(self.blocks.number, size, 0))
    }

    /// Writes what makes whole pieces; what is left over goes with the next one.
    fn write_pieces(&mut self) -> Result<()> {
        let whole = self.blocks.out.len() / WRITE * WRITE;
        self.write_first(whole)
    }

    /// Writes all there is.
    fn write_out(&mut self) -> Result<()> {
        self.write_pieces()?;
        self.write_first(self.blocks.out.len())
    }

    fn write_first(&mut self, len: usize) -> Result<()> {
        for piece in self.blocks.out[..len].chunks(WRITE) {
            self.file
                .write_all_at(piece, self.written)
                .map_err(|e| Error::io("write table", &self.path, e))?;
            self.file.begin_sync(self.written, piece.len() as u64);
            self.written += piece.len() as u64;
        }
        self.blocks.out.drain(..len);
        Ok(())
    }
}

impl Blocks {
    /// Adds an entry; `hash` when the hash index has to know it.
    fn add(&mut self, entry: BlockEntry<'_>, hash: Option<u64>) {
        if self.block.add(entry) == Added::BlockFull {
            self.finish();
            // A lone entry always fits.
            assert_eq!(self.block.add(entry), Added::Yes);
        }
        if let Some(hash) = hash {
            let slot = self.block.count() as u32 - 1;
            self.max_slot = self.max_slot.max(slot);
            self.keyed.push(Keyed { hash, page: 0, slot });
        }
    }

    /// Lays out the block and places the keys that are in it.
    fn finish(&mut self) {
        self.block_index.keys.extend_from_slice(self.block.first_key());
        self.block_index.ends.push(self.block_index.keys.len());
        self.block_index.pages.push(self.pages);
        for k in &mut self.keyed[self.placed..] {
            k.page = self.pages;
        }
        self.placed = self.keyed.len();
        let done = self.block.finish(self.number, u64::from(self.pages), &mut self.out);
        self.first_offsets += done.first as u64;
        self.record_bytes += done.records as u64;
        let pages = u64::from(self.pages) + done.pages as u64;
        self.pages = u32::try_from(pages).expect("a table is under 16 TiB");
    }
}

impl BlockIndexBuilder {
    fn encode(&self, order: &KeyOrder, prefix: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(12 * self.pages.len());
        if order.equal_means_same_bytes() {
            let heads = Heads::new(order);
            let mut start = 0;
            for &end in &self.ends {
                let head = heads.head(&self.keys[start..end], prefix);
                out.extend(head.to_le_bytes());
                start = end;
            }
        }
        out.extend(self.pages.iter().flat_map(|p| p.to_le_bytes()));
        out
    }
}

/// What all keys begin with, in bytes, of properties that have the first and the last of them.
pub(super) fn shared_by_keys(order: &KeyOrder, props: &Properties) -> usize {
    match order {
        KeyOrder::Custom(_) => 0,
        _ => common_prefix(&props.smallest, &props.largest),
    }
}

/// One checksum per chunk of the index.
fn chunk_sums(index: &[u8], number: u64) -> Vec<u8> {
    index
        .chunks(hash_index::CHUNK)
        .enumerate()
        .flat_map(|(i, c)| checksum(c, number, i as u64).to_le_bytes())
        .collect()
}

impl Compressor {
    /// Encoding bits of the tag, and bytes of a value to be stored.
    fn encode<'a>(&'a mut self, kind: Kind, value: Stored<'a>) -> Result<(u8, &'a [u8])> {
        if kind == Kind::Delete {
            return Ok((tag::RAW, &[]));
        }
        match value {
            Stored::Inline(bytes) => {
                if bytes.len() > MAX_VALUE_LEN {
                    return Err(Error::ValueTooLong { len: bytes.len() });
                }
                let dict = if self.dictionary().is_some() { tag::DICT } else { 0 };
                let codec = self.codec();
                match self.compress(bytes) {
                    Some(compressed) => Ok((codec_tag(codec) | dict, compressed)),
                    None => Ok((tag::RAW, bytes)),
                }
            }
            Stored::Compressed { codec, dict, raw_len, bytes } => {
                let ours = self.dictionary().map_or(0, |d| d.id());
                if dict != 0 && dict != ours {
                    let what = "a packed value needs another dictionary than the table's";
                    return Err(Error::Internal { what: what.to_string() });
                }
                let dict = if dict != 0 { tag::DICT } else { 0 };
                let compressed = self.pass_through(raw_len, bytes);
                Ok((codec_tag(Some(codec)) | dict, compressed))
            }
            Stored::Pointer(p) => Ok((tag::POINTER, self.hold(&p.encode()))),
        }
    }
}

fn codec_tag(codec: Option<Codec>) -> u8 {
    match codec {
        None => tag::RAW,
        Some(Codec::Lz4) => tag::LZ4,
        Some(Codec::Zstd) => tag::ZSTD,
    }
}
