//! Options at both ends of every range, with as many sources (segments, tables, keyspaces) as they
//! allow: what is counted somewhere must not come to the end of its counter.

use esker::{Durability, KeyOrder};

use super::{Scenario, no_part};
use crate::callers::bounds::{self, Watch};
use crate::callers::draw::{Keys, Value, pick};
use crate::callers::model::Model;
use crate::callers::ops::{Op, Ops};
use crate::callers::orders;
use crate::callers::round::Round;
use crate::callers::settings::Settings;

pub const SCENARIO: Scenario = Scenario { name: "extremes", play, part: no_part };

type Form = fn(&mut Round, &Settings, &mut Model) -> Result<(), String>;

const FORMS: [Form; 4] = [segments, keyspaces, loads, everything];

fn play(round: &mut Round) -> Result<(), String> {
    let mut settings = Settings::draw(&mut round.rng);
    let form = round.rng.below(4);
    if form == 0 {
        settings =
            Settings { segment: Some(64 << 10), durability: Durability::Buffered, ..settings };
    } else if form == 1 {
        let (memory, segment) =
            pick(&mut round.rng, &[(128 << 20, None), (8 << 20, Some(1 << 20))]);
        settings = Settings { memory, segment, durability: Durability::Buffered, ..settings };
    }
    eprintln!("form {form}, {settings:?}");
    let mut model = Model::new();
    FORMS[form as usize](round, &settings, &mut model)?;
    bounds::sound(&round.store(), &model, &settings, &mut round.rng)
}

/// Writes with operations, compares before anything settles, then closes or just lets go.
fn write(
    round: &mut Round,
    settings: &Settings,
    model: &mut Model,
    ops: impl Iterator<Item = Op>,
) -> Result<(), String> {
    let watch = Watch::start();
    let (db, spaces) = model.open(&round.store(), settings)?;
    for (n, op) in ops.enumerate() {
        op.perform(&db, &spaces).map_err(|e| format!("{}: {e}", name(&op)))?;
        model.done(&op);
        if n % 2000 == 1999 {
            model.spaces[0].glance(&spaces[0]).map_err(|e| format!("after {n} operations: {e}"))?;
        }
    }
    model.compare(&db, &mut round.rng).map_err(|e| format!("as written: {e}"))?;
    watch.check(model, settings)?;
    drop(spaces);
    if round.rng.one_in(2) {
        return Ok(());
    }
    db.close().map_err(|e| format!("closing: {e}"))
}

fn name(op: &Op) -> String {
    format!("{op:?}").chars().take(60).collect()
}

/// Many small puts: more segments wait for a flush than a byte counts.
fn segments(round: &mut Round, settings: &Settings, model: &mut Model) -> Result<(), String> {
    let settled = Keys { n: 100, writer: 1 };
    let first: Vec<Op> = (0..100).map(|n| put(round, settled.key(n), 100)).collect();
    let (keys, n) = (Keys { n: 60_000, writer: 0 }, pick(&mut round.rng, &[100_000, 300_000]));
    let mut rng = round.rng.clone();
    let many = (0..n).map(|_| {
        let key = keys.draw(&mut rng);
        let value = Value::of_len(&mut rng, 200);
        Op::Write(vec![(0, key, Some(value))], Durability::Buffered)
    });
    write(round, settings, model, first.into_iter().chain([Op::Settle]).chain(many))
}

fn put(round: &mut Round, key: Vec<u8>, len: u64) -> Op {
    let value = Value::of_len(&mut round.rng, len);
    Op::Write(vec![(0, key, Some(value))], Durability::Buffered)
}

/// Many bulk loads that lie over each other: each begins as a run of its own.
fn loads(round: &mut Round, settings: &Settings, model: &mut Model) -> Result<(), String> {
    let keys = Keys { n: 5000, writer: 0 };
    let n = pick(&mut round.rng, &[50, 400]);
    let mut rng = round.rng.clone();
    let loads = (0..n).map(|_| {
        let (from, n) = (rng.below(keys.n - 30), 1 + rng.below(30));
        let mut entries: Vec<_> = (from..from + n).map(|n| keys.key(n)).collect();
        entries.sort();
        let value = |key| (0, key, Some(Value::draw(&mut rng)));
        Op::Load(entries.into_iter().map(value).collect())
    });
    write(round, settings, model, loads)
}

/// Up to a thousand keyspaces, all of them written to all the time.
fn keyspaces(round: &mut Round, settings: &Settings, model: &mut Model) -> Result<(), String> {
    // Of a thousand each flush makes a thousand tables: fewer, where segments are small.
    let spaces = if settings.memory > 8 << 20 { 1000 } else { 200 };
    for n in 1..spaces {
        model.add(&format!("space {n}"), KeyOrder::Bytewise);
    }
    let keys = Keys { n: 300, writer: 0 };
    // Some segments full: each flush of one makes a table for each keyspace.
    let n = (4 * settings.segment_bytes() / 500).clamp(2000, 40_000) as usize;
    let mut rng = round.rng.clone();
    let puts = (0..n).map(|n| {
        let (key, value) = (keys.draw(&mut rng), Value::of_len(&mut rng, 500));
        Op::Write(vec![(n % spaces, key, Some(value))], Durability::Buffered)
    });
    write(round, settings, model, puts)
}

/// All operations, in a few keyspaces of all orders.
fn everything(round: &mut Round, settings: &Settings, model: &mut Model) -> Result<(), String> {
    for n in 0..round.rng.below(5) {
        let order = orders::draw(&mut round.rng);
        model.add(&format!("space {n}"), order);
    }
    let orders = model.orders().map(|(_, o)| o).collect();
    let keys = Keys { n: pick(&mut round.rng, &[50, 5000]), writer: 0 };
    let mut ops = Ops::new(round.rng.next(), orders, keys);
    write(round, settings, model, std::iter::from_fn(move || Some(ops.next())).take(4000))
}
