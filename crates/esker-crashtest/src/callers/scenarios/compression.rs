//! What is in a table is compressed as the options say, whichever way it came there: by puts, by a
//! bulk load, by a compaction with another setting.

use std::path::Path;

use esker::{Compression, Db};

use super::{Scenario, no_part};
use crate::callers::draw::pick;
use crate::callers::round::Round;
use crate::callers::settings::Settings;
use crate::script::Rng;

pub const SCENARIO: Scenario = Scenario { name: "compression", play, part: no_part };

const ALL: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

fn play(round: &mut Round) -> Result<(), String> {
    let settings = Settings { separate: 1 << 20, ..Settings::small(&mut round.rng) };
    let (was, becomes) = (pick(&mut round.rng, &ALL), pick(&mut round.rng, &ALL));
    let (n, len) = (20_000, pick(&mut round.rng, &[80, 200, 1000]));
    let entries: Vec<(String, String)> =
        (0..n).map(|n| (format!("{n:08}"), text(&mut round.rng, len))).collect();
    eprintln!("{was:?}, then {becomes:?}; values of {len}; {settings:?}");
    let open = |name: &str, compression: Compression| {
        let settings = Settings { compression, ..settings.clone() };
        settings.options().open(round.dir.join(name)).map_err(|e| format!("opening: {e}"))
    };
    let put = size(open("put", was)?, |db| {
        entries.iter().try_for_each(|(key, value)| db.put(key, value))
    })?;
    let loaded = size(open("loaded", was)?, |db| {
        db.bulk_load(entries.iter().map(|(k, v)| (k, v))).map(drop)
    })?;
    alike("put and loaded", put, loaded)?;
    // As it would be if it had been written so.
    let expected = size(open("expected", becomes)?, |db| {
        entries.iter().try_for_each(|(key, value)| db.put(key, value))
    })?;
    for name in ["put", "loaded"] {
        let compacted = size(open(name, becomes)?, |db| db.compact_range::<&[u8]>(..))?;
        let what = format!("{name} with {was:?}, compacted with {becomes:?}, against written so");
        alike(&what, expected, compacted)?;
        holds(&round.dir.join(name), &entries)?;
    }
    Ok(())
}

/// A line of few words, as programs write.
fn text(rng: &mut Rng, len: usize) -> String {
    let words = ["state", "warning", "connection", "accepted", "from", "2026-11", "user", "retry"];
    let mut text = String::new();
    while text.len() < len {
        text.push_str(pick(rng, &words));
        text.push_str(&format!("={};", rng.below(100)));
    }
    text.truncate(len);
    text
}

/// Bytes of tables once the work is done and settled.
fn size(db: Db, work: impl FnOnce(&Db) -> esker::Result<()>) -> Result<u64, String> {
    work(&db).and_then(|()| db.wait_for_compactions()).map_err(|e| e.to_string())?;
    let size = db.stats().table_bytes;
    db.close().map_err(|e| e.to_string())?;
    Ok(size)
}

fn alike(what: &str, a: u64, b: u64) -> Result<(), String> {
    let (small, large) = (a.min(b), a.max(b));
    match large > small + small / 2 {
        true => Err(format!("{what}: {a} and {b} bytes")),
        false => Ok(()),
    }
}

fn holds(store: &Path, entries: &[(String, String)]) -> Result<(), String> {
    let db = Db::open(store).map_err(|e| e.to_string())?;
    let mut found = db.iter();
    for (key, value) in entries {
        match found.next() {
            Some(Ok((k, v))) if k == key.as_bytes() && v == value.as_bytes() => {}
            other => return Err(format!("at {key}: {other:?}")),
        }
    }
    Ok(())
}
