//! A table: blocks of sorted versions, then a block that says where they are, then a footer of 48
//! bytes that says where that is.
//!
//! ```text
//! table  := (block kind u8 checksum u32)* | footer
//! footer := handle of another index | handle of the index | zeros | magic u64
//! handle := offset varint | size varint
//! ```
//!
//! A checksum is of the block as it is stored, and its kind. The other index names filters, which
//! nobody needs who reads all.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::block;
use super::coding::{Input, checksum};
use super::compression::{MAX_BLOCK, unpack};
use super::edit::TableMeta;
use super::internal_key::split;
use crate::error::{Error, Lost, Result, shown};
use crate::merge::{Tag, order};

/// Bytes at the end of a table.
pub(super) const FOOTER: usize = 48;
pub(super) const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// What newer tables of RocksDB end with.
const MAGIC_OF_ROCKSDB: u64 = 0x88e2_41b7_85f4_cff7;
/// Kind and checksum, behind each block.
pub(super) const TRAILER: usize = 5;

/// Where a block is, without its trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHandle {
    pub offset: u64,
    pub size: u64,
}

impl BlockHandle {
    fn read(input: &mut Input) -> Option<BlockHandle> {
        Some(BlockHandle { offset: input.varint()?, size: input.varint()? })
    }
}

type Block = block::Entries<Vec<u8>>;

/// A table that is open.
pub(super) struct Table {
    path: PathBuf,
    file: File,
    size: u64,
    index: BlockHandle,
}

impl Table {
    /// Opens a table and reads its footer.
    pub fn open(path: &Path) -> Result<Table> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let size = file.metadata().map_err(Error::io("read", path))?.len();
        let mut table =
            Table { path: path.to_owned(), file, size, index: BlockHandle { offset: 0, size: 0 } };
        table.index = table.footer()?;
        Ok(table)
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn damaged(&self, offset: impl Into<Option<u64>>, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, offset, what)
    }

    fn footer(&self) -> Result<BlockHandle> {
        let Some(at) = self.size.checked_sub(FOOTER as u64) else {
            return Err(self.damaged(0, format!("it has {} bytes, too few for a table", self.size)));
        };
        let mut footer = [0; FOOTER];
        self.file.read_exact_at(&mut footer, at).map_err(Error::io("read", &self.path))?;
        let mut input = Input(&footer);
        let handles = BlockHandle::read(&mut input)
            .and_then(|_| BlockHandle::read(&mut input).filter(|_| input.0.len() >= 8));
        match Input(&footer[FOOTER - 8..]).u64() {
            Some(MAGIC) => {}
            Some(MAGIC_OF_ROCKSDB) => return Err(self.damaged(at, "it is a table of RocksDB")),
            _ => return Err(self.damaged(at, "it does not end as a table does")),
        }
        handles.ok_or_else(|| self.damaged(at, "the footer is none"))
    }

    /// The bytes of a block, and how many of the file it took.
    pub fn block(&self, handle: BlockHandle) -> Result<Vec<u8>> {
        let BlockHandle { offset, size } = handle;
        let end = size.checked_add(TRAILER as u64).and_then(|len| offset.checked_add(len));
        // Behind a block there is the footer at least.
        if end.is_none_or(|end| end > self.size - FOOTER as u64) || size > MAX_BLOCK {
            return Err(self.damaged(offset, format!("a block of {size} bytes does not fit in")));
        }
        let mut bytes = vec![0; size as usize + TRAILER];
        self.file.read_exact_at(&mut bytes, offset).map_err(Error::io("read", &self.path))?;
        check_and_unpack(bytes).map_err(|what| self.damaged(offset, what))
    }

    fn entries(&self, handle: BlockHandle) -> Result<Block> {
        block::Entries::new(self.block(handle)?).map_err(|what| self.damaged(handle.offset, what))
    }
}

/// The content of a block that was read with its trailer.
pub(super) fn check_and_unpack(mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let stored = bytes.split_off(bytes.len() - 4);
    if checksum(&[&bytes]) != Input(&stored).u32().unwrap_or_default() {
        return Err("the checksum of a block is wrong".into());
    }
    let kind = bytes.pop().unwrap_or_default();
    if kind == super::compression::NONE {
        return Ok(bytes);
    }
    Ok(unpack(kind, &bytes, MAX_BLOCK)?.into_owned())
}

/// A walk over the versions of a table.
pub(super) struct TableCursor {
    table: Table,
    index: Block,
    /// The present block and where it is.
    block: Option<(Block, u64)>,
    /// Where the blocks that were read end.
    blocks_end: u64,
    /// Length of the user's key, and the tag of the version.
    key_len: usize,
    tag: Tag,
    /// The version before the present one, where order is asked for.
    last: Option<(Vec<u8>, Tag)>,
    is_sorted: bool,
    /// Bytes of the file that were read.
    pub read: u64,
}

impl TableCursor {
    /// `is_sorted`: versions that are not in bytewise order are damage.
    pub fn new(table: Table, is_sorted: bool) -> Result<TableCursor> {
        let index = table.entries(table.index)?;
        let read = table.index.size + TRAILER as u64;
        let (key_len, tag, last, block) = (0, 0, None, None);
        let blocks_end = 0;
        Ok(TableCursor { table, index, block, blocks_end, key_len, tag, last, is_sorted, read })
    }

    /// To the next version. After an error the next call goes on behind what is damaged.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some((block, offset)) = &mut self.block {
                let offset = *offset;
                match block.advance() {
                    Ok(true) => return self.look(offset).map(|()| true),
                    Ok(false) => self.block = None,
                    Err(what) => {
                        self.block = None;
                        return Err(self.table.damaged(offset, what));
                    }
                }
            }
            let at = self.table.index.offset;
            if !self.index.advance().map_err(|what| self.table.damaged(at, what))? {
                return Ok(false);
            }
            let handle = BlockHandle::read(&mut Input(self.index.value()))
                .ok_or_else(|| self.table.damaged(at, "an entry of the index names no block"))?;
            // Each lies behind the one before: nothing is read twice.
            let end = handle.offset.saturating_add(handle.size).saturating_add(TRAILER as u64);
            if handle.offset < self.blocks_end {
                return Err(self.table.damaged(at, "the index names a block that lies in another"));
            }
            self.blocks_end = end;
            self.read = self.read.saturating_add(end - handle.offset);
            let entries = self.table.entries(handle).map_err(|e| self.with_keys(e))?;
            self.block = Some((entries, handle.offset));
        }
    }

    /// Says of a damaged block how far its keys go, which the index knows.
    fn with_keys(&self, error: Error) -> Error {
        match (error, split(self.index.key())) {
            (Error::Damaged(mut lost), Some((key, _))) => {
                lost.what += &format!("; its keys go up to {} at most", shown(key));
                Error::Damaged(lost)
            }
            (other, _) => other,
        }
    }

    /// Looks at the key of the version that the block came to.
    fn look(&mut self, offset: u64) -> Result<()> {
        let wrong = |cursor: &mut TableCursor, what: &str| {
            cursor.block = None;
            Err(cursor.table.damaged(offset, what))
        };
        let Some((block, _)) = &self.block else { return Ok(()) };
        let Some((key, tag)) = split(block.key()) else {
            return wrong(self, "a key of a block is none of a version");
        };
        self.key_len = key.len();
        self.tag = tag;
        if self.is_sorted {
            let is_behind =
                self.last.as_ref().is_none_or(|(k, t)| order((k, *t), (key, tag)).is_lt());
            let last = self.last.get_or_insert_default();
            last.0.clear();
            last.0.extend_from_slice(key);
            last.1 = tag;
            if !is_behind {
                return wrong(self, "keys are not in order");
            }
        }
        Ok(())
    }

    pub fn key(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |(block, _)| &block.key()[..self.key_len])
    }

    pub fn tag(&self) -> Tag {
        self.tag
    }

    pub fn value(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |(block, _)| block.value())
    }

    /// What the table is beside what the manifest says of it.
    pub fn check_size(&self, meta: &TableMeta) -> Result<()> {
        if self.table.size() != meta.size {
            let what = format!("it has {} bytes, by the manifest {}", self.table.size(), meta.size);
            return Err(self.table.damaged(None, what));
        }
        Ok(())
    }

    /// A version that is not where the manifest says.
    pub fn other_keys(&self) -> Error {
        self.table.damaged(None, "it holds other keys than the manifest says")
    }
}

/// For a salvage: which file an error is of.
pub(super) fn lost(error: Error) -> Result<Lost> {
    match error {
        Error::Damaged(lost) => Ok(lost),
        Error::Io { doing, path, source } => {
            Ok(Lost::new(&path, None, format!("{doing}: {source}")))
        }
        other => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::BlockBuilder;
    use super::super::coding::put_varint;
    use super::super::internal_key::tag;
    use super::*;
    use std::io::Write;

    /// A table of some blocks, each of which has ten versions, stored as `pack` makes it.
    fn table(kind: u8, pack: impl Fn(&[u8]) -> Vec<u8>) -> tempfile::NamedTempFile {
        let mut file = Vec::new();
        let mut index = BlockBuilder::new(1);
        let mut write = |block: &[u8], kind: u8| {
            let mut handle = Vec::new();
            put_varint(&mut handle, file.len() as u64);
            put_varint(&mut handle, block.len() as u64);
            file.extend_from_slice(block);
            file.push(kind);
            file.extend_from_slice(&checksum(&[block, &[kind]]).to_le_bytes());
            handle
        };
        for n in 0..5u8 {
            let mut block = BlockBuilder::new(16);
            let key = |m: u8| [&[n, m][..], &tag(3, 1).to_le_bytes()].concat();
            (0..10).for_each(|m| block.add(&key(m), &[n; 50]));
            let handle = write(&pack(&block.finish()), kind);
            index.add(&key(9), &handle);
        }
        let mut footer = [0, 0].to_vec();
        footer.extend(write(&index.finish(), 0));
        footer.resize(FOOTER - 8, 0);
        file.extend(footer);
        file.extend(MAGIC.to_le_bytes());
        let mut out = tempfile::NamedTempFile::new().unwrap();
        out.write_all(&file).unwrap();
        out
    }

    fn count(file: &tempfile::NamedTempFile) -> Result<usize> {
        let mut cursor = TableCursor::new(Table::open(file.path())?, true)?;
        let mut found = 0;
        while cursor.advance()? {
            assert_eq!(cursor.key(), [found / 10, found % 10]);
            assert_eq!((cursor.tag(), cursor.value()), (3 << 8 | 1, &[found / 10; 50][..]));
            found += 1;
        }
        Ok(found.into())
    }

    #[test]
    fn tables_of_every_compression() {
        use flate2::Compression;
        use flate2::write::{DeflateEncoder, ZlibEncoder};
        let zlib = |bytes: &[u8]| {
            let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        };
        let deflate = |bytes: &[u8]| {
            let mut out = DeflateEncoder::new(Vec::new(), Compression::default());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        };
        let snappy = |bytes: &[u8]| snap::raw::Encoder::new().compress_vec(bytes).unwrap();
        assert_eq!(count(&table(0, <[u8]>::to_vec)).unwrap(), 50);
        assert_eq!(count(&table(1, snappy)).unwrap(), 50);
        assert_eq!(count(&table(2, |b| zstd::bulk::compress(b, 3).unwrap())).unwrap(), 50);
        assert_eq!(count(&table(2, zlib)).unwrap(), 50);
        assert_eq!(count(&table(4, deflate)).unwrap(), 50);
        let unknown = count(&table(3, <[u8]>::to_vec)).unwrap_err().to_string();
        assert!(unknown.contains("unknown compression 3"), "{unknown}");
    }

    #[test]
    fn keys_that_do_not_ascend_are_damage() {
        // The first block twice: all are of the same length.
        let file = table(0, <[u8]>::to_vec);
        let mut bytes = std::fs::read(file.path()).unwrap();
        let opened = Table::open(file.path()).unwrap();
        let mut index = opened.entries(opened.index).unwrap();
        assert!(index.advance().unwrap());
        let first = BlockHandle::read(&mut Input(index.value())).unwrap();
        let len = first.size as usize + TRAILER;
        bytes.copy_within(..len, len);
        std::fs::write(file.path(), &bytes).unwrap();
        let error = count(&file).unwrap_err().to_string();
        assert!(error.contains(&format!("byte {len}: keys are not in order")), "{error}");
    }
}
