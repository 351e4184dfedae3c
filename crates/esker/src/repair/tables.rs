//! The tables there are: those that the manifest names, and others where it is damaged.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::Repair;
use super::runs::age;
use crate::env::OpenMode;
use crate::error::{Error, Finding, Result};
use crate::filename;
use crate::key::KeyOrder;
use crate::table::{DamagedTable, Remains, Table};
use crate::verify::stand_in;
use crate::version::TableMeta;

/// Whether a table that does not open may be as sound as ever.
fn is_no_damage(e: &Error) -> bool {
    matches!(e, Error::UnsupportedFormat { .. }) || e.is_passing()
}

impl Repair<'_> {
    /// The tables that the manifest names. Those of a keyspace whose comparator is not given stay as
    /// they are.
    pub(super) fn tables(&mut self) -> Result<()> {
        let named: Vec<(u32, u64, TableMeta)> = self
            .old
            .keyspaces
            .values()
            .flat_map(|k| k.version.runs().iter().map(move |r| (k.id, r)))
            .flat_map(|(id, r)| r.tables().iter().map(move |t| (id, r.id(), (**t).clone())))
            .collect();
        for (id, run, meta) in named {
            let told = self.report.lost.len();
            match self.order_of(id) {
                Some(order) => self.named_table(id, run, order, &meta)?,
                None => self.found.push((id, run, meta.clone())),
            }
            if self.report.lost.len() > told || !self.there.contains(&meta.number) {
                self.damaged.push((id, meta));
            }
        }
        Ok(())
    }

    fn named_table(&mut self, id: u32, run: u64, order: KeyOrder, meta: &TableMeta) -> Result<()> {
        let (number, size) = (meta.number, meta.size);
        let path = self.dir.join(filename::table(number));
        match Table::open(&*self.env, &path, number, size, order.clone(), meta.base_seq) {
            Ok(t) if t.keyspace() == id => {
                // Where the two do not agree the table is right: its checksums say so.
                let own = t.meta();
                self.keep_or_copy(id, run, order, Arc::new(t), own)
            }
            Ok(t) => {
                let what = format!("it is a table of keyspace {}, not of {id}", t.keyspace());
                self.lose_table(&Error::corrupt(&path, 0, what), meta);
                Ok(())
            }
            Err(e) if is_no_damage(&e) => Err(e),
            Err(e) => {
                let e = match Remains::open(&*self.env, &path, number, Some(size), [order.name()]) {
                    Ok(remains) if !is_another(&remains, id, meta) => {
                        let source = DamagedTable::Remains(Box::new(remains));
                        return self.copy_intact(id, run, order, &source, meta);
                    }
                    Ok(_) => e,
                    Err(e) if is_no_damage(&e) => return Err(e),
                    Err(e) => e,
                };
                self.lose_table(&e, meta);
                Ok(())
            }
        }
    }

    fn lose_table(&mut self, e: &Error, meta: &TableMeta) {
        let found = Finding::from(e).keys(&meta.smallest, &meta.largest);
        let what = format!("{}; its {} entries are gone", found.what, meta.entries);
        self.lose(Finding { what, ..found });
        self.aside.push(filename::table(meta.number));
    }

    /// Tables that the manifest does not name. They count only when the manifest was damaged.
    pub(super) fn unnamed_tables(&mut self) -> Result<()> {
        if !self.manifest_damaged {
            return Ok(());
        }
        let known: HashSet<u64> = self.found.iter().map(|(_, _, m)| m.number).collect();
        let made_from = self.files.first();
        let mut numbers: Vec<u64> = self
            .names
            .iter()
            .filter_map(|n| filename::table_number(n))
            .filter(|n| *n < made_from && !known.contains(n) && !self.removed.contains(n))
            .filter(|n| !self.aside.contains(&filename::table(*n)))
            .collect();
        numbers.sort_unstable();
        self.inputs_of_damaged()?;
        for number in numbers {
            self.unnamed_table(number)?;
        }
        Ok(())
    }

    /// Tables that were merged into others which are lost, or some of what they held, if they are still there. All of
    /// what they hold is taken up: what of it was deleted before the compaction comes again with the rest.
    fn inputs_of_damaged(&mut self) -> Result<()> {
        let mut damaged = std::mem::take(&mut self.damaged);
        while let Some((id, output)) = damaged.pop() {
            let order = self.order_of(id);
            let shares = |(of, t): &(u32, TableMeta)| {
                let meets = |order: &KeyOrder| {
                    order.compare(&t.smallest, &output.largest).is_le()
                        && order.compare(&output.smallest, &t.largest).is_le()
                };
                *of == id && order.as_ref().is_none_or(meets)
            };
            let there = |n| self.there.contains(&n);
            for number in self.history.inputs(output.number, there, shares) {
                if self.removed.remove(&number) {
                    let told = self.report.lost.len();
                    self.unnamed_table(number)?;
                    if self.report.lost.len() > told {
                        damaged.extend(self.history.table(number).cloned());
                    }
                }
            }
        }
        Ok(())
    }

    fn unnamed_table(&mut self, number: u64) -> Result<()> {
        let name = filename::table(number);
        let path = self.dir.join(&name);
        let size = self.env.open(&path, OpenMode::Read).and_then(|f| f.len());
        let size = size.map_err(|e| Error::io("open", &path, e));
        let base_seq = self.history.table(number).map_or(0, |(_, known)| known.base_seq);
        let open = |order: &KeyOrder| {
            let size = size.clone()?;
            Table::open(&*self.env, &path, number, size, order.clone(), base_seq)
        };
        // Its own properties say what it is ordered by.
        let mut order = KeyOrder::Bytewise;
        let mut opened = open(&order);
        if let Err(Error::ComparatorMismatch { stored, .. }) = &opened {
            order = self.orders.of("", stored).unwrap_or_else(|| stand_in(stored));
            opened = open(&order);
        }
        match opened {
            // The next open removes it.
            Ok(t) if self.was_dropped(t.keyspace()) => {
                self.left_over.push(number);
                return Ok(());
            }
            Ok(t) if self.know_keyspace(t.keyspace(), order.name()) => {
                let (id, meta) = (t.keyspace(), t.meta());
                match self.order_of(id) {
                    Some(order) => self.keep_or_copy(id, 0, order, Arc::new(t), meta)?,
                    None => self.adopted.push((id, meta)),
                }
                return Ok(());
            }
            Ok(_) => {
                let what = "its keyspace is ordered otherwise; it may have been part of the store";
                self.lose(Finding::new(&name, what));
            }
            Err(e) if is_no_damage(&e) => return Err(e),
            Err(e) => {
                let remains = Remains::open(&*self.env, &path, number, None, self.orders.names());
                if let Err(e) = &remains
                    && is_no_damage(e)
                {
                    return Err(e.clone());
                }
                if let Ok(remains) = remains
                    && let Some((id, order, meta)) = remains.described()
                {
                    if self.was_dropped(id) {
                        self.left_over.push(number);
                        return Ok(());
                    }
                    if self.know_keyspace(id, order)
                        && let Some(order) = self.order_of(id)
                    {
                        let source = DamagedTable::Remains(Box::new(remains));
                        return self.copy_intact(id, 0, order, &source, &meta.based_on(base_seq));
                    }
                }
                let found = Finding::from(&e);
                let what = format!("{}; it may have been part of the store", found.what);
                self.lose(Finding { what, ..found });
            }
        }
        self.aside.push(name);
        Ok(())
    }

    /// Tables that were taken up for keyspaces whose comparator is not given: each is a run of its own, above all that
    /// is older. Whether it shares keys with others nobody can tell.
    pub(super) fn place_adopted(&mut self) {
        let mut adopted = std::mem::take(&mut self.adopted);
        adopted.sort_by_key(|(id, meta)| (*id, age(meta)));
        for of_one in adopted.chunk_by(|a, b| a.0 == b.0) {
            let id = of_one[0].0;
            let found = std::mem::take(&mut self.found);
            let (own, others) = found.into_iter().partition::<Vec<_>, _>(|(of, _, _)| *of == id);
            self.found = others;
            let mut runs = BTreeMap::<u64, Vec<TableMeta>>::new();
            own.into_iter().for_each(|(_, run, meta)| runs.entry(run).or_default().push(meta));
            let mut runs: Vec<Vec<TableMeta>> = runs.into_values().collect();
            // Entries without a sequence are of a bulk load, or were merged down to the oldest run. Then tables that
            // the manifest names in their place are missing.
            let mut named = runs.iter().flatten().peekable();
            let none_merged =
                named.peek().is_some() && named.all(|t| self.there.contains(&t.number));
            let (loads, others): (Vec<_>, Vec<_>) =
                of_one.iter().map(|(_, meta)| meta).partition(|m| m.max_seq == 0 && none_merged);
            for meta in others {
                let older = |run: &Vec<TableMeta>| run.iter().any(|t| age(t) < age(meta));
                let above = runs.iter().rposition(older).map_or(0, |at| at + 1);
                runs.insert(above, vec![meta.clone()]);
            }
            // Of loads the numbers tell the age. Their sequence was one between those of their neighbours.
            for meta in loads {
                let older = |run: &Vec<TableMeta>| run.iter().any(|t| t.number < meta.number);
                let above = runs.iter().rposition(older).map_or(0, |at| at + 1);
                let newest = runs[..above].iter().flatten().map(|t| t.max_seq).max();
                let seq = newest.map_or(0, |seq| seq + 1);
                runs.insert(above, vec![meta.clone().based_on(seq)]);
            }
            // Numbered anew: what is flushed next has a higher number than any table.
            for (run, tables) in (1..).zip(runs) {
                self.found.extend(tables.into_iter().map(|meta| (id, run, meta)));
            }
        }
    }
}

/// Whether what lies in the place of this table is one of another store, whose entries are none of its. That
/// of another number is known by its checksums.
fn is_another(remains: &Remains, keyspace: u32, meta: &TableMeta) -> bool {
    let differs = |(id, _, own): (u32, _, TableMeta)| {
        (id, own.entries) != (keyspace, meta.entries)
            || (&own.smallest, &own.largest) != (&meta.smallest, &meta.largest)
    };
    remains.described().is_some_and(differs)
}
