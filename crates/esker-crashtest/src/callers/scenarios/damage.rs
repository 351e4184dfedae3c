//! Damage, and what repair makes of it: a sound store is never shortened, whatever its keyspaces are
//! ordered by; a byte of a footer costs nothing that lies in sound blocks; a lost manifest costs no
//! table. A cursor that meets damage says so and is on no entry.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use esker::{Db, KeyOrder};

use super::Scenario;
use crate::callers::draw::{Keys, Value, pick};
use crate::callers::model::Model;
use crate::callers::ops::{Op, Ops};
use crate::callers::round::Round;
use crate::callers::settings::Settings;
use crate::callers::tally::{Of, count};
use crate::callers::{api, bounds, orders, writer};
use crate::script::Rng;
use crate::victim::Victim;

pub const SCENARIO: Scenario = Scenario { name: "damage", play, part };

/// What is done to a store that is not open. No entry is in what it hurts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Harm {
    None,
    /// One byte of the end of a table.
    Footer,
    /// The last byte of a table.
    Cut,
    /// 4 KiB behind a table.
    Longer,
}

fn play(round: &mut Round) -> Result<(), String> {
    block(&mut round.within("block")?)?;
    if round.rng.one_in(4) { no_manifest(round) } else { harmless(round) }
}

struct Setting {
    settings: Settings,
    model: Model,
    ops: Ops,
    operations: u32,
}

impl Setting {
    fn new(seed: u64) -> Setting {
        let mut rng = Rng::new(seed);
        let mut model = Model::new();
        model.add("by sum", orders::sound("by sum"));
        model.add("reverse", KeyOrder::Reverse);
        let orders = model.orders().map(|(_, o)| o).collect();
        Setting {
            settings: Settings::small(&mut rng),
            model,
            ops: Ops::new(rng.next(), orders, Keys { n: 500, writer: 0 }),
            operations: 100 + rng.below(2500) as u32,
        }
    }
}

/// `STORE SEED`: writes, then waits to be killed.
fn part(args: &[&str]) -> Result<(), String> {
    let [store, seed] = args else { return Err("STORE SEED".to_string()) };
    let setting = Setting::new(seed.parse().map_err(|_| "a seed")?);
    let Setting { settings, model, mut ops, operations } = setting;
    let (db, spaces) = model.open(store.as_ref(), &settings)?;
    writer::play(&db, &spaces, &mut ops, operations);
    writer::End::Kill.carry_out(db, spaces)
}

/// Nothing is hurt that holds an entry: repair loses nothing.
fn harmless(round: &mut Round) -> Result<(), String> {
    let (seed, store) = (round.rng.next(), round.store());
    let Setting { settings, mut model, mut ops, .. } = Setting::new(seed);
    let harm =
        pick(&mut round.rng, &[Harm::None, Harm::None, Harm::Footer, Harm::Cut, Harm::Longer]);
    let path = store.to_str().ok_or("a path in UTF-8")?;
    let mut victim = Victim::start(&mut round.part(&[path, &seed.to_string()])?)?;
    std::thread::sleep(Duration::from_millis(200 + round.rng.below(1500)));
    let messages = victim.kill()?;
    count(Of::Kills, 1);
    writer::learn(&mut model, &mut ops, &messages);
    if !store.join("CURRENT").exists() && messages.is_empty() {
        return Ok(());
    }
    let closed = round.rng.one_in(2);
    if closed {
        let (db, _) = model.open(&store, &settings)?;
        db.wait_for_compactions().and_then(|()| db.close()).map_err(|e| e.to_string())?;
    }
    let before = total(&tables(&store));
    let harmed = hurt(round, &store, harm)?;
    let twice = round.rng.one_in(2);
    eprintln!("{harm:?} of {harmed:?}, closed before: {closed}, twice: {twice}; {settings:?}");
    if twice {
        // What cannot be ordered, in tables and in the log, it leaves to the repair with comparators.
        api::repair(settings.options(), &store)
            .map_err(|e| format!("repair without comparators: {e}"))?;
    }
    let options = settings.with_orders(model.orders());
    let report = api::repair(options, &store).map_err(|e| format!("repair: {e}"))?;
    let wrong = |what: String| format!("{harm:?}: {what}; repair said {report:?}");
    let (db, _) = model.open(&store, &settings).map_err(wrong)?;
    model.compare(&db, &mut round.rng).map_err(|e| wrong(format!("after a repair: {e}")))?;
    drop(db);
    let after = total(&tables(&store));
    if closed && after > before + before / 2 + (256 << 10) {
        return Err(wrong(format!("the tables grew from {before} to {after} bytes")));
    }
    if harm == Harm::None && !report.lost.is_empty() {
        return Err(wrong("nothing was lost".to_string()));
    }
    let mut lost: Vec<String> = report.lost.iter().map(ToString::to_string).collect();
    lost.sort();
    if lost.windows(2).any(|two| two[0] == two[1]) {
        return Err(wrong("a loss is listed twice".to_string()));
    }
    bounds::sound(&store, &model, &settings, &mut round.rng).map_err(wrong)
}

fn tables(store: &Path) -> Vec<PathBuf> {
    files(store, "tbl")
}

fn files(store: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(store) else { return Vec::new() };
    let wanted = |p: &PathBuf| p.extension().is_some_and(|e| e == extension);
    let mut files: Vec<PathBuf> = files.flatten().map(|f| f.path()).filter(wanted).collect();
    files.sort();
    files
}

fn total(tables: &[PathBuf]) -> u64 {
    tables.iter().filter_map(|t| fs::metadata(t).ok()).map(|m| m.len()).sum()
}

/// Bytes at a table's end, one of which is hurt.
const FOOTER: u64 = 48;

/// Hurts one table, if there is one; which.
fn hurt(round: &mut Round, store: &Path, harm: Harm) -> Result<Option<PathBuf>, String> {
    // Of one that was being written when the process was killed there may be nothing yet.
    let mut tables = tables(store);
    tables.retain(|t| fs::metadata(t).is_ok_and(|m| m.len() > FOOTER));
    if tables.is_empty() || harm == Harm::None {
        return Ok(None);
    }
    let path = pick(&mut round.rng, &tables);
    let mut bytes = fs::read(&path).map_err(|e| e.to_string())?;
    match harm {
        Harm::Footer => {
            let at = bytes.len() - 1 - round.rng.below(FOOTER) as usize;
            bytes[at] ^= 1 << round.rng.below(8);
        }
        Harm::Cut => bytes.truncate(bytes.len() - 1),
        Harm::Longer => bytes.resize(bytes.len() + 4096, 0),
        Harm::None => {}
    }
    fs::write(&path, bytes).map_err(|e| e.to_string())?;
    Ok(Some(path))
}

/// A byte in the middle of a table, or of the values beside it: reads say so, and repair saves what is
/// not in that block.
fn block(round: &mut Round) -> Result<(), String> {
    let apart = round.rng.one_in(2);
    let separate = if apart { 64 } else { usize::MAX >> 8 };
    let settings = Settings { paranoid: false, separate, ..Settings::small(&mut round.rng) };
    let keys = Keys { n: 5000, writer: 0 };
    let mut model = Model::new();
    let store = round.store();
    let (db, spaces) = model.open(&store, &settings)?;
    for n in 0..keys.n {
        let value = Value::of_len(&mut round.rng, 100);
        let op = Op::Write(vec![(0, keys.key(n), Some(value))], esker::Durability::Buffered);
        op.perform(&db, &spaces).map_err(|e| e.to_string())?;
        model.done(&op);
    }
    db.wait_for_compactions().map_err(|e| e.to_string())?;
    drop(spaces);
    db.close().map_err(|e| e.to_string())?;
    let len = |path: &PathBuf| fs::metadata(path).map_or(0, |m| m.len());
    let files = files(&store, if apart { "log" } else { "tbl" });
    let path = files.into_iter().max_by_key(len).ok_or("no file to damage")?;
    let mut bytes = fs::read(&path).map_err(|e| e.to_string())?;
    // Entries come first; what tells where they are, at the end.
    let at = (bytes.len() / 8 + round.rng.below(bytes.len() as u64 / 4) as usize).max(64);
    bytes[at] ^= 1 << round.rng.below(8);
    fs::write(&path, bytes).map_err(|e| e.to_string())?;
    // A log segment has more in it than the values that count.
    if !apart && bounds::verify(&store).is_ok() {
        return Err(format!("byte {at} of {} is damaged, and verify says nothing", path.display()));
    }
    {
        let (db, _) = model.open(&store, &settings)?;
        walk_over_damage(&db, &model)?;
    }
    let options = settings.with_orders(model.orders());
    let report = api::repair(options, &store).map_err(|e| format!("repair: {e}"))?;
    bounds::verify(&store).map_err(|e| format!("repaired: {e}"))?;
    let (db, _) = model.open(&store, &settings)?;
    let left = db.iter().filter(Result::is_ok).count() as u64;
    if report.lost.is_empty() && left < keys.n {
        return Err(format!("{left} of {} are left, and repair lists no loss", keys.n));
    }
    if left < keys.n / 2 {
        return Err(format!("{left} of {} are left after damage to one block", keys.n));
    }
    Ok(())
}

/// After an error a cursor is on no entry; what it shows before and behind is right.
fn walk_over_damage(db: &Db, model: &Model) -> Result<(), String> {
    for forward in [true, false] {
        let mut cursor = db.cursor();
        let mut moved = if forward { cursor.first() } else { cursor.last() };
        loop {
            match moved {
                Ok(true) => {
                    let expected = model.spaces[0].entries.get(cursor.key());
                    if expected.map(|v| v.bytes()).as_deref() != Some(cursor.value()) {
                        return Err("a wrong value from a damaged table".to_string());
                    }
                }
                Ok(false) => break,
                Err(_) => {
                    if cursor.valid() {
                        return Err("a cursor is on an entry after an error".to_string());
                    }
                    let next = if forward { cursor.next() } else { cursor.prev() };
                    if matches!(next, Ok(true)) {
                        return Err("a cursor walks past damage".to_string());
                    }
                    break;
                }
            }
            moved = if forward { cursor.next() } else { cursor.prev() };
        }
    }
    Ok(())
}

/// Some hundred tables, and no manifest: the tables have it all.
fn no_manifest(round: &mut Round) -> Result<(), String> {
    let settings = Settings::small(&mut round.rng);
    let loads = pick(&mut round.rng, &[5, 300, 400]);
    let keys = Keys { n: loads * 4, writer: 0 };
    let mut all: Vec<_> = (0..keys.n).map(|n| keys.key(n)).collect();
    all.sort();
    let mut model = Model::new();
    let store = round.store();
    let (db, spaces) = model.open(&store, &settings)?;
    for keys in all.chunks(4) {
        let change = |k: &Vec<u8>| (0, k.clone(), Some(Value::of_len(&mut round.rng, 50)));
        let op = Op::Load(keys.iter().map(change).collect());
        op.perform(&db, &spaces).map_err(|e| format!("loading: {e}"))?;
        model.done(&op);
    }
    drop(spaces);
    db.close().map_err(|e| e.to_string())?;
    eprintln!("{} tables without a manifest; {settings:?}", tables(&store).len());
    for file in fs::read_dir(&store).map_err(|e| e.to_string())?.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if name == "CURRENT" || name.starts_with("MANIFEST") {
            fs::remove_file(file.path()).map_err(|e| e.to_string())?;
        }
    }
    let options = settings.with_orders(model.orders());
    api::repair(options, &store).map_err(|e| format!("repair without a manifest: {e}"))?;
    bounds::sound(&store, &model, &settings, &mut round.rng)
}
