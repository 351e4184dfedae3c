//! What the store must hold, known from what the child said before it was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use esker::Db;

use crate::child::Message;
use crate::script::{Changes, Key, Op, Script, Space, THREADS, Value, owner};

/// Contents of the keys that one thread writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Part {
    entries: BTreeMap<Key, Value>,
    /// Whether the thread's own keyspace is there.
    own: bool,
}

impl Part {
    fn apply(&mut self, thread: usize, op: &Op) {
        for (key, value) in op.changes() {
            match value {
                Some(value) => drop(self.entries.insert(key, value)),
                None => drop(self.entries.remove(&key)),
            }
        }
        match op {
            Op::Create => self.own = true,
            Op::Drop => {
                self.own = false;
                self.entries.retain(|(space, _), _| *space != Space::Own(thread));
            }
            _ => {}
        }
    }
}

/// All acknowledged operations, and of each thread the one that was under way.
#[derive(Debug, Default)]
pub struct Oracle {
    parts: [Part; THREADS],
    under_way: [Option<Op>; THREADS],
    /// Operations acknowledged in all cycles.
    pub acknowledged: u64,
    /// Checkpoints finished in the last cycle, by operation number.
    pub checkpoints: Vec<u32>,
}

impl Oracle {
    /// Takes up what the child said in a cycle.
    pub fn learn(&mut self, seed: u64, cycle: u64, messages: &[Message]) {
        self.checkpoints.clear();
        for thread in 0..THREADS {
            let part = &mut self.parts[thread];
            let mut script = Script::new(seed, cycle, thread, part.own);
            let mut begun: Option<(u32, Op)> = None;
            for message in messages {
                match *message {
                    Message::Intent(t, number) if t == thread => {
                        assert!(begun.is_none(), "thread {thread} began {number} within another");
                        begun = Some((number, script.next()));
                    }
                    Message::Done(t, number) if t == thread => {
                        let (_, op) = begun.take().filter(|b| b.0 == number).expect("it was begun");
                        part.apply(thread, &op);
                        self.acknowledged += 1;
                        if matches!(op, Op::Checkpoint) {
                            self.checkpoints.push(number);
                        }
                    }
                    _ => {}
                }
            }
            self.under_way[thread] = begun.map(|b| b.1);
        }
    }

    /// Compares the store with what it must hold. What was under way becomes part of it, or is
    /// forgotten, as is found. The error says all that is wrong.
    pub fn verify(&mut self, db: &Db) -> Result<(), String> {
        let mut found: [Part; THREADS] = Default::default();
        let mut wrong = String::new();
        let names: BTreeSet<String> = db.keyspaces().into_iter().collect();
        let own = (0..THREADS).map(Space::Own);
        for space in [Space::Default, Space::Other].into_iter().chain(own) {
            let Ok(keyspace) = db.keyspace(&space.name()) else { continue };
            if let Space::Own(thread) = space {
                found[thread].own = true;
            }
            for entry in keyspace.iter().copied_out() {
                let (key, value) = entry.map_err(|e| e.to_string())?;
                let read = keyspace.get(&key).map_err(|e| e.to_string())?;
                if read.as_deref() != Some(&value[..]) {
                    let _ = writeln!(
                        wrong,
                        "{space:?} {}: get and iterator differ",
                        key.escape_ascii()
                    );
                }
                let Some(thread) = owner(&key) else {
                    let _ =
                        writeln!(wrong, "{space:?} {}: nobody wrote this key", key.escape_ascii());
                    continue;
                };
                match self.value_of(thread, &(space, key.clone()), &value) {
                    Some(v) => drop(found[thread].entries.insert((space, key), v)),
                    None => {
                        let _ = writeln!(
                            wrong,
                            "{space:?} {}: {} bytes that are not its value",
                            key.escape_ascii(),
                            value.len()
                        );
                    }
                }
            }
        }
        if names.len()
            != 1 + usize::from(names.contains("other")) + found.iter().filter(|p| p.own).count()
        {
            let _ = writeln!(wrong, "keyspaces nobody made: {names:?}");
        }
        for (thread, found) in found.into_iter().enumerate() {
            self.settle(thread, found, &mut wrong);
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// The value that these bytes are, of those that the key may have now.
    fn value_of(&self, thread: usize, key: &Key, bytes: &[u8]) -> Option<Value> {
        let before = self.parts[thread].entries.get(key).copied();
        let changes: Changes = self.under_way[thread].as_ref().map(Op::changes).unwrap_or_default();
        let after = changes.get(key).copied().flatten();
        [after, before].into_iter().flatten().find(|v| v.bytes() == bytes)
    }

    /// A thread's part is what it was, or that with the operation under way: nothing between.
    fn settle(&mut self, thread: usize, found: Part, wrong: &mut String) {
        let before = &self.parts[thread];
        let mut after = before.clone();
        let op = self.under_way[thread].take();
        if let Some(op) = &op {
            after.apply(thread, op);
        }
        if found != *before && found != after {
            let name = op.as_ref().map_or("nothing", Op::name);
            let _ = writeln!(wrong, "thread {thread}, with {name} under way:");
            let keys: BTreeSet<&Key> =
                [before, &found, &after].iter().flat_map(|p| p.entries.keys()).collect();
            for key in keys {
                let values = [before, &after, &found].map(|p| p.entries.get(key));
                let what = match values {
                    [b, a, f] if f == b && f == a => continue,
                    [b, _, f] if f == b => "  as before",
                    [_, a, f] if f == a => "  as with the operation",
                    [_, _, None] => "  lost",
                    _ => "  came back",
                };
                let _ = writeln!(wrong, "{what}: {:?} {}", key.0, key.1.escape_ascii());
            }
            let own = [before, &after, &found].map(|p| p.own);
            let _ = writeln!(wrong, "  its keyspace: before, with the operation, found: {own:?}");
        }
        self.parts[thread] = found;
    }

    /// Entries that are known to be there.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|p| p.entries.len()).sum()
    }
}
