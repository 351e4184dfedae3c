//! What must be in a store, known from outside of whoever wrote it: every operation that was said to be
//! done, of each thread the one under way whole or not at all, nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::script::Change;
use crate::{Act, Found, Key, Message, Op, Result, Script, Space, Write};

/// An operation, by its thread and its number.
type Id = (u8, u32);

/// The last write of a key, whether the key is there since, and whether that was news.
#[derive(Debug, Clone, Copy)]
struct Last {
    write: Write,
    there: bool,
    new: bool,
}

/// What is known of a store.
#[derive(Debug)]
pub struct Oracle {
    script: Script,
    known: BTreeMap<Key, Last>,
    /// Of each thread the operation that was not said to be done.
    next: Vec<u32>,
    /// Whether these may have been done all the same.
    under_way: bool,
    /// Operations that were said to be done.
    pub acknowledged: u64,
}

/// What is to be said of an answer about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It is right.
    Right,
    /// A write is missing: there is an older one, or none.
    Lost(String),
    /// Nobody ever wrote this, or not yet.
    Wrong(String),
}

/// How a store differs from what it must be.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Operations done whose effect is not there. One whose keys were all written again later cannot be
    /// missed.
    pub lost: u64,
    /// Operations of which some is there and some is not.
    pub half: u64,
    /// Entries that no operation up to then wrote, and calls that contradict each other.
    pub wrong: u64,
    /// All these, in words.
    pub what: Vec<String>,
}

impl Oracle {
    /// Of a store that is empty.
    pub fn new(script: Script) -> Oracle {
        let next = vec![1; usize::from(script.threads())];
        Oracle { script, known: BTreeMap::new(), next, under_way: false, acknowledged: 0 }
    }

    /// The operation that each thread begins with next.
    pub fn next(&self) -> &[u32] {
        &self.next
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.known.values().filter(|last| last.there).count()
    }

    /// Takes up what a writer said before it was killed; the numbers of what was done, and what that was.
    /// An error when it does not follow the script.
    pub fn learn(&mut self, said: impl IntoIterator<Item = Message>) -> Result<Vec<(u32, Act)>> {
        let mut done = Vec::new();
        for message in said {
            let Message::Done(thread, number) = message else { continue };
            let op = self.next.get(usize::from(thread)).filter(|next| **next == number);
            let op = op.and_then(|_| self.op(thread));
            let op = op.ok_or_else(|| format!("thread {thread} did operation {number} next"))?;
            self.apply(thread, &op);
            self.next[usize::from(thread)] += 1;
            self.acknowledged += 1;
            done.push((number, op.act));
        }
        self.under_way = true;
        Ok(done)
    }

    /// The next operation of a thread.
    fn op(&self, thread: u8) -> Option<Op> {
        let own = self.known.get(&Key::keyspace_of(thread)).is_some_and(|last| last.there);
        self.script.op(thread, self.next[usize::from(thread)], own)
    }

    /// What becomes of each key.
    fn changes(&self, thread: u8, op: &Op) -> BTreeMap<Key, Change> {
        let mut changes: BTreeMap<Key, Change> = op.changes.iter().map(|c| (c.key, *c)).collect();
        if op.act == Act::Drop {
            let write = Write::new(op.number, 0, 0);
            let within = self.known.keys().filter(|key| key.space == Space::Own(thread));
            changes.extend(within.map(|key| (*key, Change { key: *key, write, there: false })));
        }
        changes
    }

    fn apply(&mut self, thread: u8, op: &Op) {
        for (key, Change { write, there, .. }) in self.changes(thread, op) {
            let new = self.expected(key) != there.then_some(write.seen());
            self.known.insert(key, Last { write, there, new });
        }
    }

    /// What a reader must see of a key.
    fn expected(&self, key: Key) -> Option<Write> {
        self.known.get(&key).filter(|last| last.there).map(|last| last.write.seen())
    }

    /// Says whether an answer about a key is right.
    pub fn judge(&self, key: Key, is: Option<Write>) -> Judgement {
        let must = self.expected(key);
        if is == must {
            return Judgement::Right;
        }
        let told = |is: Option<Write>| is.map_or("nothing".to_string(), |write| write.to_string());
        let by = self.known.get(&key).map_or(0, |last| last.write.number());
        let text =
            format!("{key} gives {} and must give {}, by operation {by}", told(is), told(must));
        let older = |write| self.known.get(&key).is_some_and(|last| write < last.write);
        match is.is_none_or(|write| older(write) && self.wrote(write, key)) {
            true => Judgement::Lost(text),
            false => Judgement::Wrong(text),
        }
    }

    /// Whether a write was ever one of this key.
    fn wrote(&self, write: Write, key: Key) -> bool {
        let is = |change: &Change| change.there && (change.key, change.write) == (key, write);
        let did = |own| {
            let op = self.script.op(key.thread, write.number(), own);
            op.is_some_and(|op| op.changes.iter().any(is))
        };
        match write {
            Write::EMPTY => matches!(self.script, Script::Whole(_)),
            _ => did(false) || did(true),
        }
    }

    /// Compares with what was found, and goes on from that. What was under way becomes part of it, or
    /// is forgotten, as is found.
    pub fn compare(&mut self, found: &Found) -> Verdict {
        let (entries, otherwise) = found.entries();
        let mut what: Vec<String> = found.wrong.iter().cloned().chain(otherwise).collect();
        let mut wrong = what.len() as u64;
        let under_way = self.take_in(&entries);
        let (mut lost, mut kept): (BTreeSet<Id>, BTreeSet<Id>) = Default::default();
        let all: BTreeSet<Key> = self.known.keys().chain(entries.keys()).copied().collect();
        for key in all {
            let is = entries.get(&key).copied();
            let last = self.known.get(&key);
            let by = last.map(|last| (key.thread, last.write.number()));
            match self.judge(key, is) {
                Judgement::Right => {
                    // What changed nothing is no sign of its operation.
                    kept.extend(by.filter(|_| last.is_some_and(|last| last.new)));
                    continue;
                }
                Judgement::Lost(text) => {
                    lost.extend(by);
                    what.push(format!("lost: {text}"));
                }
                Judgement::Wrong(text) => {
                    wrong += 1;
                    what.push(format!("wrong: {text}"));
                }
            }
            let now = self.next[usize::from(key.thread)];
            let write = is.unwrap_or(Write::new(now, 0, 0));
            self.known.insert(key, Last { write, there: is.is_some(), new: true });
        }
        let half = lost.intersection(&kept).count() as u64;
        // One under way is no loss, but half of it is half an operation.
        let lost = lost.difference(&under_way).count() as u64;
        Verdict { lost, half, wrong, what }
    }

    /// If any of an operation under way can be seen, all of it must be. Those under way.
    fn take_in(&mut self, found: &BTreeMap<Key, Write>) -> BTreeSet<Id> {
        let mut ids = BTreeSet::new();
        for thread in 0..self.script.threads() {
            let Some(op) = self.op(thread).filter(|_| self.under_way) else { continue };
            let seen = |change: &Change| {
                let after = change.there.then_some(change.write.seen());
                after != self.expected(change.key) && after == found.get(&change.key).copied()
            };
            if self.changes(thread, &op).values().any(seen) {
                self.apply(thread, &op);
            }
            // Its number is not used again, whether it was done or not.
            self.next[usize::from(thread)] += 1;
            ids.insert((thread, op.number));
        }
        self.under_way = false;
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Fact};

    const WHOLE: Script = Script::Whole(9);

    /// Knows all operations up to `last` of so many threads.
    fn oracle_of(threads: u8, script: Script, last: u32) -> Oracle {
        let mut oracle = Oracle::new(script);
        for thread in 0..threads {
            oracle.learn((1..=last).map(|number| Message::Done(thread, number))).unwrap();
        }
        oracle
    }

    /// Knows those of the first thread.
    fn oracle(last: u32) -> Oracle {
        oracle_of(1, WHOLE, last)
    }

    /// What an operation of the first thread really changes.
    fn news(before: &Oracle, op: &Op) -> Vec<Change> {
        let is_new = |c: &Change| before.expected(c.key) != c.there.then_some(c.write.seen());
        before.changes(0, op).into_values().filter(is_new).collect()
    }

    /// What is in a store that did these.
    fn store(oracle: &Oracle) -> BTreeMap<Key, Write> {
        oracle.known.keys().filter_map(|key| Some((*key, oracle.expected(*key)?))).collect()
    }

    fn compare(oracle: &mut Oracle, entries: &BTreeMap<Key, Write>) -> (u64, u64, u64) {
        let answers = entries.iter().map(|(key, is)| Fact::Answer(Call::Scan, *key, Some(*is)));
        let mut found = Found::default();
        found.extend(answers);
        let verdict = oracle.compare(&found);
        assert_eq!(verdict.what.is_empty(), verdict == Verdict::default(), "{verdict:?}");
        (verdict.lost, verdict.half, verdict.wrong)
    }

    /// The number of an operation of thread 0 that changes what is in the store, of this act.
    fn one(act: Act, least: usize) -> u32 {
        let is = |n: &u32| {
            let oracle = oracle(n - 1);
            let op = oracle.op(0).unwrap();
            op.act == act && news(&oracle, &op).len() >= least
        };
        (100..).find(is).unwrap()
    }

    #[test]
    fn with_or_without_the_operations_under_way_it_is_right() {
        for script in [WHOLE, Script::Plain(9)] {
            for last in (1..300).step_by(7) {
                for done in [last, last + 1] {
                    let threads = script.threads();
                    let mut before = oracle_of(threads, script, last);
                    let after = store(&oracle_of(threads, script, done));
                    assert_eq!(compare(&mut before, &after), (0, 0, 0));
                    // It goes on from there, and nothing is under way any more.
                    let there = store(&before);
                    assert_eq!(compare(&mut before, &there), (0, 0, 0));
                    let next: Vec<u32> = before.next().to_vec();
                    assert_eq!(next, vec![last + 2; next.len()]);
                    let again = (0u8..).zip(next).map(|(thread, n)| Message::Done(thread, n));
                    before.learn(again).unwrap();
                    let there = store(&before);
                    assert_eq!(compare(&mut before, &there), (0, 0, 0));
                }
            }
        }
    }

    #[test]
    fn what_was_done_and_is_not_there_is_lost() {
        for act in [Act::Put, Act::Delete, Act::Batch, Act::Create, Act::Drop] {
            let number = one(act, 1);
            let before = store(&oracle(number - 1));
            assert_eq!(compare(&mut oracle(number), &before), (1, 0, 0), "{act:?}");
        }
    }

    #[test]
    fn half_an_operation_is_seen_acknowledged_or_not() {
        for act in [Act::Batch, Act::Load(Space::Other), Act::Drop] {
            let number = one(act, 4);
            let (mut before, mut after) = (oracle(number - 1), oracle(number));
            let change = news(&before, &before.op(0).unwrap())[0];
            let mut half = store(&before);
            half.remove(&change.key);
            half.extend(change.there.then_some((change.key, change.write.seen())));
            assert_eq!(compare(&mut before, &half), (0, 1, 0), "{act:?}");
            assert_eq!(compare(&mut after, &half), (1, 1, 0), "{act:?}");
        }
    }

    #[test]
    fn what_nobody_wrote_or_not_yet_is_wrong() {
        let last = one(Act::Put, 1);
        let key = oracle(last - 1).op(0).unwrap().changes[0].key;
        for number in [last + 5, last - 1] {
            let mut found = store(&oracle(last));
            found.insert(key, Write::new(number, 0, 150));
            assert_eq!(compare(&mut oracle(last), &found), (0, 0, 1), "{number}");
        }
    }

    #[test]
    fn the_specimen_has_old_and_deleted_entries_too() {
        let oracle = oracle_of(1, Script::Specimen, 17 + 1 + 20 + 330);
        assert_eq!((oracle.entries(), oracle.known.len()), (2970, 3300));
        let written_over = |last: &&Last| last.there && last.write.number() > 18;
        assert_eq!(oracle.known.values().filter(written_over).count(), 1980);
    }

    #[test]
    fn a_writer_that_does_not_follow_the_script_is_refused() {
        for said in [Message::Done(0, 2), Message::Done(4, 1)] {
            assert!(Oracle::new(WHOLE).learn([said]).is_err());
        }
    }
}
