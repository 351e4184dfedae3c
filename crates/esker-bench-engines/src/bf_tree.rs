//! Bf-Tree: a B-tree whose hot records live in pages of variable size in a ring of memory.
//!
//! What it has no call for: compaction, transactions and batches (entries of a batch go in one by one), scans
//! from the end, empty values, values larger than half a page. What it writes is lost when the
//! process is killed: a store is opened again from the snapshot that closing takes. It has a log,
//! but its crate calls recovery from it incomplete, so nothing here is class F.

use crate::versions;
use anyhow::{Context, Result, anyhow, bail};
use bf_tree::{LeafInsertResult, LeafReadResult, ScanReturnField, StorageBackend};
use esker_bench::engine::{
    Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Unsupported, Writer,
};
use std::path::{Path, PathBuf};

/// The longest key that is let in: those of the benchmark are shorter.
const KEY_BYTES_MAX: usize = 128;

/// The shortest record.
const RECORD_BYTES_MIN: usize = 4;

/// Its default.
const PAGE_BYTES: usize = 4096;

/// A tree, its pages in a file.
pub struct BfTree {
    tree: bf_tree::BfTree,
    dir: PathBuf,
}

/// The file that a tree works in.
const LIVE: &str = "live.bftree";

/// The snapshot that closing leaves.
const CLOSED: &str = "closed.bftree";

/// The largest record that its checks of the configuration allow: two of them, the fences (twice
/// the longest key) and headers must fit into a page.
const RECORD_BYTES_MAX: usize = (PAGE_BYTES - 2 * KEY_BYTES_MAX - 256) / 2;

/// The ring's size must be a power of two.
fn ring_bytes(memory: u64) -> usize {
    let power = if memory.is_power_of_two() { memory } else { memory.next_power_of_two() / 2 };
    (power as usize).max(1 << 20)
}

impl Engine for BfTree {
    type Writer<'a> = BfTreeWriter<'a>;
    type Reader<'a> = BfTreeReader<'a>;

    fn version() -> Result<String> {
        versions::of("bf-tree")
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        if config.sync == Sync::Synced {
            let why = "the engine has no finished recovery from its log, so no durable writes";
            return Err(Unsupported::new(why).into());
        }
        std::fs::create_dir_all(dir)?;
        let (live, closed) = (dir.join(LIVE), dir.join(CLOSED));
        let ring = ring_bytes(config.memory);
        let tree = if closed.exists() {
            // From here on the tree writes into that file, and only closing makes it whole again.
            std::fs::rename(&closed, &live)?;
            bf_tree::BfTree::new_from_cpr_snapshot(&live, true, None, Some(ring), None)
        } else {
            // What a killed process left is of no use.
            match std::fs::remove_file(&live) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
                _ => {}
            }
            let mut settings = bf_tree::Config::new(&live, ring);
            settings
                .storage_backend(StorageBackend::Std)
                .leaf_page_size(PAGE_BYTES)
                .cb_max_key_len(KEY_BYTES_MAX)
                .cb_min_record_size(RECORD_BYTES_MIN)
                .cb_max_record_size(RECORD_BYTES_MAX)
                .use_snapshot(true);
            bf_tree::BfTree::with_config(settings, None)
        };
        let tree = tree.map_err(|e| anyhow!("{e:?}")).with_context(|| dir.display().to_string())?;
        Ok(BfTree { tree, dir: dir.to_path_buf() })
    }

    fn settings(&self) -> String {
        let config = self.tree.config();
        format!(
            "ring {} MiB, pages of {} bytes, records up to {} bytes, file access by the standard \
             library, no log, a snapshot at close; entries of a batch go in one by one",
            config.get_cb_size_byte() >> 20,
            config.get_leaf_page_size(),
            config.get_cb_max_record_size(),
        )
    }

    fn class(&self) -> Class {
        Class::V
    }

    fn writer(&self, _hint: Hint) -> Result<BfTreeWriter<'_>> {
        Ok(BfTreeWriter(&self.tree))
    }

    fn reader(&self, _access: Access) -> Result<BfTreeReader<'_>> {
        Ok(BfTreeReader { tree: &self.tree, buffer: vec![0; 64 << 10] })
    }

    fn close(self) -> Result<()> {
        self.tree.cpr_snapshot(self.dir.join(CLOSED));
        Ok(())
    }
}

/// Writes.
pub struct BfTreeWriter<'a>(&'a bf_tree::BfTree);

impl Writer for BfTreeWriter<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match self.0.insert(key, value) {
            LeafInsertResult::Success => Ok(()),
            LeafInsertResult::InvalidKV(_) => {
                let (least, most) = (RECORD_BYTES_MIN, RECORD_BYTES_MAX);
                let why = if value.is_empty() {
                    "the engine has no empty values".to_string()
                } else {
                    format!("the engine has no records outside {least} to {most} bytes")
                };
                Err(Unsupported::new(why).into())
            }
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.delete(key);
        Ok(())
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(key, value)
    }

    fn batch_commit(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Reads into a buffer: it hands out copies only.
pub struct BfTreeReader<'a> {
    tree: &'a bf_tree::BfTree,
    buffer: Vec<u8>,
}

impl BfTreeReader<'_> {
    #[inline]
    fn walk(&mut self, key: &[u8], count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let entries = self.tree.scan_with_count(key, count, ScanReturnField::KeyAndValue);
        let mut entries = entries.map_err(|e| anyhow!("scan: {e:?}"))?;
        let mut seen = 0;
        while let Some((key_len, value_len)) = entries.next(&mut self.buffer) {
            let (key, rest) = self.buffer.split_at(key_len);
            see(key, &rest[..value_len]);
            seen += 1;
        }
        Ok(seen)
    }
}

impl Reader for BfTreeReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        match self.tree.read(key, &mut self.buffer) {
            LeafReadResult::Found(len) => Ok(Some(see(&self.buffer[..len as usize]))),
            LeafReadResult::NotFound | LeafReadResult::Deleted => Ok(None),
            LeafReadResult::InvalidKey => bail!("a key of {} bytes", key.len()),
        }
    }

    fn seek(&mut self, key: &[u8], count: u64, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.walk(key, count, see)
    }

    fn scan(&mut self, direction: Direction, see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        match direction {
            // No key is smaller.
            Direction::Forward => self.walk(&[0], u64::MAX, see),
            Direction::Reverse => {
                Err(Unsupported::new("the engine has no scans from the end").into())
            }
        }
    }
}
