//! Bulk loads whose iterators block, panic, go backwards or call back into the store, while the store
//! is closed, dropped or killed. A load is there as a whole or not at all, and whatever happens to it
//! the rest of the store is as it was.

use std::sync::mpsc;
use std::time::Duration;

use esker::{Error, KeyOrder, Keyspace};

use super::Scenario;
use crate::callers::bounds;
use crate::callers::draw::{Key, Keys, Value, pick};
use crate::callers::model::Model;
use crate::callers::ops::Ops;
use crate::callers::panics;
use crate::callers::round::Round;
use crate::callers::settings::Settings;
use crate::callers::tally::{Of, count};
use crate::callers::writer::{self, ENDS, End};
use crate::child::Message;
use crate::script::Rng;
use crate::victim::Victim;

pub const SCENARIO: Scenario = Scenario { name: "loads", play, part };

fn play(round: &mut Round) -> Result<(), String> {
    ended_within(&mut round.within("ended")?)?;
    iterators(round)
}

/// What both processes know from the seed.
struct Setting {
    settings: Settings,
    model: Model,
    ops: Ops,
    operations: u32,
    load: Vec<(Key, Value)>,
    /// Entries after which the iterator waits until the store is left.
    waits_at: usize,
    /// Whether it goes on then; entries after which it waits for ever.
    stops_at: Option<usize>,
    end: End,
}

impl Setting {
    fn new(seed: u64) -> Setting {
        let mut rng = Rng::new(seed);
        let keys = Keys { n: 1 + rng.below(3000), writer: 1 };
        let len = pick(&mut rng, &[10, 300, 4000]);
        let mut load: Vec<_> =
            (0..keys.n).map(|n| (keys.key(n), Value::of_len(&mut rng, len))).collect();
        load.sort_by(|a, b| a.0.cmp(&b.0));
        let mut model = Model::new();
        model.add("loaded", KeyOrder::Bytewise);
        Setting {
            settings: Settings::small(&mut rng),
            ops: Ops::new(rng.next(), vec![KeyOrder::Bytewise], Keys { n: 300, writer: 0 }),
            operations: rng.below(600) as u32,
            waits_at: if rng.one_in(2) { 0 } else { rng.below(load.len() as u64) as usize },
            stops_at: (!rng.one_in(4)).then(|| rng.below(load.len() as u64 + 1) as usize),
            load,
            model,
            end: if rng.one_in(3) { End::Close } else { pick(&mut rng, &ENDS) },
        }
    }
}

/// The store is left by another process while a load waits for its iterator.
fn ended_within(round: &mut Round) -> Result<(), String> {
    let (seed, store) = (round.rng.next(), round.store());
    let Setting { settings, mut model, mut ops, load, end, waits_at, stops_at, .. } =
        Setting::new(seed);
    eprintln!(
        "{end:?} while a load waits at {waits_at}, then {stops_at:?}, of {}; {settings:?}",
        load.len()
    );
    let path = store.to_str().ok_or("a path in UTF-8")?;
    let mut victim = Victim::start(&mut round.part(&[path, &seed.to_string()])?)?;
    let messages = if end == End::Kill {
        std::thread::sleep(Duration::from_millis(300 + round.rng.below(700)));
        count(Of::Kills, 1);
        victim.kill()?
    } else {
        let (status, messages) = victim.wait()?;
        if !status.success() {
            return Err(format!("the process with the load ended with {status}"));
        }
        messages
    };
    let (loads, messages): (Vec<Message>, Vec<Message>) = messages
        .into_iter()
        .partition(|m| matches!(m, Message::Intent(1, _) | Message::Done(1, _)));
    writer::learn(&mut model, &mut ops, &messages);
    let (db, spaces) = model.open(&store, &settings)?;
    let found = spaces[1].iter().collect::<esker::Result<Vec<_>>>().map_err(|e| e.to_string())?;
    if loads.contains(&Message::Done(1, 0)) && found.is_empty() {
        return Err("a load that was done is gone".to_string());
    }
    if !found.is_empty() {
        load.into_iter().for_each(|(key, value)| model.spaces[1].set(key, Some(value)));
    }
    // What was found keeps the directory locked, like the handles.
    drop((found, db, spaces));
    bounds::sound(&store, &model, &settings, &mut round.rng)
}

/// `STORE SEED`: begins a load, and leaves the store before it ends.
fn part(args: &[&str]) -> Result<(), String> {
    let [store, seed] = args else { return Err("STORE SEED".to_string()) };
    let setting = Setting::new(seed.parse().map_err(|_| "a seed")?);
    let Setting { settings, model, mut ops, operations, load, waits_at, stops_at, end } = setting;
    let (db, mut spaces) = model.open(store.as_ref(), &settings)?;
    let (waits, waiting) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let loaded = spaces.pop().ok_or("two keyspaces")?;
    let loading = std::thread::spawn(move || {
        Message::Intent(1, 0).say();
        let entries = load.iter().enumerate().map(|(n, (key, value))| {
            if n == waits_at {
                let _ = (waits.send(()), may_go_on.recv());
            }
            if n > waits_at && stops_at == Some(n) {
                let _ = (waits.send(()), may_go_on.recv());
            }
            (key, value.bytes())
        });
        let result = loaded.bulk_load(entries);
        if result.is_ok() {
            Message::Done(1, 0).say();
        }
    });
    let _ = waiting.recv();
    writer::play(&db, &spaces, &mut ops, operations);
    if matches!(end, End::Exit | End::Kill) {
        // The process ends with the iterator waiting.
        return end.carry_out(db, spaces);
    }
    end.carry_out(db, spaces)?;
    let _ = go_on.send(());
    match stops_at {
        // In the midst of it, with a table begun after the store was left.
        Some(at) if at > waits_at => {
            let _ = waiting.recv();
            Ok(())
        }
        _ => loading.join().map_err(|_| "the load panicked".to_string()),
    }
}

/// One load after the other, each by an iterator with a manner of its own.
fn iterators(round: &mut Round) -> Result<(), String> {
    let settings = Settings::small(&mut round.rng);
    let mut model = Model::new();
    model.add("other", KeyOrder::Reverse);
    let (db, spaces) = model.open(&round.store(), &settings)?;
    let orders = model.orders().map(|(_, o)| o).collect();
    let mut ops = Ops::new(round.rng.next(), orders, Keys { n: 300, writer: 0 });
    for n in 0..40 {
        let keys = Keys { n: 1 + round.rng.below(1500), writer: 1 };
        let mut load: Vec<(Key, Value)> =
            (0..keys.n).map(|n| (keys.key(n), Value::draw(&mut round.rng))).collect();
        load.sort_by(|a, b| a.0.cmp(&b.0));
        let at = round.rng.below(keys.n) as usize;
        count(Of::Loads, 1);
        let manner = round.rng.below(4);
        let done = match manner {
            0 => {
                panics::caught(|| bulk_load(&spaces[0], &load, at, || panics::inject("in a load")))
            }
            1 => {
                load.insert(at + 1, load[at].clone());
                Some(bulk_load(&spaces[0], &load, at, || {}))
            }
            2 => {
                load.push((vec![0xff; esker::MAX_KEY_LEN + 1], Value::of_len(&mut round.rng, 1)));
                Some(bulk_load(&spaces[0], &load, at, || {}))
            }
            _ => Some(bulk_load(&spaces[0], &load, at, || {
                // Whatever a caller may do, from within.
                for _ in 0..20 {
                    let op = ops.next();
                    match op.perform(&db, &spaces) {
                        Ok(()) => model.done(&op),
                        Err(e) => panic!("from within a load: {e}"),
                    }
                }
            })),
        };
        match (manner, done) {
            (0, None)
            | (1, Some(Err(Error::NotSorted { .. })))
            | (2, Some(Err(Error::KeyTooLong { .. }))) => {}
            (3, Some(Ok(_))) => {
                load.into_iter().for_each(|(key, value)| model.spaces[0].set(key, Some(value)));
            }
            (_, done) => return Err(format!("load {n}, of manner {manner}: {done:?}")),
        }
        if n % 8 == 0 {
            model.compare(&db, &mut round.rng).map_err(|e| format!("after load {n}: {e}"))?;
        }
    }
    drop((db, spaces));
    bounds::sound(&round.store(), &model, &settings, &mut round.rng)
}

fn bulk_load(
    ks: &Keyspace,
    load: &[(Key, Value)],
    at: usize,
    mut within: impl FnMut(),
) -> esker::Result<u64> {
    ks.bulk_load(load.iter().enumerate().map(|(n, (key, value))| {
        if n == at {
            within();
        }
        (key, value.bytes())
    }))
}
