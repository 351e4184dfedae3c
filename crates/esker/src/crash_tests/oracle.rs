//! What the store may hold after a crash.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Db;
use crate::env::sim::Promise;

/// The contents of one keyspace.
pub(super) type Space = BTreeMap<Vec<u8>, Arc<Vec<u8>>>;
/// The contents of a store, by the names of its keyspaces.
pub(super) type State = BTreeMap<String, Space>;

/// The states of a store, one operation after the other: `states[n]` is that after the first `n`.
#[derive(Debug, Clone)]
pub(super) struct History {
    states: Vec<Arc<State>>,
    /// What operations that failed may have left all the same.
    others: Vec<Arc<State>>,
}

impl History {
    pub(super) fn new() -> History {
        let empty = State::from([("default".to_string(), Space::new())]);
        History { states: vec![Arc::new(empty)], others: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.states.len() - 1
    }

    pub(super) fn last(&self) -> &Arc<State> {
        self.states.last().expect("never empty")
    }

    pub(super) fn push(&mut self, state: Arc<State>) {
        self.states.push(state);
    }

    /// The last state, if any came after the first `n`.
    pub(super) fn since(&self, n: usize) -> Option<Arc<State>> {
        assert!(self.len() <= n + 1, "one operation at a time");
        (self.len() > n).then(|| Arc::clone(self.last()))
    }

    /// The last operation did not come about.
    pub(super) fn take_back(&mut self) {
        self.states.pop();
    }

    /// May be found as well.
    pub(super) fn admit(&mut self, state: Arc<State>) {
        self.others.push(state);
    }

    pub(super) fn admit_no_more(&mut self) {
        self.others.clear();
    }

    /// How a state differs from the last.
    pub(super) fn not_last(&self, found: &State) -> String {
        format!("not the last state: {}", difference(found, self.last()))
    }

    pub(super) fn at(&self, n: usize) -> &State {
        &self.states[n]
    }

    /// The state found must be that after some of the operations, with all those among them that were
    /// promised. Which one; or what is wrong.
    pub(super) fn judge(&self, found: &State, promise: &Promise) -> Result<usize, String> {
        let begun = promise.begun.min(self.len());
        let named = |n: usize| found.keys().eq(self.states[n].keys());
        let others = || self.others.iter().filter(|o| found.keys().eq(o.keys()));
        if !(promise.named..=begun).any(named) && others().next().is_none() {
            let names: Vec<_> = found.keys().collect();
            return Err(format!("the keyspaces {names:?} were never those after {promise:?}"));
        }
        let fits = |n: &usize| same(found, &self.states[*n]);
        if let Some(n) = (promise.durable..=begun).rev().find(fits) {
            return Ok(n);
        }
        if self.others.iter().any(|o| same(found, o)) {
            return Ok(begun);
        }
        let close = (0..=self.len()).rev().find(fits);
        let differs = difference(found, &self.states[begun]);
        let lost = difference(found, &self.states[promise.durable]);
        Err(format!(
            "{promise:?}, and what is found is {}\nagainst all that was begun: {differs}\nagainst \
             all that was durable: {lost}",
            close.map_or("no state that ever was".to_string(), |n| format!("the state after {n}")),
        ))
    }
}

/// Keyspaces are made durably at once, before older writes to others are: they may be there early,
/// and are empty then.
fn same(found: &State, expected: &State) -> bool {
    expected.keys().all(|name| found.contains_key(name))
        && found.iter().all(|(name, space)| match expected.get(name) {
            Some(expected) => space == expected,
            None => space.is_empty(),
        })
}

/// Where two states differ, in words.
fn difference(found: &State, expected: &State) -> String {
    let mut out = Vec::new();
    let empty = Space::new();
    let names: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    for name in names {
        let (f, e) = (found.get(name).unwrap_or(&empty), expected.get(name).unwrap_or(&empty));
        let keys: std::collections::BTreeSet<_> = f.keys().chain(e.keys()).collect();
        for key in keys.into_iter().filter(|k| f.get(*k) != e.get(*k)) {
            let show = |v: Option<&Arc<Vec<u8>>>| {
                v.map_or("nothing".to_string(), |v| format!("{:?}", super::workload::name_of(v)))
            };
            let key_name = String::from_utf8_lossy(key);
            out.push(format!(
                "{name}/{key_name} is {}, not {}",
                show(f.get(key)),
                show(e.get(key))
            ));
        }
    }
    let more = out.len().saturating_sub(12);
    out.truncate(12);
    format!("{} and {more} more", out.join("; "))
}

/// Reads all of a store, forwards; and each key on its own.
pub(super) fn read(db: &Db) -> Result<State, String> {
    let mut state = State::new();
    for name in db.keyspaces() {
        let keyspace = db.keyspace(&name).map_err(|e| e.to_string())?;
        let mut space = Space::new();
        for entry in keyspace.iter() {
            let (key, value) = entry.map_err(|e| format!("reading {name}: {e}"))?;
            space.insert(key.to_vec(), Arc::new(value.to_vec()));
        }
        for (key, value) in &space {
            let got = keyspace.get(key).map_err(|e| format!("getting from {name}: {e}"))?;
            if got.as_deref() != Some(&value[..]) {
                let key = String::from_utf8_lossy(key);
                return Err(format!("{name}/{key} is one thing to a scan and another to a get"));
            }
        }
        state.insert(name, space);
    }
    Ok(state)
}
