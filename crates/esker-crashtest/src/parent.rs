//! The process that kills: one cycle after the other on the same directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use esker::Db;
use esker_trust::harm::copy;
use esker_trust::{Act, Call, Found, Oracle, Patience, Rng, Script, Victim, messages_alone, read};

use crate::child::options;
use crate::store::Reader;

/// What is asked for on the command line.
#[derive(Debug, Clone)]
pub struct Plan {
    pub cycles: u64,
    pub seed: u64,
    pub until: Option<Instant>,
    pub dir: PathBuf,
}

/// Runs all cycles. The error says what is wrong and where it is kept.
pub fn run(plan: &Plan) -> Result<(), String> {
    fs::create_dir_all(plan.dir.join("checkpoints")).map_err(|e| e.to_string())?;
    let mut oracle = Oracle::new(Script::Whole(plan.seed));
    let mut rng = Rng::new(plan.seed);
    let start = Instant::now();
    let mut cycle = 0;
    while plan.until.map_or(cycle < plan.cycles, |end| Instant::now() < end) {
        run_cycle(plan, cycle, &mut rng, &mut oracle).map_err(|what| {
            format!(
                "cycle {cycle} of seed {}: {what}\nThe store as the kill left it is in {}; \
                 again: esker-crashtest --seed {} --cycles {}",
                plan.seed,
                plan.dir.join("killed").display(),
                plan.seed,
                cycle + 1,
            )
        })?;
        cycle += 1;
        if cycle % 50 == 0 {
            println!(
                "{cycle} cycles, {} acknowledged, {:.0?}",
                oracle.acknowledged,
                start.elapsed()
            );
        }
    }
    println!(
        "{cycle} kills, {} operations acknowledged, none lost; {} entries; {:.1?}",
        oracle.acknowledged,
        oracle.entries(),
        start.elapsed()
    );
    Ok(())
}

fn run_cycle(plan: &Plan, cycle: u64, rng: &mut Rng, oracle: &mut Oracle) -> Result<(), String> {
    let store = plan.dir.join("store");
    let child = start(plan, cycle, oracle.next())?;
    let patience = Patience { most: Duration::from_secs(60), interrupted: || false };
    let said = child.kill_at_random(rng.one_in(5), rng, &patience)??;
    let messages = messages_alone(said)?;
    let done = oracle.learn(messages.iter().copied())?;
    keep_image(plan, &store)?;
    if !store.join("CURRENT").exists() {
        // Killed while the store was being made: that begins again.
        return if messages.is_empty() { Ok(()) } else { Err("the store is gone".to_string()) };
    }

    if rng.one_in(3) {
        let report = Db::verify_path(&store).map_err(|e| e.to_string())?;
        if !report.problems.is_empty() {
            return Err(format!("verify: {:#?}", report.problems));
        }
    }
    // What a reader finds must be right too, and the next child then recovers for itself.
    let read_only = rng.one_in(2);
    let opened = options(plan.seed, cycle).read_only(read_only).open(&store);
    let db = opened.map_err(|e| format!("opening it again, read-only {read_only}: {e}"))?;
    compare(&db, plan, oracle)?;
    if !read_only && rng.one_in(3) {
        db.wait_for_compactions().map_err(|e| e.to_string())?;
        compare(&db, plan, oracle)?;
    }
    db.close().map_err(|e| e.to_string())?;
    let checkpoints = done.iter().filter(|(_, act)| *act == Act::Checkpoint);
    check_checkpoints(plan, cycle, checkpoints.map(|(number, _)| *number))?;
    fs::remove_dir_all(plan.dir.join("killed")).map_err(|e| e.to_string())
}

/// Reads all of the store by every path; the error says all that is wrong.
fn compare(db: &Db, plan: &Plan, oracle: &mut Oracle) -> Result<(), String> {
    let mut found = Found::default();
    let calls = [Call::Scan, Call::ScanBack, Call::Get];
    read(&mut Reader(db), Script::Whole(plan.seed), &calls, |fact| found.extend([fact]));
    if let Some(e) = found.first_error {
        return Err(format!("{} calls failed, the first: {e}", found.errors));
    }
    let verdict = oracle.compare(&found);
    if verdict.what.is_empty() { Ok(()) } else { Err(verdict.what.join("\n")) }
}

/// A copy from before anybody opened it again.
fn keep_image(plan: &Plan, store: &Path) -> Result<(), String> {
    let image = plan.dir.join("killed");
    drop(fs::remove_dir_all(&image));
    let copied = if store.exists() { copy(store, &image) } else { fs::create_dir_all(&image) };
    copied.map_err(|e| format!("copying the store: {e}"))
}

/// Checkpoints that were finished open and are sound; what a kill cut off is removed.
fn check_checkpoints(
    plan: &Plan,
    cycle: u64,
    finished: impl Iterator<Item = u32>,
) -> Result<(), String> {
    let dir = plan.dir.join("checkpoints");
    for number in finished {
        let copy = dir.join(number.to_string());
        let wrong = |e: esker::Error| format!("checkpoint {}: {e}", copy.display());
        let report = Db::verify_path(&copy).map_err(wrong)?;
        if !report.problems.is_empty() {
            return Err(format!("checkpoint {}: {:#?}", copy.display(), report.problems));
        }
        let db = options(plan.seed, cycle).open(&copy).map_err(wrong)?;
        for name in db.keyspaces() {
            for entry in db.keyspace(&name).map_err(wrong)?.iter() {
                entry.map_err(wrong)?;
            }
        }
        db.close().map_err(wrong)?;
    }
    fs::remove_dir_all(&dir).and_then(|()| fs::create_dir_all(&dir)).map_err(|e| e.to_string())
}

/// A child that writes.
fn start(plan: &Plan, cycle: u64, first: &[u32]) -> Result<Victim, String> {
    let binary = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(binary);
    command
        .arg("--child")
        .arg(plan.dir.join("store"))
        .arg(plan.dir.join("checkpoints"))
        .args([plan.seed.to_string(), cycle.to_string()])
        .args(first.iter().map(u32::to_string));
    Victim::start(&mut command)
}
