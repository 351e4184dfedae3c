//! Group commit under all interleavings of a few threads, by loom: the code is that of `sync` and
//! `waiters`, only its locks, atomics and parking are loom's (see `util/sync`).
//!
//! A thread that is never woken is found as a deadlock.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use super::format::Position;
use super::sync::{SyncGroup, Syncable};
use super::testing::HeapEnv;
use crate::dir_sync::DirSync;
use crate::error::{Error, Result};
use crate::util::sync::{AtomicBool, AtomicU64, explore};

/// A file of which it is known how far it is written and how far it is durable.
#[derive(Debug)]
struct Fake {
    number: u64,
    end: AtomicU64,
    durable: AtomicU64,
    fails: AtomicBool,
}

impl Fake {
    fn new(number: u64) -> Arc<Fake> {
        let [end, durable] = [0; 2].map(AtomicU64::new);
        Arc::new(Fake { number, end, durable, fails: AtomicBool::new(false) })
    }
    fn append(&self) -> Position {
        Position { segment: self.number, end: self.end.fetch_add(1, SeqCst) + 1 }
    }
    fn holds(&self, position: Position) -> bool {
        position.segment == self.number && self.durable.load(SeqCst) >= position.end
    }
}

impl Syncable for Fake {
    fn number(&self) -> u64 {
        self.number
    }
    fn end(&self) -> u64 {
        self.end.load(SeqCst)
    }
    fn sync(&self) -> Result<()> {
        let end = self.end();
        if self.fails.load(SeqCst) {
            let why = std::io::Error::other("the medium is gone");
            return Err(Error::io("sync", &PathBuf::from(self.number.to_string()), why));
        }
        self.durable.fetch_max(end, SeqCst);
        Ok(())
    }
    fn sync_failed(&self) -> bool {
        self.fails.load(SeqCst)
    }
}

fn group(clock_step: u64) -> Arc<SyncGroup<Fake>> {
    let env = HeapEnv::new();
    env.clock_step.store(clock_step, SeqCst);
    group_in(env)
}

fn group_in(env: Arc<HeapEnv>) -> Arc<SyncGroup<Fake>> {
    let dir_sync = DirSync::new(env.clone(), Path::new(""));
    Arc::new(SyncGroup::new(env, Arc::new(dir_sync)))
}

/// Three threads write and wait: each returns, and what it wrote is durable then.
fn writers(clock_step: u64, each: usize) {
    let group = group(clock_step);
    let file = Fake::new(1);
    group.rotate(file.clone(), true);
    let write = |group: Arc<SyncGroup<Fake>>, file: Arc<Fake>| {
        move || {
            for _ in 0..each {
                let position = file.append();
                group.wait_durable(position).unwrap();
                assert!(file.holds(position), "{position:?} is not durable");
                assert!(group.durable() >= position);
            }
        }
    };
    let others = [(); 2].map(|()| loom::thread::spawn(write(group.clone(), file.clone())));
    write(group, file)();
    for other in others {
        other.join().unwrap();
    }
}

#[test]
fn everyone_returns_and_is_durable() {
    explore("group commit", 3, || writers(0, 1));
}

/// With a clock that moves, so that leaders wait for those who shared the last sync.
#[test]
fn leaders_that_gather_wait_for_nobody_for_ever() {
    explore("group commit, gathering", 2, || writers(1, 1));
}

/// The log goes on in another file while two threads wait for the first.
#[test]
fn a_rotation_leaves_no_hole() {
    explore("rotation", 2, || {
        let group = group(0);
        let (old, new) = (Fake::new(1), Fake::new(2));
        group.rotate(old.clone(), true);
        let first = {
            let (group, old) = (group.clone(), old.clone());
            let position = old.append();
            loom::thread::spawn(move || {
                group.wait_durable(position).unwrap();
                assert!(old.holds(position));
            })
        };
        let tail = old.append();
        let second = {
            let (group, old, new) = (group.clone(), old.clone(), new.clone());
            loom::thread::spawn(move || {
                group.rotate(new.clone(), false);
                let position = new.append();
                group.wait_durable(position).unwrap();
                assert!(new.holds(position) && old.holds(tail), "a hole in the log");
            })
        };
        group.wait_durable(tail).unwrap();
        assert!(old.holds(tail));
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// A sync fails while others wait, and somebody puts it right: everyone is told, no one for ever
/// waits, and nobody is told that what failed is durable.
#[test]
fn a_failure_and_a_reset_reach_everyone() {
    explore("failure and reset", 2, || {
        let group = group(0);
        let (old, new) = (Fake::new(1), Fake::new(2));
        group.rotate(old.clone(), true);
        old.fails.store(true, SeqCst);
        let waiters = [(); 2].map(|()| {
            let (group, position) = (group.clone(), old.append());
            loom::thread::spawn(move || group.wait_durable(position).is_err())
        });
        // Whoever repairs the store does so after it saw the failure.
        if group.failed().is_some() {
            group.reset(new.clone(), true);
            assert!(group.failed().is_none());
            let position = new.append();
            group.wait_durable(position).unwrap();
            assert!(new.holds(position));
        }
        let told = waiters.map(|w| w.join().unwrap());
        // One of them at least was there before the reset.
        assert!(told.contains(&true), "a failure went unnoticed");
        assert_eq!(old.durable.load(SeqCst), 0);
    });
}

/// The log goes on elsewhere in the middle of a sync: not before that is over.
#[test]
fn a_reset_waits_for_the_sync_under_way() {
    explore("reset", 3, || {
        let group = group(0);
        let (old, new) = (Fake::new(1), Fake::new(2));
        group.rotate(old.clone(), true);
        let position = old.append();
        let waiter = {
            let group = group.clone();
            loom::thread::spawn(move || group.wait_durable(position).unwrap())
        };
        group.reset(new.clone(), true);
        let position = new.append();
        group.wait_durable(position).unwrap();
        assert!(new.holds(position));
        waiter.join().unwrap();
    });
}

/// Who learned of a failed sync when it had been resumed from stopped all writes once more.
#[test]
fn a_failure_that_was_resumed_from_stopped_writes_again() {
    explore("late news", 3, || {
        let group = group(0);
        let (old, new) = (Fake::new(1), Fake::new(2));
        group.rotate(old.clone(), true);
        old.fails.store(true, SeqCst);
        let halted = Arc::new(AtomicBool::new(false));
        let position = old.append();
        let waiter = {
            let (group, halted) = (group.clone(), halted.clone());
            loom::thread::spawn(move || {
                let result = group.wait_durable(position);
                group.while_failed(|_| halted.store(true, SeqCst));
                result
            })
        };
        // As a resume does: what was halted by then goes on.
        if group.failed().is_some() {
            group.reset(new.clone(), true);
            halted.store(false, SeqCst);
        }
        assert!(waiter.join().unwrap().is_err());
        assert_eq!(halted.load(SeqCst), group.failed().is_some());
    });
}

/// A flush takes a segment out of the log while a thread waits for it.
#[test]
fn what_a_flush_made_durable_needs_no_sync() {
    explore("retire", 3, || {
        let group = group(0);
        let (old, new) = (Fake::new(1), Fake::new(2));
        group.rotate(old.clone(), true);
        let position = old.append();
        group.rotate(new.clone(), true);
        let waiter = {
            let group = group.clone();
            loom::thread::spawn(move || group.wait_durable(position).unwrap())
        };
        let other = {
            let (group, new) = (group.clone(), new.clone());
            loom::thread::spawn(move || {
                let position = new.append();
                group.wait_durable(position).unwrap();
                assert!(new.holds(position));
            })
        };
        group.retire(2);
        waiter.join().unwrap();
        other.join().unwrap();
        assert!(group.durable() >= position);
    });
}

/// Of two that sync the directory at once the system told one of what was lost: who was told that all is well took a name for
/// durable that was not.
#[test]
fn a_directory_that_could_not_be_synced_was_named_by_the_next() {
    explore("names", 3, || {
        let env = HeapEnv::new();
        let group = group_in(env.clone());
        let file = Fake::new(1);
        group.rotate(file.clone(), false);
        env.lose_names.store(true, SeqCst);
        let other = {
            let group = group.clone();
            // As a flush does for its tables.
            loom::thread::spawn(move || {
                if group.dir_sync().sync().is_err() {
                    group.note_lost_names();
                }
            })
        };
        let told = group.wait_durable(file.append());
        assert!(told.is_err(), "a name was lost, and this one was told that it is durable");
        other.join().unwrap();
        assert!(group.failed().is_some());
        assert!(group.wait_durable(file.append()).is_err());
    });
}

/// A resume forgot it before who had met it could say so, and the log went on under a name that was lost.
#[test]
fn a_resume_forgot_a_directory_that_could_not_be_synced() {
    explore("names and resume", 3, || {
        let env = HeapEnv::new();
        let group = group_in(env.clone());
        env.lose_names.store(true, SeqCst);
        let other = {
            let group = group.clone();
            loom::thread::spawn(move || {
                let failed = group.dir_sync().sync().is_err();
                group.note_lost_names();
                failed
            })
        };
        // As a resume does, for another reason.
        group.forget_lost_names();
        let failed = other.join().unwrap();
        assert!(
            failed && group.failed().is_some(),
            "the log goes on in files whose names are lost"
        );
    });
}
