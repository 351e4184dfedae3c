//! Everything at once: writers, and threads that flush, compact, verify, resume, make checkpoints (two
//! into one directory), make and drop keyspaces, and try what must be refused while the store is open;
//! then the store is closed or let go in the middle of it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use esker::{Db, Error, KeyOrder, Keyspace, KeyspaceOptions};

use super::{Scenario, no_part};
use crate::callers::draw::{Keys, pick};
use crate::callers::model::Model;
use crate::callers::ops::Ops;
use crate::callers::round::Round;
use crate::callers::settings::Settings;
use crate::callers::tally::{Of, count};
use crate::callers::{api, bounds, orders};
use crate::script::Rng;

pub const SCENARIO: Scenario = Scenario { name: "moments", play, part: no_part };

const WRITERS: usize = 3;
/// What tells copies from each other; left out of the comparison.
const MARKERS: &str = "markers";

fn play(round: &mut Round) -> Result<(), String> {
    let settings = Settings::small(&mut round.rng);
    let mut model = Model::new();
    model.add("reverse", KeyOrder::Reverse);
    model.add("by sum", orders::sound("by sum"));
    let (db, spaces) = model.open(&round.store(), &settings)?;
    db.create_keyspace(MARKERS, KeyspaceOptions::new()).map_err(|e| e.to_string())?;
    let closes = round.rng.one_in(2);
    let (closed, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let time = Duration::from_millis(500 + round.rng.below(2500));
    let results: Vec<Result<Model, String>> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let (seed, model) = (round.rng.next(), model.clone());
            let (db, spaces, closed, stop) = (db.clone(), spaces.clone(), &closed, &stop);
            threads
                .push(scope.spawn(move || write(writer, seed, model, &db, &spaces, closed, stop)));
        }
        for disturber in 0..2 {
            let mut rng = Rng::new(round.rng.next());
            let (db, dir, closed, stop) = (db.clone(), round.dir.clone(), &closed, &stop);
            let (empty, settings) = (model.clone(), settings.clone());
            threads.push(scope.spawn(move || {
                while !stop.load(Relaxed) {
                    let disturbed = disturb(disturber, &mut rng, &db, &dir, &settings, closes);
                    if let Err(what) = disturbed
                        && !closed.load(Relaxed)
                    {
                        return Err(what);
                    }
                }
                Ok(empty)
            }));
        }
        std::thread::sleep(time);
        if closes {
            // From two threads, as a program may that shuts down.
            closed.store(true, Relaxed);
            let other = db.clone();
            let second = scope.spawn(move || other.close());
            drop(db.clone().close());
            drop(second.join());
        }
        stop.store(true, Relaxed);
        let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
            t.join().unwrap_or_else(|_| Err("a thread panicked".to_string()))
        };
        threads.into_iter().map(join).collect()
    });
    for result in results {
        model.take_up(result?);
    }
    drop((db, spaces));
    bounds::sound(&round.store(), &model, &settings, &mut round.rng)
}

/// Writes keys that nobody else writes. The first error after a close is its end.
fn write(
    writer: usize,
    seed: u64,
    mut model: Model,
    db: &Db,
    spaces: &[Keyspace],
    closed: &AtomicBool,
    stop: &AtomicBool,
) -> Result<Model, String> {
    let orders = model.orders().map(|(_, o)| o).collect();
    let mut ops = Ops::new(seed, orders, Keys { n: 400, writer });
    while !stop.load(Relaxed) {
        let op = ops.next();
        match op.perform(db, spaces) {
            Ok(()) => model.done(&op),
            Err(_) if closed.load(Relaxed) => {
                model.maybe(&op);
                break;
            }
            Err(e) => return Err(format!("a writer: {e}")),
        }
    }
    Ok(model)
}

/// One thing that disturbs the others.
fn disturb(
    me: usize,
    rng: &mut Rng,
    db: &Db,
    dir: &Path,
    settings: &Settings,
    closes: bool,
) -> Result<(), String> {
    let wrong = |e: Error| format!("a disturber: {e}");
    let refused = |what: &str, result: esker::Result<()>| match result {
        Err(Error::Locked { .. }) => Ok(()),
        other => Err(format!("{what} of an open store: {other:?}")),
    };
    let store = dir.join("store");
    match rng.below(10) {
        // A store that was closed is anybody's, though handles on it are left.
        2..=4 if closes => Ok(()),
        0 => {
            let report = db.verify().map_err(wrong)?;
            report.problems.first().map_or(Ok(()), |p| Err(format!("verify: {p}")))
        }
        1 => db.resume().map_err(wrong),
        2 => refused("destroy", Db::destroy(&store)),
        3 => refused("repair", api::repair(settings.options(), &store).map(drop)),
        4 => refused("another opening", settings.options().open(&store).map(drop)),
        5 => {
            let name = format!("passing {me}");
            let ks = db.create_keyspace(&name, KeyspaceOptions::new()).map_err(wrong)?;
            ks.put("key", "value").map_err(wrong)?;
            let cursor = ks.cursor();
            db.drop_keyspace(&name).map_err(wrong)?;
            drop(cursor);
            Ok(())
        }
        6 => {
            let snapshot = db.snapshot();
            for name in pick(rng, &[["default", "reverse"], ["by sum", "default"]]) {
                let view = db.keyspace(name).map_err(wrong)?.at(&snapshot);
                let (a, b) = (view.iter().count(), view.iter().rev().count());
                if a != b {
                    return Err(format!("a snapshot of {a} entries has {b} from behind"));
                }
            }
            Ok(())
        }
        7 => db.wait_for_compactions().map_err(wrong),
        _ => checkpoint(rng, db, &dir.join("copies")),
    }
}

/// A copy that two threads make under one name. One of them does, and its copy is whole.
fn checkpoint(rng: &mut Rng, db: &Db, copies: &Path) -> Result<(), String> {
    let copy = copies.join(rng.next().to_string());
    std::fs::create_dir_all(copies).map_err(|e| e.to_string())?;
    let marker = format!("marker {}", rng.next());
    let wrong = |e: Error| e.to_string();
    db.keyspace(MARKERS).and_then(|ks| ks.put(&marker, "")).map_err(wrong)?;
    let pause = Duration::from_micros(pick(rng, &[0, 0, 50, 300, 2000]));
    let begun = AtomicBool::new(false);
    let (one, other) = std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            begun.store(true, Relaxed);
            std::thread::sleep(pause);
            db.checkpoint(&copy)
        });
        // A thread takes longer to begin than the moment that matters.
        while !begun.load(Relaxed) {
            std::thread::yield_now();
        }
        (db.checkpoint(&copy), late.join())
    });
    let other = other.map_err(|_| "a checkpoint panicked")?;
    let broken = |e: String| format!("the checkpoint {}: {e}", copy.display());
    match (one, other) {
        (Ok(()), Ok(())) => return Err(broken("two made it".to_string())),
        (Err(one), Err(other)) => return Err(broken(format!("nobody made it: {one}; {other}"))),
        _ => count(Of::Checkpoints, 1),
    }
    bounds::verify(&copy).map_err(broken)?;
    let by_sum = [("by sum", orders::sound("by sum"))];
    let options = Settings::small(rng).with_orders(by_sum);
    let opened = options.open(&copy).map_err(|e| broken(e.to_string()))?;
    let found = opened.keyspace(MARKERS).and_then(|ks| ks.contains_key(&marker));
    if !found.map_err(|e| broken(e.to_string()))? {
        return Err(broken("what was written before it is missing".to_string()));
    }
    for name in opened.keyspaces() {
        let ks = opened.keyspace(&name).map_err(|e| broken(e.to_string()))?;
        if let Some(Err(e)) = ks.iter().find(Result::is_err) {
            return Err(broken(e.to_string()));
        }
    }
    drop(opened);
    std::fs::remove_dir_all(&copy).map_err(|e| e.to_string())
}
