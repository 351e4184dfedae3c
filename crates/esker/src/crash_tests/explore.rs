//! From a moment of a workload: disks as they may be found, each opened and compared.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::oracle::{self, State};
use super::workload::{DIR, World};
use crate::env::sim::{CrashPoints, Cut, Frozen, Promise, Rng, SimEnv};
use crate::{Db, Durability, Options};

/// How many of each.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub moments: usize,
    pub images: usize,
    /// Recoveries that a crash cut off, with the recovery from that.
    pub nested: usize,
    pub checkpoints: usize,
}

/// What to explore.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImagePlan {
    pub seed: u64,
    pub ops: usize,
    pub points: CrashPoints,
    pub images: usize,
    /// Whether recoveries are cut off too.
    pub nested: bool,
    pub stepped: bool,
}

/// Runs a workload and explores what each of its moments may leave.
pub(super) fn explore(plan: ImagePlan) -> Counts {
    let _note = OnPanic(format!(
        "to see this again: ESKER_SEED={} cargo test -p esker --lib crash_tests ({plan:?})",
        plan.seed
    ));
    let env = SimEnv::new(plan.seed, plan.stepped);
    env.set_crash_points(plan.points);
    let mut world = World::new(plan.seed, env.clone(), plan.stepped);
    world.open().unwrap_or_else(|e| panic!("the first open: {e}"));
    let mut moments = Vec::new();
    let mut rng = Rng::part(plan.seed, 2);
    for op in 0..plan.ops {
        world.act().unwrap_or_else(|e| panic!("operation {op}: {e}"));
        moments.append(&mut env.take_frozen());
        // Buffered writes make no call: look between operations too.
        if rng.one_in(4) {
            moments.push(env.freeze());
        }
    }
    world.db.take();
    moments.append(&mut env.take_frozen());
    let calls = env.calls();
    let mut counts = Counts { moments: moments.len(), ..Counts::default() };
    for (m, moment) in moments.iter().enumerate() {
        for i in 0..plan.images {
            let mut rng = Rng::part(plan.seed ^ (m as u64) << 32, i as u64);
            let explorer = Explorer { world: &world, moment, plan };
            if let Err(what) = explorer.image(i, &mut rng, &mut counts) {
                let before = calls[..moment.call as usize].iter().enumerate();
                let mut last: Vec<_> = before
                    .filter(|(_, c)| c.kind.changes())
                    .map(|(n, c)| format!("  {n} {c}"))
                    .collect();
                let last = last.split_off(last.len().saturating_sub(40));
                panic!(
                    "moment {m}, before call {}, image {i}: {what}\nlast calls:\n{}",
                    moment.call,
                    last.join("\n")
                );
            }
        }
    }
    counts
}

/// Says how to see a failure again.
struct OnPanic(String);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

struct Explorer<'a> {
    world: &'a World,
    moment: &'a Frozen,
    plan: ImagePlan,
}

impl Explorer<'_> {
    /// Draws a disk and looks at what is in it.
    fn image(&self, i: usize, rng: &mut Rng, counts: &mut Counts) -> Result<(), String> {
        let cut = match i {
            0 => Cut::Kill,
            1 => Cut::Nothing,
            2 => Cut::AllButOnePage,
            3 => Cut::OnePage,
            4 => Cut::Names,
            _ => Cut::Random,
        };
        let (env, story) = self.moment.draw(cut, rng, true);
        let mut promise = self.moment.promise;
        if cut == Cut::Kill {
            promise.durable = promise.acknowledged;
        }
        counts.images += 1;
        let nested = self.plan.nested && rng.one_in(2);
        let checked = if nested {
            self.cut_recovery(&env, &promise, rng, 3, counts)
        } else {
            self.recover(&env, &promise, rng)
        };
        checked.map_err(|e| format!("{story}\n{e}"))?;
        if rng.one_in(8) {
            self.checkpoints(&env, &promise, counts).map_err(|e| format!("{story}\n{e}"))?;
        }
        Ok(())
    }

    fn options(&self) -> Options {
        self.world.options.clone()
    }

    fn open(&self, env: &SimEnv, dir: &Path) -> Result<Db, String> {
        Db::open_in(Arc::new(env.clone()), dir, self.options()).map_err(|e| format!("opening: {e}"))
    }

    fn judge(&self, db: &Db, promise: &Promise) -> Result<State, String> {
        let found = oracle::read(db)?;
        self.world.history.judge(&found, promise)?;
        Ok(found)
    }

    /// Opens a disk, compares, and now and then goes on living in it.
    fn recover(&self, env: &SimEnv, promise: &Promise, rng: &mut Rng) -> Result<(), String> {
        let db = self.open(env, Path::new(DIR))?;
        let mut found = self.judge(&db, promise)?;
        if rng.one_in(4) {
            self.live_on(env, &db, &mut found, rng)?;
        }
        env.turn_off();
        Ok(())
    }

    /// What was found and a synced write after it survive the next power cut, whatever work was
    /// done in between.
    fn live_on(
        &self,
        env: &SimEnv,
        db: &Db,
        found: &mut State,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let said = |e: crate::Error| format!("going on after recovery: {e}");
        for _ in 0..rng.below(4) {
            db.store().step(Duration::from_millis([0, 100, 3000][rng.below(3)]));
        }
        db.put_with("after", "all", Durability::Synced).map_err(said)?;
        let space = found.get_mut("default").ok_or("no default keyspace")?;
        space.insert(b"after".to_vec(), Arc::new(b"all".to_vec()));
        if rng.one_in(2) {
            db.flush().map_err(said)?;
            db.compact_range::<&str>(..).map_err(said)?;
        }
        let problems = db.verify().map_err(said)?.problems;
        if !problems.is_empty() {
            return Err(format!("verify after recovery: {problems:?}"));
        }
        let cut = [Cut::Nothing, Cut::Kill, Cut::Random][rng.below(3)];
        let (later, story) = env.freeze().draw(cut, rng, true);
        let db = self.open(&later, Path::new(DIR))?;
        let again = oracle::read(&db)?;
        later.turn_off();
        if again != *found {
            return Err(format!("lost after recovery and a synced write, by {story}"));
        }
        Ok(())
    }

    /// Opens a disk; the power fails during that; and so on.
    fn cut_recovery(
        &self,
        env: &SimEnv,
        promise: &Promise,
        rng: &mut Rng,
        depth: usize,
        counts: &mut Counts,
    ) -> Result<(), String> {
        env.set_crash_points(CrashPoints::OneIn(4));
        let db = self.open(env, Path::new(DIR))?;
        self.judge(&db, promise)?;
        for _ in 0..rng.below(3) {
            db.store().step(Duration::from_millis([0, 100][rng.below(2)]));
        }
        let mut moments = env.take_frozen();
        env.turn_off();
        drop(db);
        if depth == 0 || moments.is_empty() {
            return Ok(());
        }
        let moment = moments.swap_remove(rng.below(moments.len()));
        let cuts = [Cut::Kill, Cut::Nothing, Cut::AllButOnePage, Cut::Names];
        let cut = if rng.one_in(3) { cuts[rng.below(4)] } else { Cut::Random };
        let (next, story) = moment.draw(cut, rng, true);
        counts.nested += 1;
        self.cut_recovery(&next, promise, rng, depth - 1, counts)
            .map_err(|e| format!("recovery cut before its call {}: {story}\n{e}", moment.call))
    }

    /// Checkpoints that were complete hold what the store held then.
    fn checkpoints(
        &self,
        env: &SimEnv,
        promise: &Promise,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let (env, _) = env.freeze().draw(Cut::Kill, &mut Rng::new(0), true);
        for (dir, n) in &self.world.checkpoints[..promise.checkpoints] {
            let db = self.open(&env, dir).map_err(|e| format!("{}: {e}", dir.display()))?;
            let found = oracle::read(&db)?;
            if found != *self.world.history.at(*n) {
                return Err(format!("{} is not the state after {n}", dir.display()));
            }
            counts.checkpoints += 1;
        }
        env.turn_off();
        Ok(())
    }
}
