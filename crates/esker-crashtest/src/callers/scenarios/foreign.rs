//! Batches, snapshots and handles of another store, and of an earlier opening of the same one: each
//! is refused, by an error or a panic, or does what it says; nothing else is written.

use esker::{Db, Durability, Keyspace, WriteBatch};

use super::{Scenario, no_part};
use crate::callers::draw::{Keys, pick};
use crate::callers::model::Model;
use crate::callers::ops::Ops;
use crate::callers::round::Round;
use crate::callers::settings::Settings;
use crate::callers::{api, bounds, orders, panics};

pub const SCENARIO: Scenario = Scenario { name: "foreign", play, part: no_part };

fn play(round: &mut Round) -> Result<(), String> {
    let settings = Settings::small(&mut round.rng);
    let mut stores = Vec::new();
    for n in 0..2 {
        let mut model = Model::new();
        for m in 0..1 + round.rng.below(3) {
            let order = orders::draw(&mut round.rng);
            model.add(&format!("store {n}, space {m}"), order);
        }
        let (db, spaces) = model.open(&round.dir.join(format!("store-{n}")), &settings)?;
        stores.push((model, db, spaces));
    }
    for _ in 0..20 {
        for (n, (model, db, spaces)) in stores.iter_mut().enumerate() {
            let orders = model.orders().map(|(_, o)| o).collect();
            let mut ops = Ops::new(round.rng.next(), orders, Keys { n: 200, writer: n });
            for op in std::iter::from_fn(|| Some(ops.next())).take(20) {
                op.perform(db, spaces).map_err(|e| e.to_string())?;
                model.done(&op);
            }
        }
        let (from, to) = pick(&mut round.rng, &[(0, 1), (1, 0)]);
        batch(&stores[to].1, &stores[from].2, round)?;
        snapshot(&stores[from].1, &stores[to].2, round)?;
        for (model, db, _) in &stores {
            model.compare(db, &mut round.rng).map_err(|e| format!("another store's batch: {e}"))?;
        }
    }
    let (model, db, spaces) = stores.swap_remove(0);
    drop(stores);
    earlier_opening(round, &settings, model, db, spaces)
}

/// A batch through another store's keyspaces, alone or among writes of this store's.
fn batch(to: &Db, foreign: &[Keyspace], round: &mut Round) -> Result<(), String> {
    let mut batch = WriteBatch::new();
    let space = pick(&mut round.rng, foreign);
    if round.rng.one_in(2) {
        batch.put("foreign", "in the default keyspace, by no handle");
    }
    if round.rng.one_in(2) {
        batch.delete_in(&space, "foreign");
    }
    batch.put_in(&space, "foreign", "a value");
    let durability = pick(&mut round.rng, &[Durability::Buffered, Durability::Synced]);
    match panics::refusing(|| api::write(to, &batch, durability)) {
        Some(Ok(())) => Err(format!("a batch through {space:?} of another store was written")),
        _ => Ok(()),
    }
}

/// A snapshot of another store.
fn snapshot(from: &Db, spaces: &[Keyspace], round: &mut Round) -> Result<(), String> {
    let (snapshot, space) = (from.snapshot(), pick(&mut round.rng, spaces));
    match panics::refusing(|| space.at(&snapshot).get("any key").map(drop)) {
        Some(Ok(())) => Err("a snapshot of another store was read at".to_string()),
        _ => Ok(()),
    }
}

/// What was made in an earlier opening is refused, or as good as new where it names the same thing.
fn earlier_opening(
    round: &mut Round,
    settings: &Settings,
    model: Model,
    db: Db,
    spaces: Vec<Keyspace>,
) -> Result<(), String> {
    let dir = round.dir.join("store-0");
    let (old, snapshot) = (spaces[1].clone(), db.snapshot());
    let mut batch = WriteBatch::new();
    batch.put_in(&old, "of the earlier opening", "");
    drop(spaces);
    db.close().map_err(|e| format!("closing: {e}"))?;
    let (db, spaces) = model.open(&dir, settings)?;
    if old.put("key", "value").is_ok() || old.get("key").is_ok() {
        return Err("a handle of a closed store was used".to_string());
    }
    if let Some(Ok(_)) = panics::refusing(|| spaces[1].at(&snapshot).get("key").map(drop)) {
        return Err("a snapshot of an earlier opening was read at".to_string());
    }
    if let Some(Ok(())) = panics::refusing(|| api::write(&db, &batch, Durability::Buffered)) {
        let ks = &spaces[1];
        let found = ks.get("of the earlier opening").map_err(|e| e.to_string())?;
        if found.is_none() {
            return Err("a batch of an earlier opening was written elsewhere".to_string());
        }
        ks.delete("of the earlier opening").map_err(|e| e.to_string())?;
    }
    drop((db, spaces, snapshot, old));
    bounds::sound(&dir, &model, settings, &mut round.rng)
}
