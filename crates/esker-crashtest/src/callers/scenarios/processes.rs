//! Several processes that open, write, destroy, and are killed, all on one path. Never are there two
//! owners; what a destroyed store held is gone; what was acknowledged in the store that is there, is
//! there.
//!
//! The oracle is a *journal* beside the store. Each store that is made has a *generation*, written into
//! it and into the journal, and holds the keys from 0 on, without a gap.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use esker::{Db, Error};

use super::Scenario;
use crate::callers::draw::pick;
use crate::callers::round::Round;
use crate::callers::settings::Settings;
use crate::callers::tally::{Of, count};
use crate::script::Rng;
use crate::victim::Victim;

pub const SCENARIO: Scenario = Scenario { name: "processes", play, part };

const PROCESSES: usize = 5;

fn play(round: &mut Round) -> Result<(), String> {
    let dir = round.dir.to_str().ok_or("a path in UTF-8")?.to_string();
    let kills = round.rng.one_in(2);
    // Without kills they do one thing each, as fast as they can.
    let start = |round: &mut Round, n: usize| {
        let role = if kills { "both" } else { ["opens", "destroys"][n % 2] };
        let seed = round.rng.next().to_string();
        Victim::start(&mut round.part(&[&dir, &seed, role])?)
    };
    let mut all = (0..PROCESSES).map(|n| start(round, n)).collect::<Result<Vec<_>, _>>()?;
    let until = Instant::now() + Duration::from_millis(2000 + round.rng.below(2000));
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(round.rng.below(100)));
        let n = round.rng.below(PROCESSES as u64) as usize;
        // One that ended by itself has found something, and said what.
        if !kills && !all[n].ended()? {
            continue;
        }
        all[n].kill()?;
        count(Of::Kills, 1);
        all[n] = start(round, n)?;
    }
    for mut victim in all {
        victim.kill()?;
    }
    let place = Place { dir: round.dir.clone() };
    let journal = place.journal()?;
    count(Of::Destroys, journal.lines.iter().filter(|l| l[0] == "destroyed").count() as u64);
    count(Of::Opens, journal.lines.iter().filter(|l| l[0] == "opened").count() as u64);
    count(Of::Operations, journal.lines.iter().filter(|l| l[0] == "wrote").count() as u64);
    place.own(&mut round.rng, 1)
}

/// `DIR SEED ROLE`: opens and destroys, or one of them, until it is killed.
fn part(args: &[&str]) -> Result<(), String> {
    let [dir, seed, role] = args else { return Err("DIR SEED ROLE".to_string()) };
    let mut rng = Rng::new(seed.parse().map_err(|_| "a seed")?);
    let place = Place { dir: PathBuf::from(dir) };
    loop {
        match *role {
            "opens" => place.own(&mut rng, 3)?,
            "destroys" => place.destroy(&mut rng)?,
            _ => {
                match rng.below(3) {
                    0 => place.destroy(&mut rng)?,
                    _ => place.own(&mut rng, 30)?,
                }
                std::thread::sleep(Duration::from_micros(rng.below(2000)));
            }
        }
    }
}

/// What all processes share.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    fn note(&self, words: &[&str]) -> Result<(), String> {
        let path = self.dir.join("journal");
        let mut file =
            OpenOptions::new().append(true).create(true).open(path).map_err(|e| e.to_string())?;
        // One call, so that a kill leaves whole lines.
        file.write_all(format!("{}\n", words.join(" ")).as_bytes()).map_err(|e| e.to_string())
    }

    fn journal(&self) -> Result<Journal, String> {
        let text = fs::read_to_string(self.dir.join("journal")).unwrap_or_default();
        let words = |l: &str| l.split(' ').map(str::to_string).collect();
        Ok(Journal { lines: text.lines().map(words).collect() })
    }

    fn destroy(&self, rng: &mut Rng) -> Result<(), String> {
        let id = rng.next().to_string();
        self.note(&["destroying", &id])?;
        match insist(|| Db::destroy(self.store())) {
            Ok(()) => self.note(&["destroyed", &id]),
            // It never had the store.
            Err(Error::Locked { .. } | Error::NotAStore { .. }) => self.note(&["refused", &id]),
            Err(e) if is_missing(&e) => self.note(&["refused", &id]),
            Err(e) => Err(format!("destroying: {e}")),
        }
    }

    /// Opens the store if nobody has it, checks it, and writes up to so many keys.
    fn own(&self, rng: &mut Rng, keys: u64) -> Result<(), String> {
        // One opened before the store and one after it: a process that is killed lets go of its locks one by one, first to
        // last or last to first. So one of the two is free whenever the store's own is.
        let token = |name| File::create(self.dir.join(name)).map_err(|e| e.to_string());
        let before = token("token before")?;
        let db = match insist(|| open(&self.store(), rng)) {
            Ok(db) => db,
            Err(Error::Locked { .. }) => return Ok(()),
            // Its directory was destroyed meanwhile.
            Err(e) if is_missing(&e) => return Ok(()),
            Err(e) => return Err(format!("opening: {e}")),
        };
        let after = token("token after")?;
        let held = [before.try_lock(), after.try_lock()];
        if held.iter().all(Result::is_err) {
            return Err("two processes own the store".to_string());
        }
        let wrong = |e: Error| format!("as the owner: {e}");
        let generation = match db.get("generation").map_err(wrong)? {
            Some(generation) => String::from_utf8_lossy(&generation).into_owned(),
            None => {
                self.journal()?.may_be_new(&db)?;
                let generation = rng.next().to_string();
                self.note(&["new", &generation])?;
                db.put("generation", &generation).map_err(wrong)?;
                generation
            }
        };
        self.note(&["opened", &generation])?;
        let next = self.journal()?.check(&db, &generation)?;
        for n in next..next + rng.below(keys) {
            db.put(format!("key {n:08}"), &generation).map_err(wrong)?;
            self.note(&["wrote", &generation, &n.to_string()])?;
        }
        match rng.below(4) {
            0 => db.flush().map_err(wrong)?,
            // Long enough for others to come by.
            1 => std::thread::sleep(Duration::from_micros(rng.below(3000))),
            _ => {}
        }
        if !self.store().join("CURRENT").exists() {
            return Err("the store was destroyed while it was open".to_string());
        }
        before.unlock().and_then(|()| after.unlock()).map_err(|e| e.to_string())?;
        match rng.one_in(2) {
            true => db.close().map_err(wrong),
            false => Ok(()),
        }
    }
}

/// Again and again while somebody else has the store: who comes in the very moment in which another
/// leaves finds most.
fn insist<T>(mut call: impl FnMut() -> esker::Result<T>) -> esker::Result<T> {
    for _ in 0..300 {
        match call() {
            Err(Error::Locked { .. } | Error::NotAStore { .. }) => {}
            other => return other,
        }
    }
    call()
}

fn is_missing(e: &Error) -> bool {
    matches!(e, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

fn open(store: &Path, rng: &mut Rng) -> esker::Result<Db> {
    let spelled = match pick(rng, &[0, 1]) {
        0 => store.to_path_buf(),
        _ => store.join("..").join("store"),
    };
    // Not by way of the store, which may be gone.
    let spelled = if store.exists() { spelled } else { store.to_path_buf() };
    Settings { paranoid: false, ..Settings::small(rng) }.options().open(spelled)
}

/// Where the journal has the end of a destruction, and whether it took place.
type Ended = (usize, bool);

struct Journal {
    lines: Vec<Vec<String>>,
}

impl Journal {
    /// Whether each destruction was refused, is done (and where that stands), or neither is known.
    fn destructions(&self) -> HashMap<&str, (usize, Option<Ended>)> {
        let mut all = HashMap::new();
        for (at, line) in self.lines.iter().enumerate() {
            match (line[0].as_str(), line.get(1)) {
                ("destroying", Some(id)) => drop(all.insert(id.as_str(), (at, None))),
                (how @ ("destroyed" | "refused"), Some(id)) => {
                    if let Some(begun) = all.get_mut(id.as_str()) {
                        begun.1 = Some((at, how == "destroyed"));
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// A store without a generation is empty, and the one before it was destroyed.
    fn may_be_new(&self, db: &Db) -> Result<(), String> {
        if let Some(entry) = db.iter().next() {
            return Err(format!(
                "a new store holds {:?}",
                entry.map(|e| e.0.escape_ascii().to_string())
            ));
        }
        let Some(last) = self.lines.iter().rposition(|l| l[0] == "wrote") else { return Ok(()) };
        let after = |end: &Option<Ended>| match end {
            None => true,
            Some((at, destroyed)) => *destroyed && *at > last,
        };
        match self.destructions().values().any(|(_, end)| after(end)) {
            true => Ok(()),
            false => Err("the store is gone, and nobody destroyed it".to_string()),
        }
    }

    /// Compares the store with what was written to its generation; the next key.
    fn check(&self, db: &Db, generation: &str) -> Result<u64, String> {
        let of = |l: &&Vec<String>| l.get(1).is_some_and(|g| g == generation);
        let made =
            self.lines.iter().position(|l| l[0] == "new" && of(&l)).ok_or("no such store")?;
        for (begun, end) in self.destructions().values() {
            if *begun > made && end.is_some_and(|(_, destroyed)| destroyed) {
                return Err("a destroyed store came back".to_string());
            }
        }
        let wrote = self.lines.iter().filter(of).filter(|l| l[0] == "wrote");
        let wrote = wrote.filter_map(|l| l.get(2)?.parse::<u64>().ok()).max();
        let mut next = 0;
        for entry in db.prefix("key ") {
            let (key, value) = entry.map_err(|e| format!("walking: {e}"))?;
            if key != format!("key {next:08}").into_bytes() || value != generation.as_bytes() {
                return Err(format!("{} where key {next} should be", key.escape_ascii()));
            }
            next += 1;
        }
        match wrote {
            Some(last) if last >= next => {
                Err(format!("key {last} was acknowledged; {next} are there"))
            }
            _ => Ok(next),
        }
    }
}
