//! Group commit: what is appended, what is durable, and who makes it so.
//!
//! Invariants:
//!
//! - segments become durable in order. A sync makes everything in older segments durable first, so
//!   the durable log is a prefix of the appended one: no holes;
//! - a file counts as durable only when its name is (the directory was synced after the file was
//!   created or renamed);
//! - a failed sync is final. It reaches every thread that waits for what it should have made
//!   durable, and nothing is synced again until [`SyncGroup::reset`].
//!
//! What to do next is decided by [`Ledger`], which does nothing; doing it, with the lock released,
//! is the leader's part: the first thread to need a sync while none is under way. All others wait
//! and are often covered by that sync or share the next one.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::format::{FIRST_FRAME_OFFSET, Position};
use super::segment::Segment;
use super::waiters::{Verdict, WaitSlot, Waiters};
use crate::dir_sync::DirSync;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::util::sync::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, yield_now};

/// What is synced: a segment, or a test's stand-in.
pub(crate) trait Syncable: Send + Sync + Debug {
    fn number(&self) -> u64;
    /// Everything before this offset is written.
    fn end(&self) -> u64;
    /// Makes what was written before the call durable.
    fn sync(&self) -> Result<()>;
    /// Whether a sync failed that was tried: what it was for may be lost.
    fn sync_failed(&self) -> bool;
}

impl Syncable for Segment {
    fn number(&self) -> u64 {
        Segment::number(self)
    }
    fn end(&self) -> u64 {
        Segment::end(self)
    }
    fn sync(&self) -> Result<()> {
        Segment::sync(self)
    }
    fn sync_failed(&self) -> bool {
        Segment::sync_failed(self)
    }
}

/// One segment in the ledger.
#[derive(Debug)]
struct Tracked<S: ?Sized> {
    /// Whether the file's name is durable.
    named: bool,
    /// Everything before this offset is durable.
    durable: u64,
    file: Arc<S>,
}

/// One step of a sync.
#[derive(Debug)]
struct Step<S: ?Sized> {
    file: Arc<S>,
    /// Whether the directory has to be synced as well.
    name: bool,
    /// How far the file will be durable.
    end: u64,
}

/// The decisions of group commit, without the doing.
#[derive(Debug)]
struct Ledger<S: ?Sized> {
    /// In order of their numbers; all but the last are complete. A complete one leaves once it is
    /// durable.
    files: VecDeque<Tracked<S>>,
    /// Everything before this is durable.
    durable: Position,
    /// The failure that stopped syncing.
    failed: Option<Error>,
    /// How often a failure was put behind us, and what the last one was: a thread that slept
    /// through failure and reset must still learn of it, unless what it waits for came before.
    resets: u64,
    last_failure: Option<(Position, Error)>,
    /// Whether a leader is at work, or chosen and on its way.
    syncing: bool,
    waiting: Waiters,
    /// How many threads the last sync was for, and how long it took.
    last_group: usize,
    last_took: Duration,
}

/// What a waiting thread has to do.
enum Next {
    Done(Result<()>),
    Lead,
    Wait,
}

impl<S: Syncable + ?Sized> Ledger<S> {
    /// What a thread that wants `position` durable does next. `resets` is what it saw when it came.
    fn next(&self, position: Position, resets: u64) -> Next {
        if self.resets != resets
            && let Some((durable, e)) = &self.last_failure
            && position > *durable
        {
            return Next::Done(Err(e.clone()));
        }
        if position <= self.durable {
            return Next::Done(Ok(()));
        }
        match &self.failed {
            Some(e) => Next::Done(Err(e.clone())),
            None if self.syncing => Next::Wait,
            None => Next::Lead,
        }
    }

    /// What must be synced, in this order, to make all durable that is written now for a thread that wants `position`,
    /// and for those that wait. A flush wants no segment that is still written to.
    fn plan(&self, position: Position) -> Vec<Step<S>> {
        let upto = self.waiting.furthest().map_or(position, |p| p.max(position)).segment;
        self.files
            .iter()
            .take_while(|t| t.file.number() <= upto)
            .map(|t| Step { file: Arc::clone(&t.file), name: !t.named, end: t.file.end() })
            .zip(&self.files)
            .filter(|(step, t)| step.name || step.end > t.durable)
            .map(|(step, _)| step)
            .collect()
    }

    /// Notes that a step succeeded. All steps before it did.
    fn done(&mut self, step: &Step<S>) {
        let number = step.file.number();
        if let Some(t) = self.files.iter_mut().find(|t| t.file.number() == number) {
            t.named = true;
            t.durable = t.durable.max(step.end);
        }
        self.durable = self.durable.max(Position { segment: number, end: step.end });
        self.drop_complete();
    }

    fn drop_complete(&mut self) {
        while self.files.len() > 1
            && self.files[0].named
            && self.files[0].durable >= self.files[0].file.end()
        {
            self.files.pop_front();
        }
    }

    fn add(&mut self, file: Arc<S>, named: bool) {
        let number = file.number();
        assert!(self.files.back().is_none_or(|t| t.file.number() < number), "out of order");
        self.files.push_back(Tracked { named, durable: 0, file });
        self.drop_complete();
    }
}

/// Group commit over the segments of a log.
#[derive(Debug)]
pub(crate) struct SyncGroup<S: Syncable + ?Sized = Segment> {
    env: Arc<dyn Env>,
    dir_sync: Arc<DirSync>,
    ledger: Mutex<Ledger<S>>,
    /// Signalled when no leader is at work.
    idle: Condvar,
    /// Whether `ledger.failed` is set: asked before every write, so without the lock.
    failed: AtomicBool,
    /// How far the log was durable when it was reset, and after what failure; until what it held is durable elsewhere.
    unsettled: Mutex<Option<(Position, Error)>>,
    /// Rounds of syncing that succeeded.
    rounds: AtomicU64,
    /// How often somebody who wrote wanted it durable, and how often [`was_used`](Self::was_used) has seen.
    asked: AtomicU64,
    asked_seen: AtomicU64,
}

impl<S: Syncable + ?Sized> SyncGroup<S> {
    /// For a log whose segments have their names in the directory that `dir_sync` syncs. Nothing is tracked yet.
    pub(crate) fn new(env: Arc<dyn Env>, dir_sync: Arc<DirSync>) -> SyncGroup<S> {
        let ledger = Ledger {
            files: VecDeque::new(),
            durable: Position::default(),
            failed: None,
            resets: 0,
            last_failure: None,
            syncing: false,
            waiting: Waiters::default(),
            last_group: 1,
            last_took: Duration::ZERO,
        };
        SyncGroup {
            env,
            dir_sync,
            ledger: Mutex::new(ledger),
            idle: Condvar::new(),
            failed: AtomicBool::new(false),
            unsettled: Mutex::new(None),
            rounds: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            asked_seen: AtomicU64::new(0),
        }
    }

    /// Appending will go on in `file`: called after the one before was sealed, and before the first
    /// append. `named` tells that its name is durable already: the first synced write in it is spared two flushes.
    ///
    /// How far a segment is written is asked of it, so that appending costs nothing here.
    pub(crate) fn rotate(&self, file: Arc<S>, named: bool) {
        self.ledger.lock().add(file, named);
    }

    /// Returns when everything before `position` is durable, or the failure that keeps it from
    /// becoming so.
    pub(crate) fn wait_durable(&self, position: Position) -> Result<()> {
        let mut ledger = self.ledger.lock();
        let resets = ledger.resets;
        // Whether this thread was made the leader while it slept; `syncing` is held for it.
        let mut chosen = false;
        loop {
            if chosen {
                ledger.syncing = false;
            }
            match ledger.next(position, resets) {
                Next::Done(result) => {
                    if chosen {
                        self.hand_over(ledger);
                    }
                    return result;
                }
                Next::Wait => {
                    let slot = WaitSlot::of_this_thread();
                    ledger.waiting.push(position, Arc::clone(&slot));
                    drop(ledger);
                    match slot.wait() {
                        Verdict::Covered => return Ok(()),
                        verdict => chosen = verdict == Verdict::Lead,
                    }
                    ledger = self.ledger.lock();
                }
                Next::Lead => {
                    chosen = false;
                    if let Some(result) = self.lead(ledger, position, resets) {
                        return result;
                    }
                    ledger = self.ledger.lock();
                }
            }
        }
    }

    /// A sync for this thread and all that wait, of whom one leads the next. What came of it for this thread; `None`: the
    /// ledger says.
    fn lead(
        &self,
        ledger: MutexGuard<'_, Ledger<S>>,
        position: Position,
        resets: u64,
    ) -> Option<Result<()>> {
        let mut ledger = self.gather(ledger);
        ledger.syncing = false;
        // While others came it may have become durable in another way.
        if let Next::Done(result) = ledger.next(position, resets) {
            self.hand_over(ledger);
            return Some(result);
        }
        let plan = ledger.plan(position);
        if plan.is_empty() {
            self.hand_over(ledger);
            // A position that was never written: a bug of the caller's. It must not
            // pass for durable.
            let what = format!("{position:?} is beyond the log, and cannot be synced");
            return Some(Err(Error::Internal { what }));
        }
        ledger.syncing = true;
        drop(ledger);
        let began = self.env.now();
        let result = self.carry_out(&plan);
        let mut ledger = self.ledger.lock();
        ledger.syncing = false;
        ledger.last_took = self.env.now().saturating_sub(began);
        if let Err(e) = result {
            let lost =
                plan.iter().any(|step| step.file.sync_failed()) || self.dir_sync.failed().is_some();
            if !lost && ledger.failed.is_none() {
                // It was not tried. Those who wait try for themselves.
                let covered = position <= ledger.durable;
                self.hand_over(ledger);
                return Some(if covered { Ok(()) } else { Err(e) });
            }
            self.failed.store(true, Ordering::Release);
            ledger.failed = Some(e);
        }
        self.hand_over(ledger);
        None
    }

    /// Lets the threads that shared the last sync come back with their next writes: they were woken
    /// a moment ago, and a sync that leaves without them costs them a whole one. Waits no longer than
    /// a sync takes, and not at all for a thread that writes alone.
    fn gather<'a>(&'a self, mut ledger: MutexGuard<'a, Ledger<S>>) -> MutexGuard<'a, Ledger<S>> {
        let (group, took) = (ledger.last_group, ledger.last_took);
        if group > 1 {
            // Those who come queue up behind this leader.
            ledger.syncing = true;
            let began = self.env.now();
            while ledger.waiting.len() + 1 < group && self.env.now().saturating_sub(began) < took {
                drop(ledger);
                yield_now();
                ledger = self.ledger.lock();
            }
        }
        ledger.last_group = ledger.waiting.len() + 1;
        ledger
    }

    /// Tells waiting threads what has become of them, and makes one of those that go on waiting the
    /// leader if nobody is.
    fn hand_over(&self, mut ledger: MutexGuard<'_, Ledger<S>>) {
        let (durable, all) = (ledger.durable, ledger.failed.is_some());
        let lead = !ledger.syncing;
        let (wakes, led) = ledger.waiting.take(durable, lead, all);
        ledger.syncing |= led;
        if !ledger.syncing {
            self.idle.notify_all();
        }
        drop(ledger);
        wakes.wake();
    }

    /// Makes everything that is written now durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let position = {
            let ledger = self.ledger.lock();
            let Some(last) = ledger.files.back() else { return Ok(()) };
            Position { segment: last.file.number(), end: last.file.end() }
        };
        self.wait_durable(position)
    }

    /// Syncs of the directory in which the log is.
    pub(crate) fn dir_sync(&self) -> &DirSync {
        &self.dir_sync
    }

    /// How many threads wait for another that leads.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.ledger.lock().waiting.len()
    }

    /// Whether a thread syncs, or waits for others to share its sync.
    #[cfg(test)]
    pub(super) fn syncing(&self) -> bool {
        self.ledger.lock().syncing
    }

    /// Somebody who wrote wants it durable. A flush that leaves large values in the log does not count: what it has synced is
    /// not written to any more.
    pub(crate) fn note_asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether somebody did since this was asked before.
    pub(crate) fn was_used(&self) -> bool {
        let asked = self.asked.load(Ordering::Relaxed);
        self.asked_seen.swap(asked, Ordering::Relaxed) != asked
    }

    /// How often waiting threads shared a sync since the store was opened.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Everything before this position is durable, the header of its segment included.
    pub(crate) fn durable(&self) -> Position {
        let ledger = self.ledger.lock();
        // What is older than the first file is durable, and so is a file's header when its name is.
        let header = ledger
            .files
            .front()
            .filter(|t| t.named)
            .map(|t| Position { segment: t.file.number(), end: FIRST_FRAME_OFFSET });
        ledger.durable.max(header.unwrap_or_default())
    }

    /// The failure that stopped syncing. While there is one, nothing may be written to the log.
    #[inline]
    pub(crate) fn failed(&self) -> Option<Error> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.ledger.lock().failed.clone()
    }

    /// Tells of the failure that stopped syncing, which is not put behind us meanwhile.
    pub(crate) fn while_failed(&self, tell: impl FnOnce(&Error)) {
        if self.failed.load(Ordering::Acquire)
            && let Some(e) = &self.ledger.lock().failed
        {
            tell(e);
        }
    }

    /// Where a sync of the directory failed the names of files may be lost: what is in the log is as after a failed sync of
    /// it. Nothing of a failure that was resumed from.
    pub(crate) fn note_lost_names(&self) {
        let ledger = self.ledger.lock();
        let lost = self.dir_sync.failed();
        self.fail(ledger, lost);
    }

    /// The same for a resume, which goes on in files of other names. Who met the failure may not have come to say so yet,
    /// and finds nothing any more.
    pub(crate) fn forget_lost_names(&self) {
        let ledger = self.ledger.lock();
        let lost = self.dir_sync.forget();
        self.fail(ledger, lost);
    }

    fn fail(&self, mut ledger: MutexGuard<'_, Ledger<S>>, e: Option<Error>) {
        if let Some(e) = e {
            self.failed.store(true, Ordering::Release);
            ledger.failed.get_or_insert(e);
            self.hand_over(ledger);
        }
    }

    /// The log goes on in `file`, which is new; what was tracked is forgotten, a failure included.
    ///
    /// Threads that still wait for a sync that failed are told of the failure. The caller makes all that the older
    /// segments hold durable in another way, in tables and in the manifest, and [says so](SyncGroup::settle) when it is.
    pub(crate) fn reset(&self, file: Arc<S>, named: bool) {
        let mut ledger = self.ledger.lock();
        while ledger.syncing {
            self.idle.wait(&mut ledger);
        }
        if let Some(e) = ledger.failed.take() {
            // What an earlier reset left unsettled is no more durable for this one.
            let durable = self.unsettled.lock().get_or_insert((ledger.durable, e.clone())).0;
            ledger.last_failure = Some((durable, e));
            ledger.resets += 1;
        }
        ledger.files.clear();
        ledger.durable = Position { segment: file.number(), end: 0 };
        ledger.add(file, named);
        self.failed.store(false, Ordering::Release);
        self.hand_over(ledger);
    }

    /// What was in the log before it was reset is durable elsewhere.
    pub(crate) fn settle(&self) {
        *self.unsettled.lock() = None;
    }

    /// The failure that the log was reset after, if what it held before `position` is not known to be durable yet: nobody
    /// may be told that it is.
    pub(crate) fn check_settled(&self, position: Position) -> Result<()> {
        match &*self.unsettled.lock() {
            Some((durable, e)) if position > *durable => Err(e.clone()),
            _ => Ok(()),
        }
    }

    /// Segments below `number` are no longer part of the log: what they held is durable in tables.
    /// A sync that is under way still ends on them.
    pub(crate) fn retire(&self, number: u64) {
        let mut ledger = self.ledger.lock();
        while ledger.files.front().is_some_and(|t| t.file.number() < number) {
            let Some(t) = ledger.files.pop_front() else { break };
            let end = Position { segment: t.file.number(), end: t.file.end() };
            ledger.durable = ledger.durable.max(end);
        }
        self.hand_over(ledger);
    }

    /// Syncs one file after the other, and stops at the first failure.
    fn carry_out(&self, plan: &[Step<S>]) -> Result<()> {
        for step in plan {
            if step.name {
                self.dir_sync.sync()?;
                // That of one which failed may have been forgotten since, as the log goes on in another file.
                self.failed().map_or(Ok(()), Err)?;
            }
            step.file.sync()?;
            self.ledger.lock().done(step);
        }
        self.rounds.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
