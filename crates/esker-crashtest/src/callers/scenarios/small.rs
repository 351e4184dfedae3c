//! Little of what the system gives: a small disk, few descriptors, little address space. Errors, no
//! panics; nothing acknowledged is lost; and from a full disk there is a way back by deleting.

use std::path::Path;
use std::process::Command;

use esker::{Db, Keyspace};

use super::Scenario;
use crate::callers::bounds;
use crate::callers::draw::{Keys, Value, pick};
use crate::callers::model::Model;
use crate::callers::ops::{Op, Ops};
use crate::callers::round::Round;
use crate::callers::settings::Settings;
use crate::callers::writer;
use crate::script::Rng;
use crate::victim::Victim;

pub const SCENARIO: Scenario = Scenario { name: "small", play, part };

fn play(round: &mut Round) -> Result<(), String> {
    match round.rng.below(4) {
        0 | 1 => disk(round),
        2 => limited(round, "-n", pick(&mut round.rng.clone(), &[24, 32, 64, 128])),
        _ => limited(round, "-v", pick(&mut round.rng.clone(), &[100_000, 200_000, 400_000])),
    }
}

/// A command under a shell that prepares its surroundings first.
fn under(shell: &str, inner: &Command) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{shell} && exec \"$0\" \"$@\""));
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

/// The whole part runs on a file system of a few MiB, which nobody else sees.
fn disk(round: &mut Round) -> Result<(), String> {
    let dir = round.dir.join("disk");
    std::fs::create_dir(&dir).map_err(|e| e.to_string())?;
    let mib = pick(&mut round.rng, &[24, 24, 40, 64]);
    let dir = dir.to_str().ok_or("a path in UTF-8")?;
    let mount = format!("mount -t tmpfs -o size={mib}m none '{dir}'");
    let tried = Command::new("unshare").args(["-m", "sh", "-c", &mount]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("no mounts here: small disks are left out");
        return Ok(());
    }
    let (seed, mib_text) = (round.rng.next().to_string(), mib.to_string());
    let part = under(&mount, &round.part(&["disk", dir, &seed, &mib_text])?);
    let mut unshared = Command::new("unshare");
    unshared.arg("-m").arg(part.get_program()).args(part.get_args());
    let (status, _) = Victim::start(&mut unshared)?.wait()?;
    if status.success() { Ok(()) } else { Err(format!("on a disk of {mib} MiB: {status}")) }
}

/// A writer with so many descriptors, or so many KiB of address space, and nothing of that afterwards.
fn limited(round: &mut Round, what: &str, limit: u64) -> Result<(), String> {
    eprintln!("ulimit {what} {limit}");
    let (seed, store) = (round.rng.next(), round.store());
    let path = store.to_str().ok_or("a path in UTF-8")?;
    let part = round.part(&["limited", path, &seed.to_string(), &limit.to_string()])?;
    let (status, messages) =
        Victim::start(&mut under(&format!("ulimit {what} {limit}"), &part))?.wait()?;
    // Memory that cannot be had ends a Rust program, wherever it asked.
    if !status.success() && what == "-n" {
        return Err(format!("with {limit} descriptors: {status}"));
    }
    let (mut model, settings, mut ops) = limited_setting(seed);
    writer::learn(&mut model, &mut ops, &messages);
    if !store.join("CURRENT").exists() && messages.is_empty() {
        return Ok(());
    }
    bounds::sound(&store, &model, &settings, &mut round.rng)
}

fn limited_setting(seed: u64) -> (Model, Settings, Ops) {
    let mut rng = Rng::new(seed);
    let settings = Settings { paranoid: false, ..Settings::draw(&mut rng) };
    let model = Model::new();
    let orders = model.orders().map(|(_, o)| o).collect();
    let ops = Ops::new(rng.next(), orders, Keys { n: 3000, writer: 0 });
    (model, settings, ops)
}

fn part(args: &[&str]) -> Result<(), String> {
    match args {
        ["disk", dir, seed, mib] => {
            let number = |text: &str| text.parse::<u64>().map_err(|e| e.to_string());
            on_small_disk(&Path::new(dir).join("store"), number(seed)?, number(mib)?)
        }
        ["limited", store, seed, _] => {
            let (model, settings, mut ops) = limited_setting(seed.parse().map_err(|_| "a seed")?);
            // Too little to open it is an error like others.
            if let Ok((db, spaces)) = model.open(store.as_ref(), &settings) {
                writer::play(&db, &spaces, &mut ops, 1500);
            }
            Ok(())
        }
        _ => Err("which part?".to_string()),
    }
}

fn on_small_disk(store: &Path, seed: u64, mib: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let settings = Settings {
        memory: pick(&mut rng, &[1 << 20, 128 << 20]),
        segment: pick(&mut rng, &[Some(64 << 10), Some(1 << 20), None, None]),
        paranoid: false,
        ..Settings::draw(&mut rng)
    };
    eprintln!("{mib} MiB; {settings:?}");
    let mut model = Model::new();
    let (mut db, mut spaces) = model.open(store, &settings)?;
    put(&db, &spaces, &mut model, Keys { n: 1, writer: 1 }, 0, Value::of_len(&mut rng, 10))
        .map_err(|e| format!("one put on an empty disk: {e}"))?;
    for fill in 0..2 {
        let full = fill_up(&mut rng, &db, &spaces, &mut model);
        if rng.one_in(2) {
            drop((db, spaces));
            (db, spaces) =
                model.open(store, &settings).map_err(|e| format!("on a full disk: {e}"))?;
        }
        model.compare(&db, &mut rng).map_err(|e| format!("full for the {fill}th time: {e}"))?;
        if full {
            empty(&db, &spaces, &mut model).map_err(|e| format!("{e}; fill {fill}"))?;
        }
    }
    drop((db, spaces));
    bounds::verify(store)?;
    let (db, _) = model.open(store, &settings)?;
    model.compare(&db, &mut rng)
}

fn put(
    db: &Db,
    spaces: &[Keyspace],
    model: &mut Model,
    keys: Keys,
    n: u64,
    value: Value,
) -> esker::Result<()> {
    let op = Op::Write(vec![(0, keys.key(n), Some(value))], esker::Durability::Buffered);
    let result = op.perform(db, spaces);
    match result {
        Ok(()) => model.done(&op),
        Err(_) => model.maybe(&op),
    }
    result
}

/// Puts until the disk is full; whether it came to that.
fn fill_up(rng: &mut Rng, db: &Db, spaces: &[Keyspace], model: &mut Model) -> bool {
    let len = pick(rng, &[100, 1000, 20_000, 300_000]);
    let keys = Keys { n: (96 << 20) / (len + 50), writer: 0 };
    for n in 0..keys.n {
        if put(db, spaces, model, keys, n, Value::of_len(rng, len)).is_err() {
            return true;
        }
    }
    false
}

/// Deletes everything, with as many attempts as a patient user makes; then there is room again.
fn empty(db: &Db, spaces: &[Keyspace], model: &mut Model) -> Result<(), String> {
    let mut last = String::new();
    for _ in 0..10 {
        let keys: Vec<_> = model.keys(0).collect();
        let mut note = |what: &str, result: esker::Result<()>| match result {
            Ok(()) => true,
            Err(e) => {
                last = format!("{what}: {e}");
                false
            }
        };
        note("resume", db.resume());
        let mut deleted = 0;
        for key in keys {
            let op = Op::Write(vec![(0, key, None)], esker::Durability::Buffered);
            if !note("delete", op.perform(db, spaces)) {
                model.maybe(&op);
                break;
            }
            model.done(&op);
            deleted += 1;
        }
        let compacted = note("compact", spaces[0].compact_range::<&[u8]>(..));
        let settled = note("settle", db.wait_for_compactions());
        let value = Value::of_len(&mut Rng::new(deleted), 10);
        if model.keys(0).next().is_none()
            && compacted
            && settled
            && put(db, spaces, model, Keys { n: 1, writer: 2 }, 0, value).is_ok()
        {
            return Ok(());
        }
    }
    Err(format!("no way back from a full disk: {last}"))
}
