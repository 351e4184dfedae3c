//! Workloads in which calls fail: what each operation says then, what is read meanwhile, how the
//! store goes on, and what a crash leaves of it.

use std::path::Path;
use std::sync::Arc;

use super::oracle::{self, State};
use super::workload::{DIR, Op, World};
use crate::env::sim::{CallKind, Cut, FaultPlan, Rng, SimEnv};
use crate::{Db, Durability, Error};

/// Everything that a store does, in an order in which each finds something to do.
pub(super) const ALL_KINDS: [Op; 31] = {
    use Op::*;
    [
        Put,
        Create,
        Batch,
        Put,
        Batch,
        Rest(0),
        Put,
        Put,
        Flush,
        Batch,
        Put,
        Sync,
        BulkLoad,
        Put,
        Delete,
        Rest(100),
        Batch,
        Compact,
        Put,
        Checkpoint,
        Put,
        Batch,
        Put,
        Rest(3000),
        Put,
        Drop,
        Put,
        Reopen,
        Batch,
        Put,
        Flush,
    ]
};

/// How a run deals with what goes wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub seed: u64,
    pub plan: Option<FaultPlan>,
    /// How many operations later writes are resumed.
    pub patience: usize,
    /// How many more faults there are, at random calls: `resume` meets some.
    pub more: usize,
    /// Random operations instead of [`ALL_KINDS`].
    pub random_ops: usize,
    /// Disks that are looked at after each failure, and at the end.
    pub images: usize,
    pub stepped: bool,
}

/// What came of it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tally {
    pub runs: usize,
    /// Calls of a run in which none fails.
    pub calls: u64,
    /// Calls that failed.
    pub failed: usize,
    /// Operations that said so.
    pub errors: usize,
    pub halts: usize,
    /// Calls of `resume` that failed and that did not.
    pub vain: usize,
    pub resumed: usize,
    pub images: usize,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.runs += other.runs;
        self.calls += other.calls;
        self.failed += other.failed;
        self.errors += other.errors;
        self.halts += other.halts;
        self.vain += other.vain;
        self.resumed += other.resumed;
        self.images += other.images;
    }
}

/// Runs a case. The tally, and the calls that were made.
pub(super) fn run(case: Case) -> Result<(Tally, Vec<CallKind>), String> {
    let env = SimEnv::new(case.seed, case.stepped);
    env.fail(case.plan);
    let world = World::new(case.seed, env.clone(), case.stepped);
    let mut trial = Trial {
        case,
        env: env.clone(),
        world,
        tally: Tally { runs: 1, ..Tally::default() },
        more: case.more,
        rng: Rng::part(case.seed, 3),
    };
    let result = trial.live();
    trial.world.db.take();
    let calls = env.calls();
    trial.tally.failed = calls.iter().filter(|c| c.failed).count();
    result.map_err(|e| {
        let shown = |(n, c): (usize, &crate::env::sim::Call)| {
            (c.kind.changes() || c.failed).then(|| format!("  {n} {c}"))
        };
        // Up to the call that is spoken of, if one is.
        let spoken = e.strip_prefix("call ").and_then(|e| e.split(':').next()?.parse().ok());
        let upto = spoken.map_or(calls.len(), |n: usize| (n + 1).min(calls.len()));
        let mut last: Vec<_> = calls[..upto].iter().enumerate().filter_map(shown).collect();
        let last = last.split_off(last.len().saturating_sub(40));
        format!("{case:?}\n{e}\nlast calls:\n{}", last.join("\n"))
    })?;
    Ok((trial.tally, calls.iter().map(|c| c.kind).collect()))
}

struct Trial {
    case: Case,
    env: SimEnv,
    world: World,
    tally: Tally,
    /// Faults that are still to come.
    more: usize,
    rng: Rng,
}

impl Trial {
    fn persists(&self) -> bool {
        self.case.plan.is_some_and(|p| p.from_then_on)
    }

    fn live(&mut self) -> Result<(), String> {
        if let Err(e) = self.world.open() {
            self.failed(&e)?;
            if self.persists() && self.world.open().is_ok() {
                return Err("the store opens, though every call fails".to_string());
            }
            self.env.fail(None);
            self.world
                .open()
                .map_err(|e| format!("opening, with nothing failing any more: {e}"))?;
        }
        let ops = match self.case.random_ops {
            0 => ALL_KINDS.map(Some).to_vec(),
            n => vec![None; n],
        };
        let mut since_halt = 0;
        for (n, op) in ops.iter().enumerate() {
            self.operate(*op).map_err(|e| format!("operation {n}, {op:?}: {e}"))?;
            if self.world.db.is_none() && !self.persists() {
                self.reopen().map_err(|e| format!("after operation {n}, {op:?}: {e}"))?;
            }
            if self.halted() && !self.persists() {
                since_halt += 1;
                if since_halt > self.case.patience {
                    since_halt = 0;
                    self.resume().map_err(|e| format!("after operation {n}, {op:?}: {e}"))?;
                }
            }
            if self.more > 0 && !self.persists() && self.rng.one_in(8) {
                self.more -= 1;
                self.next_fault(60);
            }
        }
        if self.persists() {
            self.go_on_in_vain()?;
        }
        self.more = 0;
        self.env.fail(None);
        self.images("at the end, before anything is put right")?;
        if self.world.db.is_none() {
            self.reopen()?;
        }
        if self.halted() {
            self.resume()?;
        }
        for op in [Op::Put, Op::Batch, Op::Sync, Op::Rest(100), Op::Put, Op::Rest(3000)] {
            let done = self.world.run(op);
            done.map_err(|e| format!("{op:?}, with nothing failing any more: {e}"))?;
        }
        self.read_last()?;
        self.images("at the very end")?;
        let mut violations = self.env.violations();
        if !self.case.stepped {
            // A thread may be in the middle of a write when the sync of another fails.
            violations.retain(|v| v.contains(": Sync "));
        }
        if !violations.is_empty() {
            return Err(violations.join("\n"));
        }
        self.world.run(Op::Reopen).map_err(|e| format!("the last reopen: {e}"))?;
        self.read_last()?;
        let problems = self.db().verify().map_err(|e| e.to_string())?.problems;
        if !problems.is_empty() {
            return Err(format!("verify: {problems:?}"));
        }
        Ok(())
    }

    fn db(&self) -> &Db {
        self.world.db.as_ref().expect("the store is open")
    }

    fn halted(&self) -> bool {
        self.world.db.as_ref().is_some_and(|db| db.store().halt_cause().is_some())
    }

    fn next_fault(&mut self, within: usize) {
        let fault = crate::env::sim::Fault::ALL[self.rng.below(5)];
        let at = self.env.call_count() + self.rng.below(within) as u64;
        self.env.fail(Some(FaultPlan { at, fault, from_then_on: false }));
    }

    /// An error names its cause, and a call that failed is not taken for damage.
    fn failed(&mut self, e: &Error) -> Result<(), String> {
        self.tally.errors += 1;
        let cause = match e {
            Error::Halted { cause } => cause,
            other => other,
        };
        match cause {
            Error::Io { .. } => Ok(()),
            other => Err(format!("an error of the wrong kind: {other:?}")),
        }
    }

    /// One operation, which may fail.
    fn operate(&mut self, op: Option<Op>) -> Result<(), String> {
        if self.world.db.is_none() {
            return Ok(());
        }
        let before = self.world.history.len();
        let halted = self.halted();
        let was = Arc::clone(self.world.history.last());
        let result = match op {
            Some(op) => self.world.run(op),
            None => self.world.act(),
        };
        let now = match self.world.db {
            Some(_) => self.read()?,
            None => State::clone(self.world.history.last()),
        };
        match result {
            // A sync may: it changes nothing, and what it says is looked at.
            Ok(()) if halted && self.halted() && *self.world.history.last() != was => {
                return Err("it succeeds, though writes have stopped".to_string());
            }
            Ok(()) if halted && !self.halted() => return self.world.resumed(&now),
            Ok(()) if *self.world.history.last().as_ref() != now => {
                return Err(self.world.history.not_last(&now));
            }
            Ok(()) if op == Some(Op::Sync) => self.images("after a sync")?,
            Ok(()) => {}
            Err(e) => {
                self.failed(&e)?;
                self.world.settle(before, &now).map_err(|what| format!("{e}: {what}"))?;
            }
        }
        if self.halted() && !halted {
            self.tally.halts += 1;
            self.images("as writes stopped")?;
        }
        Ok(())
    }

    fn read(&self) -> Result<State, String> {
        oracle::read(self.db()).map_err(|e| format!("reads must go on: {e}"))
    }

    fn read_last(&self) -> Result<(), String> {
        let now = self.read()?;
        match *self.world.history.last().as_ref() == now {
            true => Ok(()),
            false => Err(self.world.history.not_last(&now)),
        }
    }

    /// Opens the store again after a reopening that failed.
    fn reopen(&mut self) -> Result<(), String> {
        self.env.fail(None);
        self.world.open().map_err(|e| format!("opening, with nothing failing any more: {e}"))?;
        let now = self.read()?;
        self.world.resumed(&now)
    }

    /// Goes on after a failure, whose cause is gone unless another is about to come.
    fn resume(&mut self) -> Result<(), String> {
        let before = self.read()?;
        self.refuses_writes()?;
        while self.more > 0 {
            self.more -= 1;
            self.next_fault(30);
            let resumed = self.db().resume();
            if self.read()? != before {
                return Err("a resume that failed changed what is read".to_string());
            }
            match resumed {
                Ok(()) if !self.halted() => break,
                Ok(()) => {}
                Err(e) => {
                    self.failed(&e)?;
                    self.refuses_writes()?;
                    self.tally.vain += 1;
                    self.images("after a resume that failed")?;
                }
            }
        }
        if self.halted() {
            self.env.fail(None);
            self.db()
                .resume()
                .map_err(|e| format!("resume, with nothing failing any more: {e}"))?;
        }
        self.tally.resumed += 1;
        if self.read()? != before {
            return Err("resume changed what is read".to_string());
        }
        self.world.resumed(&before)?;
        self.images("after resume")
    }

    fn refuses_writes(&self) -> Result<(), String> {
        match self.db().put_with("refused", "", Durability::Buffered) {
            Err(Error::Halted { .. }) => Ok(()),
            Err(e) => Err(format!("writes have stopped, and a put says {e}")),
            Ok(()) => Err("writes have stopped, and a put succeeds".to_string()),
        }
    }

    /// As long as everything fails, `resume` says so, and what is there stays there.
    fn go_on_in_vain(&mut self) -> Result<(), String> {
        if self.world.db.is_none() || !self.halted() {
            return Ok(());
        }
        for _ in 0..2 {
            let Err(e) = self.db().resume() else {
                return Err("resume succeeds, though every call fails".to_string());
            };
            self.failed(&e)?;
            self.tally.vain += 1;
            self.refuses_writes()?;
            self.read_last()?;
        }
        Ok(())
    }

    /// Disks that a crash may leave now, opened and compared.
    fn images(&mut self, when: &str) -> Result<(), String> {
        let frozen = self.env.freeze();
        for i in 0..self.case.images {
            let cut = match i {
                0 => Cut::Kill,
                1 => Cut::Nothing,
                _ => Cut::Random,
            };
            let (disk, story) = frozen.draw(cut, &mut self.rng, true);
            let mut promise = frozen.promise;
            if cut == Cut::Kill {
                promise.durable = promise.acknowledged;
            }
            self.tally.images += 1;
            let look = || {
                let options = self.world.options.clone();
                let db = Db::open_in(Arc::new(disk.clone()), Path::new(DIR), options);
                let db = db.map_err(|e| format!("opening: {e}"))?;
                let found = oracle::read(&db)?;
                self.world.history.judge(&found, &promise)
            };
            look().map_err(|e| format!("a crash {when}, {story}\n{e}"))?;
            disk.turn_off();
        }
        Ok(())
    }
}
