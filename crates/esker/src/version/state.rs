//! Everything the manifest says, and how an edit changes it.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{Change, Invalid, KeyspaceVersion, VersionEdit};
use crate::key::{KeyOrder, Seq, TableMeta};
use crate::wal::{LogSpan, Position};

/// The orders that this process knows. A keyspace has the one that was given for it; one that none was
/// given for has the one that is named as its own is, if there is just one.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    /// By the name that is stored with a keyspace. `None`: there are several.
    named: BTreeMap<String, Option<KeyOrder>>,
    /// By keyspace, each with its name.
    given: BTreeMap<String, (String, KeyOrder)>,
}

impl Default for Orders {
    fn default() -> Self {
        let built_in = [KeyOrder::Bytewise, KeyOrder::Reverse];
        let named = built_in.map(|order| (order.name().to_owned(), Some(order)));
        Orders { named: BTreeMap::from(named), given: BTreeMap::new() }
    }
}

impl Orders {
    /// Makes an order of this name known as that of this keyspace, in place of one given before.
    pub(crate) fn give(&mut self, keyspace: &str, name: String, order: KeyOrder) {
        let known = self.named.entry(name.clone()).or_insert_with(|| Some(order.clone()));
        if known.as_ref().is_some_and(|known| !same(known, &order)) {
            *known = None;
        }
        self.given.insert(keyspace.to_owned(), (name, order));
    }

    /// What was given for this keyspace is not asked for any more.
    fn take_back(&mut self, keyspace: &str) {
        let Some((name, order)) = self.given.remove(keyspace) else { return };
        if order.is_custom() && self.given.values().all(|(other, _)| *other != name) {
            self.named.remove(&name);
        }
    }

    /// The names of all that are known.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Name and order that were given for this keyspace.
    pub(crate) fn given(&self, keyspace: &str) -> Option<&(String, KeyOrder)> {
        self.given.get(keyspace)
    }

    /// The order of a keyspace that is stored with an order of this name.
    pub(crate) fn of(&self, keyspace: &str, name: &str) -> Option<KeyOrder> {
        let given = self.given(keyspace).filter(|(given, _)| given == name).map(|(_, o)| o);
        let order = given.or_else(|| self.named.get(name)?.as_ref())?;
        Some(order.of_keyspace(keyspace, name))
    }
}

/// Whether two orders of one name are one object.
fn same(a: &KeyOrder, b: &KeyOrder) -> bool {
    match (a, b) {
        (KeyOrder::Custom(a), KeyOrder::Custom(b)) => Arc::ptr_eq(a, b),
        _ => !a.is_custom() && !b.is_custom(),
    }
}

/// One keyspace as the manifest describes it.
#[derive(Debug, Clone)]
pub(crate) struct KeyspaceDescription {
    /// Never used for another keyspace, before or after.
    pub id: u32,
    pub name: String,
    pub order_name: String,
    /// `None` when no order of that name is known here: its tables are then neither sorted nor
    /// checked for overlaps, and whoever needs the order must refuse.
    pub order: Option<KeyOrder>,
    /// Number of the codec setting; `None` takes the store's.
    pub compression: Option<u8>,
    /// Threshold in bytes; `None` takes the store's.
    pub blob_threshold: Option<u64>,
    /// All entries in segments up to and including this one are in tables. 0: none are.
    pub flushed: u64,
    /// The runs.
    pub version: KeyspaceVersion<Arc<TableMeta>>,
}

/// The numbers of a store, and whether it was closed in order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StoreNumbers {
    /// Ids from here on were never used.
    pub next_keyspace: u32,
    /// Segments below this one are not replayed.
    pub log_start: u64,
    /// The log is durable up to here; the default when nothing is known of it.
    pub log_durable: Position,
    /// File numbers from here on were never used.
    pub next_file: u64,
    /// The highest sequence known to have been used.
    pub last_seq: Seq,
    /// Whether the store was closed in order after the last edit: then there is no log.
    pub closed: bool,
    /// Of values in segments below this one two tables may know, as a repair had to guess which belong to the store.
    pub may_repeat_below: u64,
}

/// The composition of the store. A copy is one of everything: there is none at each edit.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// By id.
    pub keyspaces: BTreeMap<u32, KeyspaceDescription>,
    numbers: StoreNumbers,
    /// Which keyspace has a name.
    names: HashMap<String, u32>,
    /// Which keyspace holds a table.
    tables: HashMap<u64, u32>,
    orders: Orders,
    #[cfg(test)]
    _copies: Copies,
}

/// What an edit changes of a state: checked, and not in force yet.
#[derive(Debug, Clone)]
pub(super) struct Delta {
    numbers: StoreNumbers,
    /// What has become of keyspaces; `None`: they are gone.
    keyspaces: BTreeMap<u32, Option<KeyspaceDescription>>,
    names: HashMap<String, Option<u32>>,
    tables: HashMap<u64, Option<u32>>,
}

/// A state, and what an edit that is being checked has changed of it so far.
struct Draft<'a> {
    before: &'a State,
    delta: Delta,
}

/// Notes how often a thread copies a state.
#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct Copies;

#[cfg(test)]
thread_local!(static COPIES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });

#[cfg(test)]
impl Copies {
    /// How often this one did.
    pub(super) fn made() -> u64 {
        COPIES.get()
    }
}

#[cfg(test)]
impl Clone for Copies {
    fn clone(&self) -> Copies {
        COPIES.set(Copies::made() + 1);
        Copies
    }
}

impl Deref for State {
    type Target = StoreNumbers;

    fn deref(&self) -> &StoreNumbers {
        &self.numbers
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut StoreNumbers {
        &mut self.numbers
    }
}

/// Equal when a manifest written from one says the same as one written from the other.
impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.snapshot() == other.snapshot()
    }
}

impl State {
    /// A store without keyspaces.
    pub(crate) fn new(orders: Orders) -> State {
        let numbers = StoreNumbers { next_file: 1, ..StoreNumbers::default() };
        State { orders, numbers, ..State::default() }
    }

    /// Makes the order of a keyspace known that is about to be added.
    pub(crate) fn learn(&mut self, keyspace: &str, name: String, order: KeyOrder) {
        self.orders.give(keyspace, name, order);
    }

    /// The order of a keyspace that is gone is not needed any more.
    pub(crate) fn unlearn(&mut self, keyspace: &str) {
        self.orders.take_back(keyspace);
    }

    /// The keyspace of this name.
    pub(crate) fn keyspace(&self, name: &str) -> Option<&KeyspaceDescription> {
        self.keyspaces.get(self.names.get(name)?)
    }

    /// Whether what is kept to find keyspaces and tables is what there is.
    #[cfg(test)]
    pub(super) fn finds_what_it_has(&self) -> bool {
        let ids = self.keyspaces.values().map(|k| (k.name.clone(), k.id));
        let of = |k: &KeyspaceDescription| {
            k.version.tables().map(|t| (t.number, k.id)).collect::<Vec<_>>()
        };
        self.names == ids.collect() && self.tables == self.keyspaces.values().flat_map(of).collect()
    }

    /// Whether a table is part of the store; files of others are left over.
    pub(crate) fn has_table(&self, number: u64) -> bool {
        self.tables.contains_key(&number)
    }

    /// Where to read the log.
    pub(crate) fn log(&self) -> LogSpan {
        LogSpan { start: self.log_start, durable: self.log_durable, closed: self.closed }
    }

    /// The log segments in which tables keep values.
    pub(crate) fn value_segments(&self) -> BTreeSet<u64> {
        let tables = self.keyspaces.values().flat_map(|k| k.version.tables());
        tables.flat_map(|t| &t.references).map(|r| r.segment).collect()
    }

    /// The state after an edit, or why there is none.
    pub(crate) fn apply(&self, edit: &VersionEdit) -> Result<State, Invalid> {
        let mut next = self.clone();
        next.apply_in_place(edit)?;
        Ok(next)
    }

    /// As [`apply`](State::apply), without the copy. After an error the state is as it was.
    pub(crate) fn apply_in_place(&mut self, edit: &VersionEdit) -> Result<(), Invalid> {
        let delta = self.check(edit)?;
        self.take(delta);
        Ok(())
    }

    /// What an edit changes, or why it cannot be. Here alone an order is asked, which may panic.
    pub(super) fn check(&self, edit: &VersionEdit) -> Result<Delta, Invalid> {
        let mut draft = Draft {
            before: self,
            delta: Delta {
                numbers: StoreNumbers { closed: false, ..self.numbers },
                keyspaces: BTreeMap::new(),
                names: HashMap::new(),
                tables: HashMap::new(),
            },
        };
        draft.apply(edit)?;
        Ok(draft.delta)
    }

    /// Puts in force what an edit changes that was checked against this state.
    pub(super) fn take(&mut self, delta: Delta) {
        self.numbers = delta.numbers;
        for (id, k) in delta.keyspaces {
            match k {
                Some(k) => drop(self.keyspaces.insert(id, k)),
                None => drop(self.keyspaces.remove(&id)),
            }
        }
        put(&mut self.names, delta.names);
        put(&mut self.tables, delta.tables);
    }

    /// Says that the store is closed in order: nothing is in the log from `log_start` on.
    pub(crate) fn close(&mut self, log_start: u64) {
        self.log_start = log_start;
        self.log_durable = Position::default();
        self.closed = true;
    }

    /// The one edit that makes this state out of an empty one.
    pub(crate) fn snapshot(&self) -> VersionEdit {
        let mut changes = Vec::new();
        if self.may_repeat_below > 0 {
            changes.push(Change::MayRepeat { below: self.may_repeat_below });
        }
        for k in self.keyspaces.values() {
            changes.push(Change::AddKeyspace {
                id: k.id,
                name: k.name.clone(),
                order_name: k.order_name.clone(),
                compression: k.compression,
                blob_threshold: k.blob_threshold,
            });
            if k.flushed > 0 {
                changes.push(Change::Flushed { keyspace: k.id, segment: k.flushed });
            }
            for run in k.version.runs() {
                for table in run.tables() {
                    let meta = TableMeta::clone(table);
                    changes.push(Change::AddTable { keyspace: k.id, run: run.id(), meta });
                }
            }
        }
        changes.push(Change::NextKeyspace { id: self.next_keyspace });
        let (segment, durable) = (self.log_start, self.log_durable);
        changes.push(Change::LogStart { segment, durable });
        changes.push(Change::NextFile { number: self.next_file });
        changes.push(Change::LastSeq { seq: self.last_seq });
        if self.closed {
            changes.push(Change::CleanClose);
        }
        VersionEdit { changes }
    }
}

impl Draft<'_> {
    fn apply(&mut self, edit: &VersionEdit) -> Result<(), Invalid> {
        let mut moves = BTreeMap::<u32, TableMoves>::new();
        for change in &edit.changes {
            change.check()?;
            self.change(change, &mut moves)?;
        }
        // Removals in all keyspaces first: a number may leave one and enter another.
        for (id, m) in &moves {
            self.known(*id)?;
            for number in &m.removed {
                if self.keyspace_of(*number) != Some(*id) {
                    return Err(Invalid::new(format!(
                        "table {number} is removed from keyspace {id} but not there"
                    )));
                }
                self.delta.tables.insert(*number, None);
            }
        }
        for (id, m) in moves {
            for (_, table) in &m.added {
                if self.keyspace_of(table.number).is_some() {
                    return Err(Invalid::new(format!("table {} is added twice", table.number)));
                }
                self.delta.tables.insert(table.number, Some(id));
                self.raise_file(table.number + 1);
                self.delta.numbers.last_seq = self.delta.numbers.last_seq.max(table.max_seq);
                if let Some(last) = table.references.last() {
                    self.raise_file(last.segment + 1);
                }
            }
            let k = self.known(id)?;
            k.version = k.version.edit(k.order.as_ref(), &m.removed, m.added)?;
        }
        Ok(())
    }

    fn change(
        &mut self,
        change: &Change,
        moves: &mut BTreeMap<u32, TableMoves>,
    ) -> Result<(), Invalid> {
        let now = self.delta.numbers;
        match change {
            Change::AddKeyspace { id, name, order_name, compression, blob_threshold } => {
                self.add_keyspace(KeyspaceDescription {
                    id: *id,
                    name: name.clone(),
                    order_name: order_name.clone(),
                    order: self.before.orders.of(name, order_name),
                    compression: *compression,
                    blob_threshold: *blob_threshold,
                    flushed: 0,
                    version: KeyspaceVersion::default(),
                })?;
            }
            Change::DropKeyspace { id } => {
                let k = self.known(*id)?.clone();
                self.delta.tables.extend(k.version.tables().map(|t| (t.number, None)));
                self.delta.names.insert(k.name, None);
                self.delta.keyspaces.insert(*id, None);
            }
            Change::AddTable { keyspace, run, meta } => {
                let m = moves.entry(*keyspace).or_default();
                m.added.push((*run, Arc::new(meta.clone())));
            }
            Change::RemoveTable { keyspace, number } => {
                moves.entry(*keyspace).or_default().removed.push(*number);
            }
            Change::Flushed { keyspace, segment } => {
                let k = self.known(*keyspace)?;
                not_below("flushed segment", k.flushed, *segment)?;
                k.flushed = *segment;
                self.raise_file(*segment + 1);
            }
            Change::LogStart { segment, durable } => {
                not_below("log start", now.log_start, *segment)?;
                self.delta.numbers.log_start = *segment;
                self.delta.numbers.log_durable = now.log_durable.max(*durable);
                self.raise_file((*segment).max(durable.segment));
            }
            Change::NextFile { number } => {
                not_below("next file", now.next_file, *number)?;
                self.delta.numbers.next_file = *number;
            }
            Change::NextKeyspace { id } => {
                not_below("next keyspace", now.next_keyspace.into(), (*id).into())?;
                self.delta.numbers.next_keyspace = *id;
            }
            Change::LastSeq { seq } => {
                not_below("last sequence", now.last_seq, *seq)?;
                self.delta.numbers.last_seq = *seq;
            }
            Change::CleanClose => self.delta.numbers.closed = true,
            Change::Reopened => {}
            Change::MayRepeat { below } => {
                not_below("repeated values", now.may_repeat_below, *below)?;
                self.delta.numbers.may_repeat_below = *below;
            }
            Change::Continued => {
                return Err(Invalid::new("an edit goes on in the midst of a record"));
            }
        }
        Ok(())
    }

    fn add_keyspace(&mut self, k: KeyspaceDescription) -> Result<(), Invalid> {
        let (id, name) = (k.id, &k.name);
        if id < self.delta.numbers.next_keyspace {
            return Err(Invalid::new(format!("keyspace id {id} was used before")));
        }
        if changed(&self.delta.names, &self.before.names, name.as_str()).is_some() {
            return Err(Invalid::new(format!("keyspace {name:?} is there already")));
        }
        self.delta.numbers.next_keyspace = id + 1;
        self.delta.names.insert(name.clone(), Some(id));
        self.delta.keyspaces.insert(id, Some(k));
        Ok(())
    }

    fn known(&mut self, id: u32) -> Result<&mut KeyspaceDescription, Invalid> {
        let before = || self.before.keyspaces.get(&id).cloned();
        let known = self.delta.keyspaces.entry(id).or_insert_with(before).as_mut();
        known.ok_or_else(|| Invalid::new(format!("there is no keyspace {id}")))
    }

    /// Which keyspace holds a table.
    fn keyspace_of(&self, table: u64) -> Option<u32> {
        changed(&self.delta.tables, &self.before.tables, &table)
    }

    /// No number named anywhere is handed out again.
    fn raise_file(&mut self, number: u64) {
        self.delta.numbers.next_file = self.delta.numbers.next_file.max(number);
    }
}

/// What a map holds once it is changed.
fn changed<K, Q>(changes: &HashMap<K, Option<u32>>, map: &HashMap<K, u32>, key: &Q) -> Option<u32>
where
    K: Borrow<Q> + Hash + Eq,
    Q: Hash + Eq + ?Sized,
{
    changes.get(key).copied().unwrap_or_else(|| map.get(key).copied())
}

/// Changes a map; what becomes `None` is taken out.
fn put<K: Hash + Eq>(map: &mut HashMap<K, u32>, changes: HashMap<K, Option<u32>>) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(map.insert(key, value)),
            None => drop(map.remove(&key)),
        }
    }
}

/// The tables that one edit moves in one keyspace.
#[derive(Debug, Default)]
struct TableMoves {
    removed: Vec<u64>,
    added: Vec<(u64, Arc<TableMeta>)>,
}

fn not_below(what: &str, now: u64, then: u64) -> Result<(), Invalid> {
    if then < now {
        return Err(Invalid::new(format!("{what} goes back from {now} to {then}")));
    }
    Ok(())
}
