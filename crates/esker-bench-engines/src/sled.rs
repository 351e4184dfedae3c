//! sled: a lock-free tree over a log-structured page store. Buffered: writes reach the file every
//! half second (its default), so a kill loses the last ones. Synced: `flush` after each write. Its
//! manual promises that this survives a crash of the system; it calls `sync_file_range`,
//! which neither empties the device's cache nor writes the file's metadata, so it is told as what
//! survives a kill. Its compression needs a version of the zstd library that cannot be linked beside Esker's.

use crate::{versions, walk::walk};
use anyhow::{Context, Result};
use esker_bench::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use sled::{Batch, Db, IVec, Mode};
use std::path::Path;

/// Its default.
const FLUSH_EVERY_MS: u64 = 500;

/// A sled database with its default tree.
pub struct Sled {
    db: Db,
    config: Config,
}

impl Engine for Sled {
    type Writer<'a> = SledWriter<'a>;
    type Reader<'a> = SledReader<'a>;

    fn version() -> Result<String> {
        versions::of("sled")
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        let every = (config.sync == Sync::Buffered).then_some(FLUSH_EVERY_MS);
        let db = sled::Config::new()
            .path(dir)
            .cache_capacity(config.memory)
            .mode(Mode::HighThroughput)
            .flush_every_ms(every)
            .open()
            .with_context(|| dir.display().to_string())?;
        Ok(Sled { db, config: config.clone() })
    }

    fn settings(&self) -> String {
        let flush = match self.config.sync {
            Sync::Buffered => format!("flush every {FLUSH_EVERY_MS} ms"),
            Sync::Synced => {
                "flush after each write, by sync_file_range: no device flush".to_string()
            }
        };
        format!("cache {} MiB, HighThroughput, {flush}", self.config.memory >> 20)
    }

    fn class(&self) -> Class {
        match self.config.sync {
            Sync::Buffered => Class::V,
            Sync::Synced => Class::K,
        }
    }

    fn writer(&self, _hint: Hint) -> Result<SledWriter<'_>> {
        Ok(SledWriter { store: self, batch: Batch::default() })
    }

    fn reader(&self, _access: Access) -> Result<SledReader<'_>> {
        Ok(SledReader(self))
    }

    /// It has no call to compact.
    fn settle(&self) -> Result<()> {
        self.db.flush()?;
        Ok(())
    }

    fn close(self) -> Result<()> {
        self.db.flush()?;
        Ok(())
    }
}

/// Writes; holds the batch under way.
pub struct SledWriter<'a> {
    store: &'a Sled,
    batch: Batch,
}

impl SledWriter<'_> {
    #[inline]
    fn sync(&self) -> Result<()> {
        if self.store.config.sync == Sync::Synced {
            self.store.db.flush()?;
        }
        Ok(())
    }
}

impl Writer for SledWriter<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.db.insert(key, value)?;
        self.sync()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.store.db.remove(key)?;
        self.sync()
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(key, value);
        Ok(())
    }

    fn batch_commit(&mut self) -> Result<()> {
        self.store.db.apply_batch(std::mem::take(&mut self.batch))?;
        self.sync()
    }
}

/// Reads what is newest.
pub struct SledReader<'a>(&'a Sled);

impl Reader for SledReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.0.db.get(key)?.map(|value| see(&value)))
    }

    fn seek(&mut self, key: &[u8], count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        walk(self.0.db.range(key..), count, |key, value| see(&key, &value))
    }

    fn scan(&mut self, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let see = |key: IVec, value: IVec| see(&key, &value);
        match direction {
            Direction::Forward => walk(self.0.db.iter(), u64::MAX, see),
            Direction::Reverse => walk(self.0.db.iter().rev(), u64::MAX, see),
        }
    }
}
