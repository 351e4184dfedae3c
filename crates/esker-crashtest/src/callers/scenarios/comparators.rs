//! Comparators that panic, lie, or have a name of the store's own, in one of several keyspaces. What
//! was acknowledged in all keyspaces survives however the process ends, and the store opens again
//! with a sound comparator of that name. A keyspace whose comparator lied is left out: nobody can say
//! where its keys are.

use std::time::{Duration, Instant};

use esker::{KeyOrder, KeyspaceOptions};

use super::Scenario;
use crate::callers::draw::{Keys, pick};
use crate::callers::model::Model;
use crate::callers::ops::Ops;
use crate::callers::orders::{self, Manner};
use crate::callers::round::Round;
use crate::callers::settings::Settings;
use crate::callers::tally::{Of, count};
use crate::callers::writer::{self, ENDS, End};
use crate::callers::{bounds, panics};
use crate::script::Rng;
use crate::victim::Victim;

pub const SCENARIO: Scenario = Scenario { name: "comparators", play, part };

const NAME: &str = "by sum";
/// The keyspace with the hostile comparator.
const HOSTILE: usize = 1;

/// What both processes know from the seed.
struct Setting {
    settings: Settings,
    manner: Manner,
    patience: u64,
    end: End,
    operations: u32,
    ops: Ops,
    model: Model,
}

impl Setting {
    fn new(seed: u64) -> Setting {
        let mut rng = Rng::new(seed);
        let mut model = Model::new();
        model.add("hostile", orders::sound(NAME));
        model.add("other", KeyOrder::Reverse);
        let settings = Settings::small(&mut rng);
        let sound = vec![KeyOrder::Bytewise, orders::sound(NAME), KeyOrder::Reverse];
        use Manner::{Lies, PanicsForEver, PanicsOnSome, PanicsOnce};
        Setting {
            settings,
            manner: pick(&mut rng, &[PanicsOnce, PanicsOnce, PanicsOnSome, PanicsForEver, Lies]),
            patience: pick(&mut rng, &[1, 100, 3000, 30_000, 200_000]),
            end: pick(&mut rng, &ENDS),
            operations: 200 + rng.below(2500) as u32,
            ops: Ops::new(rng.next(), sound, Keys { n: 400, writer: 0 }),
            model,
        }
    }
}

fn play(round: &mut Round) -> Result<(), String> {
    foreign_name(&mut round.within("names")?)?;
    let seed = round.rng.next();
    let Setting { mut model, settings, manner, patience, end, mut ops, .. } = Setting::new(seed);
    eprintln!("{manner:?} after {patience} calls, then {end:?}; {settings:?}");
    let store = round.store();
    let path = store.to_str().ok_or("a path in UTF-8")?;
    let mut victim = Victim::start(&mut round.part(&[path, &seed.to_string()])?)?;
    let (mut killed, start) = (end == End::Kill, Instant::now());
    let messages = if killed {
        // Some are killed before they come to their end.
        let early = Duration::from_millis(round.rng.below(3000));
        while start.elapsed() < early && !victim.ended()? {
            std::thread::sleep(Duration::from_millis(5));
        }
        killed = !victim.ended()?;
        count(Of::Kills, u64::from(killed));
        victim.kill()?
    } else {
        let (status, messages) = victim.wait()?;
        if !status.success() {
            return Err(format!("the writer ended with {status}"));
        }
        messages
    };
    count(Of::Panics, u64::from(manner != Manner::Lies));
    writer::learn(&mut model, &mut ops, &messages);
    if manner == Manner::Lies {
        return others_survive(round, &model, &settings);
    }
    if !store.join("CURRENT").exists() && messages.is_empty() {
        return Ok(());
    }
    bounds::sound(&store, &model, &settings, &mut round.rng)
}

/// `STORE SEED`: writes with a comparator that turns.
fn part(args: &[&str]) -> Result<(), String> {
    let [store, seed] = args else { return Err("STORE SEED".to_string()) };
    let setting = Setting::new(seed.parse().map_err(|_| "a seed")?);
    let Setting { mut model, settings, manner, patience, mut ops, .. } = setting;
    model.spaces[HOSTILE].order = orders::hostile(NAME, manner, patience);
    let (db, spaces) = model.open(store.as_ref(), &settings)?;
    writer::play(&db, &spaces, &mut ops, setting.operations);
    setting.end.carry_out(db, spaces)
}

/// After lies the store opens and all other keyspaces are whole.
fn others_survive(round: &mut Round, model: &Model, settings: &Settings) -> Result<(), String> {
    let settings = Settings { paranoid: false, ..settings.clone() };
    let (_db, spaces) = model.open(&round.store(), &settings)?;
    for (n, (space, ks)) in model.spaces.iter().zip(&spaces).enumerate() {
        if n != HOSTILE {
            space.compare(ks, &mut round.rng)?;
        }
    }
    Ok(())
}

/// A comparator that has the name of another order is refused, or goes on working after a reopen.
fn foreign_name(round: &mut Round) -> Result<(), String> {
    let name = pick(&mut round.rng, &["esker.bytewise", "esker.reverse", "", "esker.new", "a\0b"]);
    let settings = Settings::small(&mut round.rng);
    let mut model = Model::new();
    let (db, _) = model.open(&round.store(), &settings)?;
    let options = KeyspaceOptions::new().comparator(orders::sound(name));
    let made = panics::refusing(|| db.create_keyspace("named", options));
    if let Some(Ok(ks)) = made {
        model.add("named", orders::sound(name));
        let orders = model.orders().map(|(_, o)| o).collect();
        let mut ops = Ops::new(round.rng.next(), orders, Keys { n: 100, writer: 0 });
        let spaces = [db.keyspace("default").map_err(|e| e.to_string())?, ks];
        for op in std::iter::from_fn(|| Some(ops.next())).take(300) {
            op.perform(&db, &spaces).map_err(|e| e.to_string())?;
            model.done(&op);
        }
    }
    db.close().map_err(|e| e.to_string())?;
    bounds::sound(&round.store(), &model, &settings, &mut round.rng)
        .map_err(|e| format!("with a comparator named {name:?}: {e}"))
}
