//! Esker itself, with the settings everybody gets: a memory budget, a durability, a compression. Where values
//! are to be compressed, large ones are too, which a store of the defaults would leave in the log as they are.

use super::library::View;
use crate::calls::Call;
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use anyhow::Result;
use esker::{Compression, Cursor, Db, Durability, Options, WriteBatch};
use std::path::Path;

/// An Esker store.
pub struct Esker {
    db: Db,
    config: Config,
}

impl Engine for Esker {
    type Writer<'a> = EskerWriter<'a>;
    type Reader<'a> = EskerReader<'a>;

    fn version() -> Result<String> {
        // One workspace, one version.
        Ok(env!("CARGO_PKG_VERSION").to_string())
    }

    fn calls() -> &'static [(Call, &'static str)] {
        &[
            (
                Call::Open,
                "Options::memory, compression, durability, with compression blob_threshold; open",
            ),
            (Call::Writer, "nothing of the store: a WriteBatch is made"),
            (Call::Reader, "nothing; its cursor is made by the first seek"),
            (Call::Put, "Db::put, with the durability of the store"),
            (Call::Delete, "Db::delete, likewise"),
            (Call::BatchPut, "WriteBatch::put"),
            (Call::BatchCommit, "Db::write, with the durability of the store"),
            (Call::WriterEnd, "nothing"),
            (Call::Get, "Db::get, which pins the value and copies it only where it is compressed"),
            (Call::Seek, "Cursor::seek, of a cursor that the reader keeps"),
            (Call::Scan, "Db::cursor, then first or last"),
            (Call::Entry, "Cursor::key and value, then next or prev"),
            (Call::Renew, "Cursor::refresh, of the cursor that the reader keeps"),
            (Call::YieldView, "nothing: no view keeps space from being used again by writes"),
            (Call::Settle, "Db::flush and wait_for_compactions"),
            (Call::Compact, "Db::compact_range of all, where there is more than one run"),
            (Call::SetMemory, "nothing: the memory stays"),
            (Call::Close, "Db::close"),
        ]
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        let mut options = Options::new()
            .memory(config.memory)
            .compression(if config.compression { Compression::Lz4 } else { Compression::None })
            .durability(match config.sync {
                Sync::Buffered => Durability::Buffered,
                Sync::Synced => Durability::Synced,
            });
        if config.compression {
            // Large values that stay in the log are never compressed, and a table that says that values are
            // must not have its figure from values that are not.
            options = options.blob_threshold(usize::MAX);
        }
        Ok(Esker { db: options.open(dir)?, config: config.clone() })
    }

    fn settings(&self) -> String {
        format!(
            "memory {} MiB, up to {} MiB of log that waits for its flush besides, mapped and dirty as is what was flushed until the kernel has written it, compression {}, \
             durability {:?}",
            self.config.memory >> 20,
            log_bytes(self.config.memory) >> 20,
            if self.config.compression { "lz4, of large values too" } else { "off" },
            self.config.sync,
        )
    }

    fn class(&self) -> Class {
        if self.config.sync == Sync::Synced { Class::F } else { Class::K }
    }

    fn compresses(&self) -> bool {
        self.config.compression
    }

    fn writer(&self, _hint: Hint) -> Result<EskerWriter<'_>> {
        Ok(EskerWriter { db: &self.db, batch: WriteBatch::default() })
    }

    fn reader(&self, access: Access) -> Result<EskerReader<'_>> {
        Ok(EskerReader {
            db: &self.db,
            cursor: None,
            view: View::new(access == Access::BesideWriter),
        })
    }

    fn settle(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_for_compactions()?)
    }

    fn compact(&self) -> Result<()> {
        let is_one_run = self.db.stats().keyspaces.iter().all(|ks| ks.runs.len() < 2);
        if !is_one_run {
            self.db.compact_range::<&[u8]>(..)?;
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        Ok(self.db.close()?)
    }
}

/// Bytes of log that may be in memory beside the setting, by the guide's section "Memory and files": what waits for its
/// flush and the segment that is being written.
fn log_bytes(memory: u64) -> u64 {
    let waits = (memory * 2).min(256 << 20).max(memory / 2).max(24 << 20);
    let counted = waits.min(memory);
    let segment = (counted / 4).min(32 << 20).max((counted / 8).min(64 << 20)).max(2 << 20);
    waits + segment.max(waits / 64)
}

/// Writes.
pub struct EskerWriter<'a> {
    db: &'a Db,
    batch: WriteBatch,
}

impl Writer for EskerWriter<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db.put(key, value)?)
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        Ok(self.db.delete(key)?)
    }
    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(key, value);
        Ok(())
    }
    fn batch_commit(&mut self) -> Result<()> {
        Ok(self.db.write(std::mem::take(&mut self.batch))?)
    }
}

/// Reads, with a cursor for seeks that is kept between them; beside a writer, for a while.
pub struct EskerReader<'a> {
    db: &'a Db,
    cursor: Option<Cursor>,
    view: View,
}

impl Reader for EskerReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.db.get(key)?.map(|value| see(&value)))
    }

    #[inline]
    fn seek(&mut self, key: &[u8], count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        if self.view.is_due() {
            self.renew()?;
        }
        let cursor = self.cursor.get_or_insert_with(|| self.db.cursor());
        let mut seen = 0;
        let mut on_entry = cursor.seek(key)?;
        while on_entry {
            see(cursor.key(), cursor.value());
            seen += 1;
            if seen == count {
                break;
            }
            on_entry = cursor.next()?;
        }
        Ok(seen)
    }

    fn scan(&mut self, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let mut cursor = self.db.cursor();
        let mut seen = 0;
        let mut on_entry = match direction {
            Direction::Forward => cursor.first()?,
            Direction::Reverse => cursor.last()?,
        };
        while on_entry {
            see(cursor.key(), cursor.value());
            seen += 1;
            on_entry = match direction {
                Direction::Forward => cursor.next()?,
                Direction::Reverse => cursor.prev()?,
            };
        }
        Ok(seen)
    }

    fn renew(&mut self) -> Result<()> {
        Ok(self.cursor.as_mut().map_or(Ok(()), |cursor| cursor.refresh())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_that_a_setting_allows_beside_it_is_told() {
        assert_eq!(log_bytes(4 << 20), 26 << 20);
        assert_eq!(log_bytes(32 << 20), (64 + 8) << 20);
        assert_eq!(log_bytes(128 << 20), (256 + 32) << 20);
        assert_eq!(log_bytes(512 << 20), (256 + 32) << 20);
        assert_eq!(log_bytes(4 << 30), (2048 + 64) << 20);
    }
}
