//! Reads all of a store, by every path. What it answers is told as facts, at once, as worse may follow;
//! whether that is right is the oracle's to say.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Key, Result, Say, Script, Space, Write};

/// A way to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Call {
    /// Each key by itself.
    Get,
    /// All in order.
    Scan,
    /// All against the order.
    ScanBack,
}

/// Something a store answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// The write whose value a key has; `None` when the key is not there.
    Answer(Call, Key, Option<Write>),
    /// A call failed.
    Error(String),
    /// Something was returned that nobody wrote.
    Wrong(String),
}

/// What a store must do to be read.
pub trait Source {
    /// The value of a key.
    fn get(&mut self, key: Key) -> Result<Option<Vec<u8>>>;

    /// Hands over every entry of a keyspace; `false` when the store cannot scan that way.
    fn scan(&mut self, space: Space, back: bool, see: &mut dyn FnMut(&[u8], &[u8]))
    -> Result<bool>;

    /// The keyspaces that there are, and names of those that nobody made.
    fn spaces(&mut self) -> (Vec<Space>, Vec<String>) {
        (vec![Space::Default], Vec::new())
    }
}

/// Reads all that a script may have written, by these calls. No error ends it.
pub fn read(source: &mut impl Source, script: Script, calls: &[Call], mut tell: impl FnMut(Fact)) {
    let (spaces, strange) = source.spaces();
    strange.into_iter().for_each(|name| tell(Fact::Wrong(format!("a keyspace {name}"))));
    for space in spaces {
        for call in calls {
            if let Space::Own(thread) = space {
                tell(Fact::Answer(*call, Key::keyspace_of(thread), Some(Write::EMPTY)));
            }
            match call {
                Call::Get => get_all(source, script, space, &mut tell),
                Call::Scan => scan_all(source, script, space, false, &mut tell),
                Call::ScanBack => scan_all(source, script, space, true, &mut tell),
            }
        }
    }
}

/// Every key that may be in a keyspace.
fn keys(script: Script, space: Space) -> impl Iterator<Item = Key> {
    let key = move |number| (0..script.threads()).map(move |thread| Key { space, number, thread });
    (0..script.keys()).flat_map(key).filter(move |key| script.has(*key))
}

fn get_all(source: &mut impl Source, script: Script, space: Space, tell: &mut impl FnMut(Fact)) {
    for key in keys(script, space) {
        tell(match source.get(key) {
            Ok(None) => Fact::Answer(Call::Get, key, None),
            Ok(Some(value)) => answer(Call::Get, key, &value),
            Err(e) => Fact::Error(format!("get of {key}: {e}")),
        });
    }
}

fn answer(call: Call, key: Key, value: &[u8]) -> Fact {
    match Write::of(key, value) {
        Some(write) => Fact::Answer(call, key, Some(write)),
        None => {
            Fact::Wrong(format!("{call:?}: {key}: a value of {} bytes nobody wrote", value.len()))
        }
    }
}

fn scan_all(
    source: &mut impl Source,
    script: Script,
    space: Space,
    back: bool,
    tell: &mut impl FnMut(Fact),
) {
    let call = if back { Call::ScanBack } else { Call::Scan };
    let (mut seen, mut last) = (BTreeSet::new(), None);
    let ended = source.scan(space, back, &mut |key, value| {
        let Some(key) = Key::of(space, key).filter(|key| script.has(*key)) else {
            let key = key.escape_ascii();
            return tell(Fact::Wrong(format!("{call:?}: {space:?} {key}: nobody wrote this key")));
        };
        if last.replace(key).is_some_and(|last| if back { last <= key } else { last >= key }) {
            tell(Fact::Wrong(format!("{call:?}: {key} is out of order")));
        }
        seen.insert(key);
        tell(answer(call, key, value));
    });
    match ended {
        // One that ended with an error has not said that anything is missing.
        Err(e) => tell(Fact::Error(format!("{call:?} of {space:?}: {e}"))),
        Ok(false) => {}
        Ok(true) => {
            for key in keys(script, space).filter(|key| !seen.contains(key)) {
                tell(Fact::Answer(call, key, None));
            }
        }
    }
}

/// All the facts of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// What each call answered.
    pub answers: BTreeMap<Call, BTreeMap<Key, Option<Write>>>,
    /// Calls that failed.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<String>,
    /// What nobody wrote.
    pub wrong: Vec<String>,
}

impl Extend<Fact> for Found {
    fn extend<T: IntoIterator<Item = Fact>>(&mut self, facts: T) {
        for fact in facts {
            match fact {
                Fact::Answer(call, key, write) => {
                    self.answers.entry(call).or_default().extend([(key, write)]);
                }
                Fact::Error(text) => {
                    self.errors += 1;
                    self.first_error.get_or_insert(text);
                }
                Fact::Wrong(text) => self.wrong.push(text),
            }
        }
    }
}

impl Found {
    /// What a process that read a store was answered.
    pub fn of(said: Vec<Say>) -> Found {
        let mut found = Found::default();
        found.extend(said.into_iter().filter_map(Say::fact));
        found
    }

    /// What is there, by the calls that agree on it; and what the others say otherwise.
    pub fn entries(&self) -> (BTreeMap<Key, Write>, Vec<String>) {
        let mut answers = self.answers.iter();
        let (first, entries) =
            answers.next().map_or((Call::Get, BTreeMap::new()), |(c, e)| (*c, e.clone()));
        let mut otherwise = Vec::new();
        for (call, others) in answers {
            let differ = others.iter().filter(|(key, is)| entries.get(key) != Some(is));
            otherwise
                .extend(differ.map(|(key, _)| format!("{call:?} and {first:?} differ on {key}")));
        }
        (entries.into_iter().filter_map(|(key, write)| Some((key, write?))).collect(), otherwise)
    }
}
