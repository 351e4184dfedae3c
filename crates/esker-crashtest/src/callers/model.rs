//! What a store must hold, and the comparison with what it does hold, by every way there is to ask.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use esker::{Db, KeyOrder, Keyspace, KeyspaceOptions};

use super::draw::{Key, Value};
use super::ops::Op;
use super::settings::Settings;
use super::tally::{Of, count};
use crate::script::Rng;

/// One keyspace.
#[derive(Clone, Debug)]
pub struct Space {
    pub name: String,
    /// By a sound comparator.
    pub order: KeyOrder,
    pub entries: BTreeMap<Key, Value>,
    /// What else a key may have, as a write of it ended with an error or did not end.
    maybe: BTreeMap<Key, Vec<Option<Value>>>,
}

impl Space {
    pub fn new(name: &str, order: KeyOrder) -> Space {
        let (entries, maybe) = Default::default();
        Space { name: name.to_string(), order, entries, maybe }
    }

    pub fn set(&mut self, key: Key, value: Option<Value>) {
        self.maybe.remove(&key);
        match value {
            Some(value) => drop(self.entries.insert(key, value)),
            None => drop(self.entries.remove(&key)),
        }
    }

    fn allows(&self, key: &[u8], found: Option<&[u8]>) -> bool {
        let is = |v: Option<Value>| v.map(Value::bytes).as_deref() == found;
        let maybe = self.maybe.get(key).map_or(&[][..], Vec::as_slice);
        is(self.entries.get(key).copied()) || maybe.iter().any(|v| is(*v))
    }

    /// Compares all of it: by iterators, cursors and gets.
    pub fn compare(&self, ks: &Keyspace, rng: &mut Rng) -> Result<(), String> {
        self.compare_all(ks, rng).map_err(|what| format!("keyspace {:?}: {what}", self.name))
    }

    fn compare_all(&self, ks: &Keyspace, rng: &mut Rng) -> Result<(), String> {
        let found = self.walk(ks)?;
        self.ask(ks, &found, rng)?;
        for _ in 0..20 {
            self.parts(ks, &found, rng)?;
        }
        count(Of::Compared, found.len() as u64);
        Ok(())
    }

    /// The first and the last entry, and a get: what can be looked at while much is being written.
    pub fn glance(&self, ks: &Keyspace) -> Result<(), String> {
        let ends = [self.entries.first_key_value(), self.entries.last_key_value()];
        let ends = match self.order {
            KeyOrder::Bytewise => ends,
            KeyOrder::Reverse => [ends[1], ends[0]],
            KeyOrder::Custom(_) => return Ok(()),
        };
        for (expected, found) in ends
            .into_iter()
            .zip([ks.iter().copied_out().next(), ks.iter().copied_out().next_back()])
        {
            let found = found.transpose().map_err(|e| e.to_string())?;
            if found != expected.map(|(k, v)| (k.clone(), v.bytes())) {
                let [expected, found] = [expected.map(|e| e.0), found.as_ref().map(|f| &f.0)]
                    .map(|key| key.map_or("nothing".to_string(), |k| show(k)));
                return Err(format!("an iterator ends at {found}, not at {expected}"));
            }
        }
        Ok(())
    }

    /// Forwards and back; the keys found.
    fn walk(&self, ks: &Keyspace) -> Result<Vec<Key>, String> {
        let mut found: Vec<Key> = Vec::new();
        for entry in ks.iter().copied_out() {
            let (key, value) = entry.map_err(|e| format!("iterating: {e}"))?;
            if !self.allows(&key, Some(&value)) {
                return Err(format!("{} has a value nobody gave it", show(&key)));
            }
            if found.last().is_some_and(|last| self.order.compare(last, &key).is_ge()) {
                return Err(format!("{} is not above the key before it", show(&key)));
            }
            found.push(key);
        }
        let is_there = |k: &Key| found.binary_search_by(|f| self.order.compare(f, k)).is_ok();
        let lost: Vec<&Key> =
            self.entries.keys().filter(|k| !is_there(k) && !self.allows(k, None)).collect();
        if let Some(first) = lost.first() {
            let (n, of) = (lost.len(), self.entries.len());
            return Err(format!("an iterator has {n} of {of} keys not, {} first", show(first)));
        }
        let mut expected = found.iter().rev();
        let mut cursor = ks.cursor();
        let mut on = cursor.last().map_err(|e| format!("to the last: {e}"))?;
        while on {
            if expected.next().map(Vec::as_slice) != Some(cursor.key()) {
                return Err(format!("walking back, at {}", show(cursor.key())));
            }
            on = cursor.prev().map_err(|e| format!("walking back: {e}"))?;
        }
        match expected.next() {
            Some(key) => Err(format!("walking back ends before {}", show(key))),
            None => Ok(found),
        }
    }

    /// Gets of keys that are there and of others, alone and several at once.
    fn ask(&self, ks: &Keyspace, found: &[Key], rng: &mut Rng) -> Result<(), String> {
        let some = |rng: &mut Rng| rng.one_in(found.len() as u64 / 5000 + 1);
        let mut keys: Vec<&Key> = found.iter().filter(|_| some(rng)).collect();
        keys.extend(self.maybe.keys());
        let mut absent: Vec<Key> = keys.iter().take(500).map(|k| [k, &b"-"[..]].concat()).collect();
        absent.push(Key::new());
        keys.extend(&absent);
        for keys in keys.chunks(64) {
            let all = ks.multi_get(keys).map_err(|e| format!("multi_get: {e}"))?;
            for (key, at_once) in keys.iter().zip(all) {
                let got = ks.get(key).map_err(|e| format!("get {}: {e}", show(key)))?;
                if !self.allows(key, got.as_deref()) || got.as_deref() != at_once.as_deref() {
                    return Err(format!("get or multi_get of {} is wrong", show(key)));
                }
                if got.is_some() != ks.contains_key(key).map_err(|e| e.to_string())? {
                    return Err(format!("contains_key of {} is wrong", show(key)));
                }
            }
        }
        Ok(())
    }

    /// A random range from both ends, a prefix, and a cursor put somewhere.
    fn parts(&self, ks: &Keyspace, found: &[Key], rng: &mut Rng) -> Result<(), String> {
        let Some(last) = found.len().checked_sub(1) else { return Ok(()) };
        let from = rng.below(found.len() as u64) as usize;
        let to = from + rng.below((last - from).min(2000) as u64 + 1) as usize;
        let keys = |part: esker::Iter| {
            part.map(|e| e.map(|(k, _)| k.to_vec())).collect::<esker::Result<Vec<_>>>()
        };
        let range = || (Bound::Included(&found[from]), Bound::Excluded(&found[to]));
        if keys(ks.range::<&Key>(range())).map_err(|e| format!("range: {e}"))? != found[from..to] {
            return Err(format!("the range from {} to {}", show(&found[from]), show(&found[to])));
        }
        let mut back = ks.range::<&Key>(range()).copied_out().rev().map(|e| e.map(|(k, _)| k));
        if back.next().transpose().map_err(|e| e.to_string())?.as_ref() != found[from..to].last() {
            return Err(format!("the range back from {}", show(&found[to])));
        }
        let prefix = &found[from][..found[from].len().min(4)];
        let with: Vec<Key> = found.iter().filter(|k| k.starts_with(prefix)).cloned().collect();
        if keys(ks.prefix(prefix)).map_err(|e| format!("prefix: {e}"))? != with {
            return Err(format!("the prefix {}", show(prefix)));
        }
        let mut cursor = ks.cursor();
        let step = |moved: esker::Result<bool>| moved.map_err(|e| format!("a cursor: {e}"));
        let mut at = from;
        let mut on = step(cursor.seek(&found[at]))?;
        for _ in 0..10 {
            if !on || cursor.key() != found[at] {
                return Err(format!("a cursor should be at {}", show(&found[at])));
            }
            let forward = at == 0 || at < last && rng.one_in(2);
            if forward && at == last {
                break;
            }
            (at, on) = match forward {
                true => (at + 1, step(cursor.next())?),
                false => (at - 1, step(cursor.prev())?),
            };
        }
        Ok(())
    }
}

fn show(key: &[u8]) -> String {
    key[..key.len().min(40)].escape_ascii().to_string()
}

/// All keyspaces, the default one first.
#[derive(Clone, Debug)]
pub struct Model {
    pub spaces: Vec<Space>,
}

impl Model {
    /// The default keyspace alone, bytewise.
    pub fn new() -> Model {
        Model::with_default(KeyOrder::Bytewise)
    }

    pub fn with_default(order: KeyOrder) -> Model {
        Model { spaces: vec![Space::new("default", order)] }
    }

    pub fn add(&mut self, name: &str, order: KeyOrder) {
        self.spaces.push(Space::new(name, order));
    }

    /// The operation was acknowledged.
    pub fn done(&mut self, op: &Op) {
        for (space, key, value) in op.changes() {
            self.spaces[*space].set(key.clone(), *value);
        }
    }

    /// It is not known whether the operation took place.
    pub fn maybe(&mut self, op: &Op) {
        for (space, key, value) in op.changes() {
            self.spaces[*space].maybe.entry(key.clone()).or_default().push(*value);
        }
    }

    /// The same model, as another writer with keys of its own left it.
    pub fn take_up(&mut self, other: Model) {
        for (mine, theirs) in self.spaces.iter_mut().zip(other.spaces) {
            mine.entries.extend(theirs.entries);
            mine.maybe.extend(theirs.maybe);
        }
    }

    /// Keys of a keyspace that are, or may be, there.
    pub fn keys(&self, space: usize) -> impl Iterator<Item = Key> {
        let space = &self.spaces[space];
        space.entries.keys().chain(space.maybe.keys()).cloned()
    }

    pub fn orders(&self) -> impl Iterator<Item = (&str, KeyOrder)> {
        self.spaces.iter().map(|s| (s.name.as_str(), s.order.clone()))
    }

    /// Opens the store, and makes the keyspaces that are missing.
    pub fn open(&self, dir: &Path, settings: &Settings) -> Result<(Db, Vec<Keyspace>), String> {
        count(Of::Opens, 1);
        let orders = self.orders();
        let db = settings.with_orders(orders).open(dir).map_err(|e| format!("opening: {e}"))?;
        let space = |s: &Space| match db.keyspace(&s.name) {
            Ok(ks) => Ok(ks),
            Err(_) => {
                db.create_keyspace(&s.name, KeyspaceOptions::new().comparator(s.order.clone()))
            }
        };
        let spaces = self.spaces.iter().map(space).collect::<esker::Result<_>>();
        Ok((db.clone(), spaces.map_err(|e| format!("opening keyspaces: {e}"))?))
    }

    /// Compares everything with an open store.
    pub fn compare(&self, db: &Db, rng: &mut Rng) -> Result<(), String> {
        for space in &self.spaces {
            match db.keyspace(&space.name) {
                Ok(ks) => space.compare(&ks, rng)?,
                Err(_) if space.entries.is_empty() => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> u64 {
        let of = |s: &Space| s.entries.iter().map(|(k, v)| k.len() as u64 + v.len()).sum::<u64>();
        self.spaces.iter().map(of).sum()
    }

    pub fn len(&self) -> u64 {
        self.spaces.iter().map(|s| s.entries.len() as u64).sum()
    }
}
