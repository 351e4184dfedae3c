//! The tables that a compaction writes.

use std::collections::HashMap;
use std::sync::Arc;

use super::guards::Guards;
use super::repeats::Repeats;
use crate::error::Result;
use crate::filename;
use crate::options::TableSizes;
use crate::read::{LoadedTable, RepeatedShare};
use crate::store::{Counters, KeyspaceState, Store};
use crate::table::{Dictionary, TableBuilder, TableOptions};
use crate::version::{KeyspaceVersion, TableMeta};

/// What a step of a compaction has written so far.
#[derive(Default)]
pub(super) struct Written {
    /// Numbers of all files begun.
    numbers: Vec<u64>,
    /// Tables, and what of their entries repeats the oldest run.
    pub tables: Vec<(TableMeta, RepeatedShare)>,
    /// Separated values that tables point to from now on, and those that none does: segment, ranges.
    pub live: HashMap<u64, Vec<(u64, u64)>>,
    pub dead: HashMap<u64, Vec<(u64, u64)>>,
}

impl Written {
    /// Removes the files.
    pub fn discard(&self, store: &Store) {
        store.remove_tables(store.hold_dir(), &self.numbers);
    }
}

/// The tables of one overlap group, one after the other.
pub(super) struct Outputs<'a> {
    store: &'a Store,
    options: TableOptions,
    sizes: TableSizes,
    guards: Guards<'a, Arc<LoadedTable>>,
    repeats: Repeats<'a>,
    builder: Option<TableBuilder>,
}

impl<'a> Outputs<'a> {
    /// Tables of keyspace `ks`, for an output of at most `bytes` in all beside the runs of `version`.
    pub fn new(
        store: &'a Store,
        ks: &'a KeyspaceState,
        version: &'a KeyspaceVersion<Arc<LoadedTable>>,
        bytes: u64,
        dictionary: Option<Arc<Dictionary>>,
        repeats: Repeats<'a>,
    ) -> Outputs<'a> {
        let options = TableOptions {
            order: ks.order.clone(),
            keyspace: ks.id,
            block_size: store.options.block_size,
            compression: ks.compression,
            dictionary,
        };
        let sizes = store.table_sizes();
        let guards = Guards::new(&ks.order, version.runs(), bytes, sizes.full / 4);
        Outputs { store, options, sizes, guards, repeats, builder: None }
    }

    /// The table that an entry of `key` goes into.
    pub fn builder(&mut self, key: &[u8], written: &mut Written) -> Result<&mut TableBuilder> {
        if self.builder.is_none() {
            let number = self.store.new_file_number()?;
            let path = self.store.dir.join(filename::table(number));
            self.builder =
                Some(TableBuilder::new(&self.store.env, &path, number, self.options.clone())?);
            // Only now: a file that was there before is not this compaction's to remove.
            written.numbers.push(number);
        }
        self.repeats.note(key);
        Ok(self.builder.as_mut().expect("just made"))
    }

    /// Ends the present table before `key`, where it is large enough: at a guard, if one comes in time. Small ones would be
    /// merged again.
    pub fn roll(&mut self, key: &[u8], written: &mut Written) -> Result<()> {
        let guard = self.guards.pass(key);
        let size = self.builder.as_ref().map_or(0, |b| b.size_estimate());
        let enough = match guard {
            true => self.sizes.small,
            false if self.guards.is_passed() => self.sizes.full,
            false => self.sizes.full + self.sizes.full / 2,
        };
        if size >= enough { self.finish(written) } else { Ok(()) }
    }

    pub fn finish(&mut self, written: &mut Written) -> Result<()> {
        if let Some(builder) = self.builder.take() {
            let meta = builder.finish()?;
            Counters::add(&self.store.counters.compaction_written, meta.size);
            self.store.room.took(meta.size);
            written.tables.push((meta, self.repeats.take_share()));
        }
        Ok(())
    }
}
