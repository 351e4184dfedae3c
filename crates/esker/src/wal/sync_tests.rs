//! Tests of group commit over files that are slow, fail, and keep count.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::format::{FIRST_FRAME_OFFSET as FIRST_FRAME, Position};
use super::sync::{SyncGroup, Syncable};
use super::testing::HeapEnv;
use crate::dir_sync::DirSync;
use crate::error::{Error, Result};

/// What became durable, in order: file and offset. Shared by the files of a test.
type Journal = Arc<Mutex<Vec<Position>>>;

#[derive(Debug)]
struct Fake {
    number: u64,
    end: AtomicU64,
    syncs: AtomicU64,
    fails: AtomicBool,
    /// A sync takes so many milliseconds, and as long as the gate is held.
    takes: AtomicU64,
    gate: Mutex<()>,
    journal: Journal,
}

impl Fake {
    fn new(number: u64, journal: &Journal) -> Arc<Fake> {
        Arc::new(Fake {
            number,
            end: AtomicU64::new(FIRST_FRAME),
            syncs: AtomicU64::new(0),
            fails: AtomicBool::new(false),
            takes: AtomicU64::new(0),
            gate: Mutex::new(()),
            journal: Arc::clone(journal),
        })
    }
    /// Appends so many bytes and says where that ended.
    fn append(&self, bytes: u64) -> Position {
        let end = self.end.fetch_add(bytes, Ordering::SeqCst) + bytes;
        Position { segment: self.number, end }
    }
    fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::SeqCst)
    }
    fn fail(&self, yes: bool) {
        self.fails.store(yes, Ordering::SeqCst);
    }
}

impl Syncable for Fake {
    fn number(&self) -> u64 {
        self.number
    }
    fn end(&self) -> u64 {
        self.end.load(Ordering::SeqCst)
    }
    fn sync(&self) -> Result<()> {
        let end = self.end();
        self.syncs.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(self.takes.load(Ordering::SeqCst)));
        drop(self.gate.lock());
        if self.fails.load(Ordering::SeqCst) {
            let why = std::io::Error::other("the medium is gone");
            return Err(Error::io("sync", &PathBuf::from(self.number.to_string()), why));
        }
        self.journal.lock().push(Position { segment: self.number, end });
        Ok(())
    }
    fn sync_failed(&self) -> bool {
        self.fails.load(Ordering::SeqCst)
    }
}

/// A group whose log is in file 1, with the directory and the journal. `named`: the name of the file is durable.
fn log(named: bool) -> (Arc<HeapEnv>, Journal, Arc<SyncGroup<Fake>>, Arc<Fake>) {
    let (env, journal) = (HeapEnv::new(), Journal::default());
    let dir_sync = Arc::new(DirSync::new(env.clone(), Path::new("")));
    let group = Arc::new(SyncGroup::new(env.clone(), dir_sync));
    let file = Fake::new(1, &journal);
    group.rotate(file.clone(), named);
    (env, journal, group, file)
}

/// Waits until a thread waits for others to share its sync, or did not and has made it. No other is under way.
fn until_gathering(group: &SyncGroup<Fake>, file: &Fake, before: u64) {
    while !group.syncing() && file.syncs() == before {
        thread::yield_now();
    }
}

/// Waits until a thread is inside the file's `sync`.
fn until_syncing(file: &Fake, before: u64) {
    while file.syncs() == before {
        thread::yield_now();
    }
}

/// Two threads come while the sync of another is at work, and share the next. A sync takes a second by the clock.
fn share_a_sync(env: &HeapEnv, group: &SyncGroup<Fake>, file: &Fake) {
    let write = || group.wait_durable(file.append(1)).unwrap();
    env.clock_step.store(1_000_000_000, Ordering::Relaxed);
    thread::scope(|scope| {
        let closed = file.gate.lock();
        scope.spawn(write);
        until_syncing(file, 0);
        (0..2).for_each(|_| drop(scope.spawn(write)));
        while group.waiting() < 2 {
            thread::yield_now();
        }
        drop(closed);
    });
}

#[test]
fn what_is_covered_returns_at_once() {
    let (env, _, group, file) = log(false);
    let first = file.append(100);
    let second = file.append(100);
    group.wait_durable(second).unwrap();
    group.wait_durable(first).unwrap();
    group.wait_durable(second).unwrap();
    group.sync_all().unwrap();
    assert_eq!(file.syncs(), 1);
    assert_eq!(group.durable(), second);
    // The name, once.
    group.wait_durable(file.append(1)).unwrap();
    assert_eq!((file.syncs(), env.dir_syncs.load(Ordering::SeqCst)), (2, 1));
}

#[test]
fn a_position_that_was_never_written_is_not_durable() {
    let (_, _, group, file) = log(true);
    let end = file.append(100).end;
    assert!(group.wait_durable(Position { segment: 1, end: end + 1 }).is_err());
    assert!(group.wait_durable(Position { segment: 2, end: 1 }).is_err());
    // That was the caller's fault, and changes nothing for others.
    group.wait_durable(Position { segment: 1, end }).unwrap();
}

#[test]
fn waiters_share_syncs() {
    let (_, journal, group, file) = log(true);
    file.takes.store(2, Ordering::SeqCst);
    let (threads, each) = (8, 20);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..each {
                    let position = file.append(1);
                    group.wait_durable(position).unwrap();
                    assert!(journal.lock().iter().any(|p| *p >= position));
                }
            });
        }
    });
    assert_eq!(group.durable(), Position { segment: 1, end: FIRST_FRAME + threads * each });
    // While one sync runs, all others gather for the next: about `each` to twice that.
    assert!(file.syncs() <= 3 * each, "{} syncs for {} writes", file.syncs(), threads * each);
}

#[test]
fn who_shared_a_sync_is_waited_for_and_nobody_else() {
    let (env, _, group, file) = log(true);
    let write = || group.wait_durable(file.append(1)).unwrap();
    share_a_sync(&env, &group, &file);
    assert_eq!(file.syncs(), 2);
    // They were two. When one of them comes again, its sync is for the other as well, which has a
    // second to come: time hardly passes.
    env.clock_step.store(1, Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(write);
        until_gathering(&group, &file, 2);
        scope.spawn(write);
    });
    assert_eq!(file.syncs(), 3);
    // If it does not come, the time passes.
    env.clock_step.store(1_000_000_000, Ordering::Relaxed);
    write();
    assert_eq!(file.syncs(), 4);
    // Now it was alone, and waits for nobody: the clock stands still.
    env.clock_step.store(0, Ordering::Relaxed);
    write();
    assert_eq!(file.syncs(), 5);
}

/// Who waited for others to share its sync was told that its position is beyond the log, when all of the log had come into
/// tables meanwhile, as at a close.
#[test]
fn what_became_durable_while_others_were_waited_for_was_called_beyond_the_log() {
    let (env, _, group, file) = log(true);
    let write = || group.wait_durable(file.append(1)).unwrap();
    share_a_sync(&env, &group, &file);
    // The last sync was for two, so the next waits for another, and time hardly passes.
    env.clock_step.store(1, Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(write);
        until_gathering(&group, &file, 2);
        group.retire(u64::MAX);
        env.clock_step.store(1_000_000_000, Ordering::Relaxed);
    });
}

#[test]
fn older_segments_come_first() {
    let (_, journal, group, first) = log(false);
    let mut last = first.append(10);
    let mut files = vec![first];
    for n in 2..=4 {
        files.push(Fake::new(n, &journal));
        group.rotate(files.last().unwrap().clone(), false);
        last = files.last().unwrap().append(10);
    }
    group.wait_durable(last).unwrap();
    let order: Vec<u64> = journal.lock().iter().map(|p| p.segment).collect();
    assert_eq!(order, [1, 2, 3, 4]);
    // Complete ones are never synced again.
    group.wait_durable(files[3].append(1)).unwrap();
    assert_eq!(files.iter().map(|f| f.syncs()).collect::<Vec<_>>(), [1, 1, 1, 2]);
}

/// A flush that leaves large values in the log waits for its own segments, and waited for what was written beside it too.
#[test]
fn who_wants_a_sealed_segment_waited_for_the_one_that_is_written_to() {
    let (_, journal, group, sealed) = log(true);
    let end = sealed.append(10);
    let active = Fake::new(2, &journal);
    group.rotate(active.clone(), true);
    let written = active.append(10);
    group.wait_durable(end).unwrap();
    assert_eq!((sealed.syncs(), active.syncs()), (1, 0));
    group.wait_durable(written).unwrap();
    assert_eq!((sealed.syncs(), active.syncs()), (1, 1));
}

#[test]
fn a_tail_that_was_not_synced_is_synced_before_the_successor() {
    let (_, journal, group, old) = log(true);
    let new = Fake::new(2, &journal);
    group.wait_durable(old.append(10)).unwrap();
    let tail = old.append(5); // and the seal
    group.rotate(new.clone(), true);
    group.wait_durable(new.append(10)).unwrap();
    assert_eq!(journal.lock()[1], tail);
}

#[test]
fn a_failure_reaches_all_and_stays() {
    let (_, _, group, file) = log(true);
    let before = file.append(10);
    group.wait_durable(before).unwrap();
    let gate = file.gate.lock();
    file.fail(true);
    let waiters: Vec<_> = (0..6)
        .map(|_| {
            let (group, position) = (group.clone(), file.append(10));
            thread::spawn(move || group.wait_durable(position))
        })
        .collect();
    until_syncing(&file, 1);
    drop(gate);
    for waiter in waiters {
        assert!(waiter.join().unwrap().unwrap_err().to_string().contains("medium"));
    }
    assert!(group.failed().is_some());
    // The medium recovers; the group does not believe it, nor ask.
    file.fail(false);
    assert!(group.wait_durable(file.append(1)).is_err());
    assert!(group.sync_all().is_err());
    assert_eq!(file.syncs(), 2);
    // What was durable remains so.
    group.wait_durable(before).unwrap();
}

/// A write that was durable before the failure was told of it when somebody had reset the log meanwhile.
#[test]
fn what_was_durable_before_a_reset_is_so_before_the_rest_is_settled() {
    let (_, journal, group, old) = log(true);
    let new = Fake::new(2, &journal);
    let before = old.append(10);
    group.wait_durable(before).unwrap();
    let lost = old.append(10);
    old.fail(true);
    assert!(group.wait_durable(lost).is_err());
    group.reset(new.clone(), true);
    let after = new.append(10);
    group.wait_durable(after).unwrap();
    assert!(group.check_settled(before).is_ok());
    assert!(group.check_settled(lost).is_err() && group.check_settled(after).is_err());
    // Nor is it after another failure and reset.
    new.fail(true);
    assert!(group.wait_durable(new.append(10)).is_err());
    group.reset(Fake::new(3, &journal), true);
    assert!(group.check_settled(before).is_ok());
    assert!(group.check_settled(lost).is_err() && group.check_settled(after).is_err());
    group.settle();
    assert!(group.check_settled(after).is_ok());
}

#[test]
fn a_failure_in_an_old_segment_keeps_the_new_one_from_counting() {
    let (_, journal, group, old) = log(true);
    let new = Fake::new(2, &journal);
    old.append(10);
    old.fail(true);
    group.rotate(new.clone(), true);
    assert!(group.wait_durable(new.append(10)).is_err());
    assert_eq!((old.syncs(), new.syncs()), (1, 0));
}

#[test]
fn a_directory_that_cannot_be_synced_is_a_failure() {
    let (env, _, group, file) = log(false);
    env.fail_dir_sync.store(true, Ordering::SeqCst);
    assert!(group.wait_durable(file.append(10)).is_err());
    assert_eq!(file.syncs(), 0);
    assert!(group.failed().is_some());
}

#[test]
fn after_a_reset_the_log_goes_on() {
    let (_, journal, group, old) = log(true);
    let new = Fake::new(2, &journal);
    old.fail(true);
    let position = old.append(10);
    assert!(group.wait_durable(position).is_err());
    group.reset(new.clone(), false);
    assert!(group.failed().is_none());
    group.wait_durable(new.append(10)).unwrap();
    assert_eq!(old.syncs(), 1);
    // The caller vouched for what came before.
    group.wait_durable(position).unwrap();
}

#[test]
fn who_slept_through_failure_and_reset_is_told() {
    let (_, journal, group, _) = log(true);
    // Many rounds: who wakes first is up to the scheduler.
    for round in 0..if cfg!(miri) { 3 } else { 200 } {
        let old = Fake::new(2 * round + 2, &journal);
        group.reset(old.clone(), true);
        let gate = old.gate.lock();
        old.fail(true);
        let leader = {
            let (group, position) = (group.clone(), old.append(10));
            thread::spawn(move || group.wait_durable(position))
        };
        until_syncing(&old, 0);
        let sleeper = {
            let (group, position) = (group.clone(), old.append(10));
            thread::spawn(move || group.wait_durable(position))
        };
        // It waits now, or comes to find the failure; not later than the reset, mostly.
        thread::sleep(Duration::from_micros(200));
        drop(gate);
        while group.failed().is_none() {
            thread::yield_now();
        }
        group.reset(Fake::new(2 * round + 3, &journal), true);
        assert!(leader.join().unwrap().is_err());
        let _ = sleeper.join().unwrap(); // Ok only if it came after the reset; never a hang
    }
}

#[test]
fn no_hole_is_ever_claimed() {
    // Writers append and wait while segments rotate; whatever is claimed durable must be, and
    // everything before it.
    let (_, journal, group, first) = log(false);
    let active = Mutex::new(first);
    thread::scope(|scope| {
        for writer in 0..4 {
            let (group, active, journal) = (&group, &active, &journal);
            scope.spawn(move || {
                for i in 0..100u64 {
                    let position = {
                        let mut active = active.lock();
                        if (i + writer) % 13 == 0 {
                            let next = Fake::new(active.number + 1, journal);
                            active.append(16); // the seal
                            group.rotate(next.clone(), false);
                            *active = next;
                        }
                        active.append(8)
                    };
                    group.wait_durable(position).unwrap();
                    assert!(group.durable() >= position);
                }
            });
        }
    });
    let mut seen = Position::default();
    for p in journal.lock().iter() {
        assert!(*p >= seen, "{p:?} became durable after {seen:?}");
        seen = *p;
    }
}
