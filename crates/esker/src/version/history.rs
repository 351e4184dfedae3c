//! Which tables edits put in the place of which others, for repair: where one is lost, those that it was made of may
//! still be there.

use std::collections::{HashMap, HashSet};

use super::{Change, State, VersionEdit};
use crate::key::TableMeta;

/// What the edits of a manifest say of tables, those too that are no part of the store any more.
#[derive(Debug, Default)]
pub(crate) struct TableHistory {
    /// All that were ever named, by number, with their keyspaces.
    named: HashMap<u64, (u32, TableMeta)>,
    /// By edit the tables that it took out of the store.
    replaced: Vec<Vec<u64>>,
    /// In which of these edits a table came into the store.
    made_in: HashMap<u64, usize>,
}

impl TableHistory {
    /// The next edit.
    pub(super) fn note(&mut self, edit: &VersionEdit) {
        let (mut added, mut removed) = (HashSet::new(), HashSet::new());
        for change in &edit.changes {
            match change {
                Change::AddTable { keyspace, meta, .. } => {
                    added.insert(meta.number);
                    self.named.insert(meta.number, (*keyspace, meta.clone()));
                }
                Change::RemoveTable { number, .. } => drop(removed.insert(*number)),
                _ => {}
            }
        }
        // What is in both only moved.
        let replaced: Vec<u64> = removed.difference(&added).copied().collect();
        if !replaced.is_empty() {
            self.made_in.extend(added.difference(&removed).map(|n| (*n, self.replaced.len())));
            self.replaced.push(replaced);
        }
    }

    /// A table that was named, and its keyspace.
    pub(crate) fn table(&self, number: u64) -> Option<&(u32, TableMeta)> {
        self.named.get(&number)
    }

    /// The tables that were named once and are not in this state.
    pub(crate) fn removed(&self, state: &State) -> HashSet<u64> {
        self.named.keys().copied().filter(|n| !state.has_table(*n)).collect()
    }

    /// Of what a table was made: the tables it replaced that are `there`, and for one that is not, what that one was made
    /// of. Only such as may have entries that it had.
    pub(crate) fn inputs(
        &self,
        output: u64,
        there: impl Fn(u64) -> bool,
        shares: impl Fn(&(u32, TableMeta)) -> bool,
    ) -> Vec<u64> {
        let mut found = Vec::new();
        let (mut looked_at, mut made_of) = (HashSet::new(), vec![output]);
        while let Some(number) = made_of.pop() {
            let Some(&edit) = self.made_in.get(&number).filter(|at| looked_at.insert(**at)) else {
                continue;
            };
            for &number in &self.replaced[edit] {
                if !self.table(number).is_some_and(&shares) {
                    continue;
                }
                if there(number) {
                    found.push(number);
                } else {
                    made_of.push(number);
                }
            }
        }
        found
    }
}
