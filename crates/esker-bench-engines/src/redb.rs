//! redb: a copy-on-write B-tree. A put is a write transaction, as there is no other way to write;
//! a reader keeps its read transaction and its table.
//!
//! Buffered: `Durability::None`, which a clean close saves and a kill does not. Synced:
//! `Durability::Immediate`.
//!
//! Tuning: `check_integrity` (`on`: when opened, all of it; what it had to repair is an error too).

use crate::{gather::Gathered, versions, walk::walk};
use anyhow::{Context, Result, ensure};
use esker_bench::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Sync, Writer};
use redb::{
    AccessGuard, Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, Table,
    TableDefinition, TableError,
};
use std::path::Path;

/// A key or a value of a view.
type Pinned<'a> = AccessGuard<'a, &'static [u8]>;

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");

/// Reads between two looks at a newer view, beside a writer.
const RENEW_EVERY: u32 = 256;

/// A redb database with one table.
pub struct Redb {
    db: Database,
    config: Config,
}

impl Redb {
    fn durability(&self) -> Durability {
        match self.config.sync {
            Sync::Buffered => Durability::None,
            Sync::Synced => Durability::Immediate,
        }
    }

    /// Runs `change` in a transaction.
    fn write(&self, change: impl FnOnce(&mut Table<&[u8], &[u8]>) -> Result<()>) -> Result<()> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(self.durability())?;
        {
            let mut table = transaction.open_table(TABLE)?;
            change(&mut table)?;
        }
        Ok(transaction.commit()?)
    }

    fn view(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        Ok(self.db.begin_read()?.open_table(TABLE)?)
    }
}

impl Engine for Redb {
    type Writer<'a> = RedbWriter<'a>;
    type Reader<'a> = RedbReader<'a>;

    fn version() -> Result<String> {
        versions::of("redb")
    }

    fn open(dir: &Path, config: &Config) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let path = dir.join("data.redb");
        let db = Database::builder().set_cache_size(config.memory as usize).create(&path);
        let mut db = db.with_context(|| path.display().to_string())?;
        if config.setting("redb", "check_integrity") == Some("on") {
            ensure!(db.check_integrity()?, "{}: not sound, and repaired", path.display());
        }
        if let Err(TableError::TableDoesNotExist(_)) = db.begin_read()?.open_table(TABLE) {
            // The first transaction of a new store makes it, durably.
            let transaction = db.begin_write()?;
            transaction.open_table(TABLE)?;
            transaction.commit()?;
        }
        Ok(Redb { db, config: config.clone() })
    }

    fn settings(&self) -> String {
        format!(
            "cache {} MiB, Durability::{:?}, Immediate when settled, a transaction per put or batch, a read transaction \
             per reader, renewed every {RENEW_EVERY} reads beside a writer",
            self.config.memory >> 20,
            self.durability(),
        )
    }

    fn class(&self) -> Class {
        match self.config.sync {
            Sync::Buffered => Class::V,
            Sync::Synced => Class::F,
        }
    }

    fn writer(&self, _hint: Hint) -> Result<RedbWriter<'_>> {
        Ok(RedbWriter { store: self, batch: Gathered::default() })
    }

    fn reader(&self, access: Access) -> Result<RedbReader<'_>> {
        Ok(RedbReader { store: self, table: self.view()?, access, reads: 0 })
    }

    /// Makes durable what was not: until then no page that was given up is used again.
    fn settle(&self) -> Result<()> {
        // As every transaction of which nothing else is said.
        Ok(self.db.begin_write()?.commit()?)
    }
}

/// Writes; a transaction borrows from its database, so a batch is gathered first.
pub struct RedbWriter<'a> {
    store: &'a Redb,
    batch: Gathered,
}

impl Writer for RedbWriter<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.write(|table| {
            table.insert(key, value)?;
            Ok(())
        })
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.store.write(|table| {
            table.remove(key)?;
            Ok(())
        })
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.push(key, value);
        Ok(())
    }

    fn batch_commit(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = &self.batch;
        self.store.write(|table| {
            for (key, value) in batch.iter() {
                table.insert(key, value)?;
            }
            Ok(())
        })?;
        self.batch.clear();
        Ok(())
    }
}

/// Reads from one view until it is time for a newer one.
pub struct RedbReader<'a> {
    store: &'a Redb,
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    access: Access,
    reads: u32,
}

impl RedbReader<'_> {
    #[inline]
    fn renew_if_due(&mut self) -> Result<()> {
        if self.access == Access::BesideWriter {
            self.reads += 1;
            if self.reads >= RENEW_EVERY {
                self.renew()?;
            }
        }
        Ok(())
    }
}

impl Reader for RedbReader<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.renew_if_due()?;
        Ok(self.table.get(key)?.map(|value| see(value.value())))
    }

    fn seek(&mut self, key: &[u8], count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.renew_if_due()?;
        walk(self.table.range(key..)?, count, |key, value| see(key.value(), value.value()))
    }

    fn scan(&mut self, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        let entries = self.table.iter()?;
        let see = |key: Pinned<'_>, value: Pinned<'_>| see(key.value(), value.value());
        match direction {
            Direction::Forward => walk(entries, u64::MAX, see),
            Direction::Reverse => walk(entries.rev(), u64::MAX, see),
        }
    }

    fn renew(&mut self) -> Result<()> {
        self.reads = 0;
        self.table = self.store.view()?;
        Ok(())
    }
}
