//! Cursors, iterators, values and snapshots held while everything they see is overwritten again and
//! again: each stays as it was, what it pins is what it can see, and that comes back afterwards.

use esker::{Cursor, Db, Durability, Iter, KeyOrder, Keyspace, Slice, Snapshot};

use super::{Scenario, no_part};
use crate::callers::bounds::{self, disk};
use crate::callers::draw::{Key, Keys, Value, pick};
use crate::callers::model::Model;
use crate::callers::ops::Op;
use crate::callers::round::Round;
use crate::callers::settings::Settings;

pub const SCENARIO: Scenario = Scenario { name: "held", play, part: no_part };

/// What is held of a keyspace.
enum Held {
    Cursor(Box<Cursor>),
    Iter(Box<Iter>),
    Slice(Slice),
    Snapshot(Snapshot),
}

fn play(round: &mut Round) -> Result<(), String> {
    let len = pick(&mut round.rng, &[300, 3000, 10_000]);
    let settings = Settings { paranoid: false, ..Settings::small(&mut round.rng) };
    eprintln!("values of {len} bytes, {settings:?}");
    let mut model = Model::new();
    model.add("other", KeyOrder::Bytewise);
    model.add("dropped", KeyOrder::Bytewise);
    let keys = Keys { n: (8 << 20) / len, writer: 0 };
    let (db, spaces) = model.open(&round.store(), &settings)?;
    overwrite(round, &db, &spaces, keys, len, &mut model)?;
    for space in [1, 2] {
        let op = Op::Write(
            vec![(space, b"key".to_vec(), Some(Value::of_len(&mut round.rng, 5000)))],
            Durability::Buffered,
        );
        op.perform(&db, &spaces).map_err(|e| e.to_string())?;
        model.done(&op);
    }
    if round.rng.one_in(2) {
        db.wait_for_compactions().map_err(|e| e.to_string())?;
    }
    let before = model.clone();
    let mut held = Vec::new();
    for _ in 0..1 + round.rng.below(4) {
        let space = round.rng.below(3) as usize;
        held.push((space, hold(round, &db, &spaces[space])?));
    }
    db.drop_keyspace("dropped").map_err(|e| e.to_string())?;
    model.spaces.pop();
    // What is live, what is held, and what a merge writes beside them.
    let allowed = bounds::disk_allowed(&model, &settings) + 2 * before.bytes();
    for turn in 0..25 {
        overwrite(round, &db, &spaces, keys, len, &mut model)?;
        db.wait_for_compactions().map_err(|e| e.to_string())?;
        let taken = disk(&round.store());
        if taken > allowed {
            let (mib, live) = (taken >> 20, model.bytes() >> 20);
            let names: Vec<_> = held.iter().map(|(space, held)| (space, name(held))).collect();
            return Err(format!(
                "{mib} MiB on the disk of {live} live after {turn} turns while {names:?} are held"
            ));
        }
    }
    for (space, held) in held {
        is_as_it_was(held, &spaces[space], &before.spaces[space].entries)?;
    }
    overwrite(round, &db, &spaces, keys, len, &mut model)?;
    db.wait_for_compactions().map_err(|e| e.to_string())?;
    bounds::check_disk(&round.store(), &model, &settings).map_err(|e| format!("let go: {e}"))?;
    model.compare(&db, &mut round.rng)?;
    drop((db, spaces));
    bounds::sound(&round.store(), &model, &settings, &mut round.rng)
}

/// Gives every key of the default keyspace another value.
fn overwrite(
    round: &mut Round,
    db: &Db,
    spaces: &[Keyspace],
    keys: Keys,
    len: u64,
    model: &mut Model,
) -> Result<(), String> {
    for n in 0..keys.n {
        let value = Value::of_len(&mut round.rng, len);
        let op = Op::Write(vec![(0, keys.key(n), Some(value))], Durability::Buffered);
        op.perform(db, spaces).map_err(|e| format!("overwriting: {e}"))?;
        model.done(&op);
    }
    Ok(())
}

fn hold(round: &mut Round, db: &Db, ks: &Keyspace) -> Result<Held, String> {
    let wrong = |e: esker::Error| e.to_string();
    Ok(match round.rng.below(4) {
        0 => {
            let mut cursor = ks.cursor();
            cursor.first().map_err(wrong)?;
            Held::Cursor(Box::new(cursor))
        }
        1 => {
            let mut iter = ks.iter();
            if round.rng.one_in(2) {
                drop(iter.next());
                iter = ks.iter();
            }
            Held::Iter(Box::new(iter))
        }
        2 => match ks.iter().next().transpose().map_err(wrong)? {
            Some((key, _)) => Held::Slice(ks.get(key).map_err(wrong)?.ok_or("it is there")?),
            None => return Err("nothing to hold".to_string()),
        },
        _ => Held::Snapshot(db.snapshot()),
    })
}

fn name(held: &Held) -> &'static str {
    match held {
        Held::Cursor(_) => "a cursor",
        Held::Iter(_) => "an iterator",
        Held::Slice(_) => "a value",
        Held::Snapshot(_) => "a snapshot",
    }
}

fn is_as_it_was(
    held: Held,
    ks: &Keyspace,
    before: &std::collections::BTreeMap<Key, Value>,
) -> Result<(), String> {
    let what = name(&held);
    let mut found: Vec<(Key, Vec<u8>)> = Vec::new();
    let walked = (|| {
        match held {
            Held::Cursor(mut cursor) => {
                let mut on = cursor.first()?;
                while on {
                    found.push((cursor.key().to_vec(), cursor.value().to_vec()));
                    on = cursor.next()?;
                }
            }
            Held::Iter(iter) => found = iter.copied_out().collect::<esker::Result<_>>()?,
            Held::Slice(slice) => {
                found.extend(before.keys().next().map(|k| (k.clone(), slice.to_vec())))
            }
            Held::Snapshot(snapshot) => match ks.at(&snapshot).iter().copied_out().collect() {
                // That keyspace is gone, and its handles with it.
                Err(esker::Error::KeyspaceDropped { .. }) => return Ok(true),
                all => found = all?,
            },
        }
        Ok(false)
    })();
    let gone: bool = walked.map_err(|e: esker::Error| format!("{what} that was held: {e}"))?;
    let whole = what != "a value";
    let same =
        found.iter().zip(before).all(|((k, v), (key, value))| k == key && *v == value.bytes());
    if !gone && (!same || whole && found.len() != before.len()) {
        return Err(format!("{what} that was held is not as it was"));
    }
    Ok(())
}
