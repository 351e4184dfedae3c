//! fjall: a log-structured merge tree. Buffered: each write is handed to the operating system
//! (`PersistMode::Buffer`, its default). Synced: `PersistMode::SyncData` after each write. Large values are kept apart from
//! their keys, as it offers for blobs, in stores that mostly have such.

use crate::{versions, walk::walk};
use anyhow::{Context, Result};
use esker_bench::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, KvSeparationOptions,
    OwnedWriteBatch, PersistMode, Readable, Slice, Snapshot,
};
use std::path::Path;

/// A database with one keyspace.
pub struct Fjall {
    db: Database,
    entries: Keyspace,
    config: Config,
}

/// Half of the memory caches blocks; a quarter is the active memtable and as much the one that is
/// being flushed. Its manual wants memtables of 8 to 64 MiB.
fn memtable_bytes(memory: u64) -> u64 {
    (memory / 4).clamp(1 << 20, 64 << 20)
}

fn cache_bytes(memory: u64) -> u64 {
    memory.saturating_sub(2 * memtable_bytes(memory)).max(memory / 4)
}

/// From so many bytes on values are large.
const LARGE: u64 = 16 << 10;

/// Whether large values are kept apart: where most entries have one.
fn separates(config: &Config) -> bool {
    config.entry_bytes >= LARGE
}

impl Engine for Fjall {
    type Writer<'a> = FjallWriter<'a>;
    type Reader<'a> = FjallReader<'a>;

    fn version() -> Result<String> {
        versions::of("fjall")
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        let compression =
            if config.compression { CompressionType::Lz4 } else { CompressionType::None };
        let db = Database::builder(dir)
            .cache_size(cache_bytes(config.memory))
            .journal_compression(compression)
            .open()
            .with_context(|| dir.display().to_string())?;
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(memtable_bytes(config.memory))
                .data_block_compression_policy(CompressionPolicy::all(compression))
                .with_kv_separation(
                    separates(config)
                        .then(|| KvSeparationOptions::default().compression(compression)),
                )
        };
        let entries = db.keyspace("entries", options)?;
        Ok(Fjall { db, entries, config: config.clone() })
    }

    fn settings(&self) -> String {
        let memory = self.config.memory;
        format!(
            "cache {} MiB, memtable {} MiB, compression {}, PersistMode::{}, large values {}, its \
             own bloom filters and leveled compaction, a snapshot per quiet reader",
            cache_bytes(memory) >> 20,
            memtable_bytes(memory) >> 20,
            if self.config.compression { "lz4" } else { "off" },
            if self.config.sync == Sync::Synced { "SyncData after each write" } else { "Buffer" },
            if separates(&self.config) { "apart" } else { "inline" },
        )
    }

    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::K }
    }

    fn compresses(&self) -> bool {
        self.config.compression
    }

    fn writer(&self, _hint: Hint) -> Result<FjallWriter<'_>> {
        Ok(FjallWriter { store: self, batch: None })
    }

    fn reader(&self, access: Access) -> Result<FjallReader<'_>> {
        let snapshot = (access == Access::Quiet).then(|| self.db.snapshot());
        Ok(FjallReader { store: self, snapshot })
    }

    fn settle(&self) -> Result<()> {
        self.entries.rotate_memtable_and_wait()?;
        Ok(self.entries.major_compact()?)
    }

    fn close(self) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }
}

/// Writes; holds the batch under way.
pub struct FjallWriter<'a> {
    store: &'a Fjall,
    batch: Option<OwnedWriteBatch>,
}

impl FjallWriter<'_> {
    #[inline]
    fn sync(&self) -> Result<()> {
        if self.store.config.sync == Sync::Synced {
            self.store.db.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }
}

impl Writer for FjallWriter<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.entries.insert(key, value)?;
        self.sync()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.store.entries.remove(key)?;
        self.sync()
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let store = self.store;
        let mode = match store.config.sync {
            Sync::Buffered => PersistMode::Buffer,
            Sync::Synced => PersistMode::SyncData,
        };
        let batch = self.batch.get_or_insert_with(|| store.db.batch().durability(Some(mode)));
        batch.insert(&store.entries, key, value);
        Ok(())
    }

    fn batch_commit(&mut self) -> Result<()> {
        match self.batch.take() {
            Some(batch) => Ok(batch.commit()?),
            None => Ok(()),
        }
    }
}

/// Reads from a snapshot, or beside a writer from what is newest at each read.
pub struct FjallReader<'a> {
    store: &'a Fjall,
    snapshot: Option<Snapshot>,
}

impl Reader for FjallReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let value = match &self.snapshot {
            Some(snapshot) => snapshot.get(&self.store.entries, key)?,
            None => self.store.entries.get(key)?,
        };
        Ok(value.map(|value| see(&value)))
    }

    fn seek(&mut self, key: &[u8], count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let entries = match &self.snapshot {
            Some(snapshot) => snapshot.range(&self.store.entries, key..),
            None => self.store.entries.range(key..),
        };
        walk(entries.map(Guard::into_inner), count, |key, value| see(&key, &value))
    }

    fn scan(&mut self, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let entries = match &self.snapshot {
            Some(snapshot) => snapshot.iter(&self.store.entries),
            None => self.store.entries.iter(),
        };
        let entries = entries.map(Guard::into_inner);
        let see = |key: Slice, value: Slice| see(&key, &value);
        match direction {
            Direction::Forward => walk(entries, u64::MAX, see),
            Direction::Reverse => walk(entries.rev(), u64::MAX, see),
        }
    }

    fn renew(&mut self) -> Result<()> {
        if self.snapshot.is_some() {
            self.snapshot = Some(self.store.db.snapshot());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_are_kept_apart() {
        let mut config = esker_bench::conformance::config(Sync::Buffered, false);
        assert!(!separates(&config));
        config.entry_bytes = 100_016;
        assert!(separates(&config));
    }
}
