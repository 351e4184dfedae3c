//! The caller's small pieces of code that the store calls: keys that are other bytes each time they are
//! asked for, that panic, or that write to the store meanwhile; progress that does the same; bounds the
//! wrong way round. Whatever they do, what others wrote stays as it is.

use std::cell::Cell;
use std::ops::Bound;

use esker::{Db, KeyOrder, Keyspace};

use super::{Scenario, no_part};
use crate::callers::bounds;
use crate::callers::draw::{Keys, pick};
use crate::callers::model::Model;
use crate::callers::ops::Ops;
use crate::callers::panics;
use crate::callers::round::Round;
use crate::callers::settings::Settings;
use crate::callers::tally::{Of, count};

pub const SCENARIO: Scenario = Scenario { name: "closures", play, part: no_part };

/// Bytes that are not what they were.
struct Restless<'a> {
    asked: Cell<usize>,
    ks: &'a Keyspace,
    manner: Manner,
}

#[derive(Clone, Copy, Debug)]
enum Manner {
    Changes,
    PanicsFirst,
    PanicsLater,
    Writes,
}

const CHANGING: [&[u8]; 4] = [b"restless", b"", b"restless, and a good deal longer", b"\xff"];

impl AsRef<[u8]> for Restless<'_> {
    fn as_ref(&self) -> &[u8] {
        let asked = self.asked.get();
        self.asked.set(asked + 1);
        match self.manner {
            Manner::Changes => CHANGING[asked % CHANGING.len()],
            Manner::PanicsFirst => panics::inject("in a key"),
            Manner::PanicsLater if asked > 0 => panics::inject("in a key asked for again"),
            Manner::PanicsLater => CHANGING[0],
            Manner::Writes => {
                drop(self.ks.put("written within", "a call"));
                CHANGING[0]
            }
        }
    }
}

fn play(round: &mut Round) -> Result<(), String> {
    let settings = Settings::small(&mut round.rng);
    let mut model = Model::new();
    // Where restless keys go; nobody knows which.
    model.add("restless", KeyOrder::Bytewise);
    model.add("reverse", KeyOrder::Reverse);
    let (db, spaces) = model.open(&round.store(), &settings)?;
    let orders = vec![KeyOrder::Bytewise];
    let mut ops = Ops::new(round.rng.next(), orders, Keys { n: 400, writer: 0 });
    for _ in 0..60 {
        for _ in 0..20 {
            let op = ops.next();
            op.perform(&db, &spaces).map_err(|e| e.to_string())?;
            model.done(&op);
        }
        disturb(round, &db, &spaces[1]);
        backwards(&spaces[0])?;
    }
    model.spaces[0].compare(&spaces[0], &mut round.rng)?;
    // From here on it is left out: what its keys are depends on how often they were asked for.
    drop(spaces);
    db.drop_keyspace("restless").map_err(|e| e.to_string())?;
    model.spaces.remove(1);
    drop(db);
    bounds::sound(&round.store(), &model, &settings, &mut round.rng)
}

/// One call with restless keys or progress; its result does not matter.
fn disturb(round: &mut Round, db: &Db, ks: &Keyspace) {
    use Manner::{Changes, PanicsFirst, PanicsLater, Writes};
    let manner = pick(&mut round.rng, &[Changes, PanicsFirst, PanicsLater, Writes]);
    let key = || Restless { asked: Cell::new(0), ks, manner };
    count(Of::Operations, 1);
    let what = round.rng.below(9);
    panics::caught(|| match what {
        0 => drop(ks.put(key(), key())),
        1 => drop(ks.get(key())),
        2 => drop(ks.multi_get(&[key(), key(), key()])),
        3 => drop(ks.range((Bound::Included(key()), Bound::Excluded(key()))).count()),
        4 => drop(ks.compact_range(key()..key())),
        5 => drop(ks.bulk_load([(key(), key()), (key(), key())])),
        6 => drop(ks.approximate_size(key()..)),
        7 => drop(ks.cursor().seek(key())),
        _ => drop(db.verify_with(|_, _| {
            key().as_ref();
        })),
    });
}

/// A range whose end is before its beginning is empty, from either end.
fn backwards(ks: &Keyspace) -> Result<(), String> {
    let bounds = || (Bound::Included("9"), Bound::Excluded("0"));
    let ends = [ks.range::<&str>(bounds()).next(), ks.range::<&str>(bounds()).next_back()];
    match ends.into_iter().flatten().next() {
        None => Ok(()),
        Some(entry) => Err(format!("a range backwards gives {:?}", entry.map(|e| e.0))),
    }
}
