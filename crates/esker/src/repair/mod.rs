//! Repair: saving what is intact of a damaged store, and saying precisely what is lost.
//!
//! 1. Everything is verified. Of a store without a fault no file is changed.
//! 2. The manifest is read as far as it goes; it says which tables there are and how old.
//! 3. Tables that no manifest names are taken up only when the manifest itself was damaged: they
//!    may be what it named. Those that it says were removed, or of a keyspace that was dropped, are not, unless what
//!    was made of them is lost.
//! 4. Sound tables stay as they are. Of damaged ones the intact blocks are copied to new tables.
//! 5. The log is read as far as it goes, segment by segment, and its entries written to tables; also that of
//!    segments whose header is damaged or that were cut. Entries of a keyspace whose comparator is not given go into a new log; its tables stay as they are.
//! 6. Tables are laid into as few runs as their ages allow.
//! 7. A new manifest names what there is now. Damaged files are kept under `lost/`, so that a
//!    repair never makes anything worse and can be run again.
//!
//! Until the new manifest is in force the old store is there as it was: files are added and none is
//! changed. An error or a panic on the way removes them again; after a kill the next open does.

#[cfg(test)]
mod adopt_tests;
mod carry;
mod copy;
mod damaged;
#[cfg(test)]
mod inputs_tests;
mod log_entries;
mod losses;
mod runs;
mod tables;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unordered_tests;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::env::{Env, LockMode};
use crate::error::{Error, Finding, Result};
use crate::filename;
use crate::key::{KeyOrder, Seq};
use crate::options::{Compression, Options};
use crate::recovery::orders_of;
use crate::util::MAX_NEXT_FILE;
use crate::verify::{awaits_comparator, check_files, lock_existing};
use crate::version::{self, Change, Manifest, Orders, State, TableHistory, TableMeta, VersionEdit};
use crate::wal::{Lookup, Segment};
use carry::{Carried, NewLog};
use copy::Files;

/// What a repair did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Whether it changed anything: a sound store stays as it is.
    pub changed: bool,
    /// Tables of the store as it is now.
    pub tables: u64,
    /// Entries in them and in its log, all versions counted.
    pub entries: u64,
    /// What was found wrong, as far as it was looked at. Most of it need not be a loss.
    pub problems: Vec<Finding>,
    /// What was lost, each once. Empty: nothing.
    pub lost: Vec<Finding>,
    /// What was left as it is because a comparator is not given: each keyspace it is needed for, and
    /// what is wrong with its tables. [`Options::keyspace_comparator`] gives one.
    pub unchecked: Vec<Finding>,
}

/// Repairs the store in `dir`.
pub(crate) fn repair(env: Arc<dyn Env>, dir: &Path, options: &Options) -> Result<RepairReport> {
    options.validate()?;
    let _lock = lock_existing(&env, dir, LockMode::Exclusive)?;
    let orders = orders_of(options)?;
    let checked = check_files(&env, dir, &orders, &mut |_, _| {})?;
    let mut salvaged = version::load_prefix(&*env, dir, &Orders::default())?;
    give_orders(&mut salvaged.state, &orders)?;
    let (problems, unchecked) = (checked.report.problems, checked.unordered);
    if let Some(state) = checked.state
        && problems.is_empty()
        && state.next_file < MAX_NEXT_FILE
    {
        let tables = state.keyspaces.values().map(|k| k.version.tables().count() as u64).sum();
        let entries = checked.report.entries;
        return Ok(RepairReport { tables, entries, unchecked, ..RepairReport::default() });
    }
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let numbers = names.iter().filter_map(|n| filename::file_number(n));
    // Numbers that no store comes to are not gone on from.
    let sound = |n: &u64| *n < MAX_NEXT_FILE;
    let noted = Some(salvaged.state.next_file);
    let next_file = numbers.map(|n| n + 1).chain(noted).filter(sound).max().unwrap_or(1);
    let mut lost = salvaged.lost;
    // When only CURRENT is damaged the manifest says as precisely as ever what there is.
    let (whole, mut manifest_damaged) = (salvaged.whole, !salvaged.whole);
    if !manifest_damaged && lost_its_end(&salvaged.state, &names) {
        let what = "files that it names are missing: they were lost, or its end was";
        let name = salvaged.manifest.map(|(number, _)| filename::manifest(number));
        lost.push(Finding::new(name.unwrap_or_default(), what));
        manifest_damaged = true;
    }
    let mut repair = Repair {
        report: RepairReport { changed: true, problems, lost, unchecked, ..Default::default() },
        segments: BTreeMap::new(),
        remains: BTreeMap::new(),
        aside: salvaged.damaged.into_iter().map(filename::manifest).collect(),
        found: Vec::new(),
        adopted: Vec::new(),
        carried: Vec::new(),
        lost_keyspaces: salvaged.state.next_keyspace,
        there: names.iter().filter_map(|n| filename::table_number(n)).collect(),
        damaged: Vec::new(),
        removed: salvaged.history.removed(&salvaged.state),
        left_over: Vec::new(),
        history: salvaged.history,
        old: salvaged.state,
        files: Files::new(&env, dir.to_path_buf(), next_file),
        env,
        dir: dir.to_path_buf(),
        options,
        orders,
        names,
        log_seq: 0,
        manifest_whole: whole,
        manifest_damaged,
    };
    repair.open_segments()?;
    repair.tables()?;
    repair.unnamed_tables()?;
    repair.log()?;
    repair.finish()
}

/// Whether files are missing that an intact manifest names: it may have lost the edits that let go of them, and of
/// what those added it knows nothing.
fn lost_its_end(state: &State, names: &[String]) -> bool {
    let missing = |name: String| !names.contains(&name);
    let log = state.log();
    let tables = state.keyspaces.values().flat_map(|k| k.version.tables());
    !log.closed && missing(filename::segment(log.start))
        || tables.map(|t| filename::table(t.number)).any(missing)
}

/// Gives keyspaces the orders that the caller knows. They are looked up by name: a state that was
/// read without them is also read where an order contradicts it.
fn give_orders(state: &mut State, orders: &Orders) -> Result<()> {
    for ks in state.keyspaces.values_mut() {
        if let Some((given, _)) = orders.given(&ks.name).filter(|(name, _)| *name != ks.order_name)
        {
            return Err(Error::ComparatorMismatch {
                keyspace: ks.name.clone(),
                stored: ks.order_name.clone(),
                given: given.clone(),
            });
        }
        ks.order = orders.of(&ks.name, &ks.order_name);
    }
    Ok(())
}

struct Repair<'o> {
    env: Arc<dyn Env>,
    dir: PathBuf,
    options: &'o Options,
    orders: Orders,
    names: Vec<String>,
    old: State,
    /// From this number on the manifest, as far as it was read, knows of no keyspace: one below that it does not have
    /// was dropped.
    lost_keyspaces: u32,
    /// The tables of which there is a file.
    there: HashSet<u64>,
    /// Tables that the manifest names and that are lost, or some of what they held; and their keyspaces.
    damaged: Vec<(u32, TableMeta)>,
    /// Tables that the manifest, as far as it was read, says were removed, and that were not taken up again.
    removed: HashSet<u64>,
    /// Tables of keyspaces that were dropped.
    left_over: Vec<u64>,
    history: TableHistory,
    files: Rc<Files>,
    /// The last sequence found in the log.
    log_seq: Seq,
    /// It was read to its end. What came before a lost edit is then all there is to know of the log, and to be believed.
    manifest_whole: bool,
    /// There may be what it does not name.
    manifest_damaged: bool,
    /// The segments by number, and why those that are none are not.
    segments: BTreeMap<u64, Result<Arc<Segment>>>,
    /// Those of them that can be read and do not open, and why: no table may point to them any more.
    remains: BTreeMap<u64, Finding>,
    /// Files to put under `lost/`.
    aside: Vec<String>,
    /// Keyspace, run and table of all that is saved. Of keyspaces with an order the runs are made anew.
    found: Vec<(u32, u64, TableMeta)>,
    /// Tables that no manifest names, of keyspaces without an order.
    adopted: Vec<(u32, TableMeta)>,
    /// Segments with entries of keyspaces without an order.
    carried: Vec<Carried>,
    report: RepairReport,
}

impl Repair<'_> {
    fn lose(&mut self, what: Finding) {
        self.report.lost.push(what);
    }

    fn open_segments(&mut self) -> Result<()> {
        let with_values = self.old.value_segments();
        let mut numbers: Vec<u64> =
            self.names.iter().filter_map(|n| filename::segment_number(n)).collect();
        numbers.sort_unstable();
        for number in numbers {
            let needed = self.manifest_damaged
                || number >= self.old.log_start
                || with_values.contains(&number);
            let found = Lookup::open(&self.env, &self.dir, number, false);
            match found {
                Ok(Lookup::Segment(s)) => {
                    // There may be thousands.
                    s.release();
                    self.segments.insert(number, Ok(s));
                }
                Err(e) if e.is_passing() => return Err(e),
                Ok(Lookup::Missing) => {}
                _ if !needed => {}
                Err(e @ Error::UnsupportedFormat { .. }) => return Err(e),
                // Made, and not used before a crash. That the log should go on in it is told elsewhere.
                Ok(Lookup::Unused(behind, e))
                    if !behind.frames && !with_values.contains(&number) =>
                {
                    // Or one of which all that is left are values, far behind: which tables point there nobody
                    // knows yet.
                    if self.manifest_damaged
                        && let Ok(Some(left)) = Segment::remains(&self.env, &self.dir, number)
                    {
                        left.release();
                        self.remains.insert(number, Finding::from(&e));
                        self.segments.insert(number, Ok(Arc::new(left)));
                    }
                }
                Ok(Lookup::Unused(_, e)) | Err(e) => {
                    self.aside.push(filename::segment(number));
                    let values = self.manifest_damaged || with_values.contains(&number);
                    let left = self.remains_of_segment(number, e, values);
                    self.segments.insert(number, left);
                }
            }
        }
        Ok(())
    }

    /// What is left of a segment that does not open, for its header is damaged or it was cut. What of it is lost is
    /// told when that is looked for; where it does not begin as a segment does, all but the values that tables point to:
    /// what lies before them is given back to the file system when it is in tables.
    fn remains_of_segment(
        &mut self,
        number: u64,
        why: Error,
        values: bool,
    ) -> Result<Arc<Segment>> {
        let found = Finding::from(&why);
        if why.is_corruption()
            && let Ok(Some(segment)) = Segment::remains(&self.env, &self.dir, number)
            && (values || segment.frames().starts())
        {
            if !segment.frames().starts() && number >= self.old.log_start {
                self.lose(found.clone());
            }
            segment.release();
            if !self.report.problems.contains(&found) {
                self.report.problems.push(found.clone());
            }
            self.remains.insert(number, found);
            return Ok(Arc::new(segment));
        }
        self.lose(found);
        Err(why)
    }

    /// The segment of that number, or what is left of it.
    fn segment(&self, number: u64) -> Option<Arc<Segment>> {
        self.segments.get(&number)?.clone().ok()
    }

    /// The order of a keyspace, `None` when its comparator is not given.
    fn order_of(&self, id: u32) -> Option<KeyOrder> {
        self.old.keyspaces.get(&id)?.order.clone()
    }

    /// Whether the manifest says that this keyspace is no part of the store any more.
    fn was_dropped(&self, id: u32) -> bool {
        id < self.lost_keyspaces && !self.old.keyspaces.contains_key(&id)
    }

    fn compression_of(&self, id: u32) -> Compression {
        let own = self.old.keyspaces.get(&id).and_then(|k| k.compression);
        own.and_then(Compression::from_u8).unwrap_or(self.options.compression)
    }

    /// The order of a keyspace of which only entries in the log are left: a guess.
    fn order_of_lost(&self, id: u32) -> String {
        let given = self.options.comparator.as_ref().filter(|_| id == 0);
        given.map_or(KeyOrder::Bytewise.name(), KeyOrder::name).to_string()
    }

    /// A keyspace whose name was lost with the manifest gets its number for a name. Whether it is
    /// there now and has this order.
    fn know_keyspace(&mut self, id: u32, order_name: &str) -> bool {
        if let Some(known) = self.old.keyspaces.get(&id) {
            return known.order_name == order_name;
        }
        let name = if id == 0 {
            crate::store::DEFAULT_KEYSPACE.to_string()
        } else {
            let name = format!("recovered-{id}");
            let what = format!("the name of keyspace {id} is lost; it is called {name:?} now");
            self.lose(Finding::new("", what));
            name
        };
        let add = Change::AddKeyspace {
            id,
            name: name.clone(),
            order_name: order_name.to_string(),
            compression: None,
            blob_threshold: None,
        };
        // Ids that the lost part of the manifest had used may come in any order.
        let next = self.old.next_keyspace;
        self.old.next_keyspace = next.min(id);
        let added = self.old.apply_in_place(&VersionEdit::from(vec![add])).is_ok();
        self.old.next_keyspace = next.max(self.old.next_keyspace);
        if !added {
            return false;
        }
        if let Some(ks) = self.old.keyspaces.get_mut(&id) {
            ks.order = self.orders.of(&name, order_name);
            if ks.order.is_none() {
                let what = format!(
                    "keyspace {name:?} is ordered by comparator {order_name:?}, which is not known here: it was left as it is"
                );
                self.report.unchecked.push(Finding::new("", what));
            }
        }
        true
    }

    /// Writes the new manifest and puts damaged files aside.
    fn finish(mut self) -> Result<RepairReport> {
        self.arrange_all()?;
        let new_log = self.carry()?;
        let mut state = self.keyspaces(new_log.as_ref())?;
        self.name_tables(&mut state);
        match &new_log {
            Some(NewLog { start, durable, entries, .. }) => {
                (state.log_start, state.log_durable) = (*start, *durable);
                self.report.entries += entries;
            }
            None => state.close(self.files.next()),
        }
        // What counts as left over may be all that there is of what is lost, after all.
        if !(self.report.lost.is_empty() && self.report.unchecked.is_empty()) {
            let removed = self.removed.iter().filter(|n| self.there.contains(n));
            self.aside.extend(removed.chain(&self.left_over).map(|n| filename::table(*n)));
        }
        // A segment whose log is damaged stays where it is as long as values in it are needed.
        let needed: HashSet<String> =
            state.value_segments().into_iter().map(filename::segment).collect();
        self.aside.retain(|name| !needed.contains(name));
        // One may be damaged in several ways.
        self.aside.sort_unstable();
        self.aside.dedup();
        self.report_waiting(&state);
        let lost = self.keep_for_later()?;
        let keep = || self.files.keep();
        drop(Manifest::create_with(Arc::clone(&self.env), &self.dir, state, keep)?);
        self.put_aside(&lost)?;
        Ok(self.report)
    }

    /// Segments that do not open, and that tables point to all the same, as they cannot be written anew.
    fn report_waiting(&mut self, state: &State) {
        for number in state.value_segments() {
            let why = match self.segments.get(&number) {
                Some(Ok(_)) => self.remains.get(&number).cloned(),
                Some(Err(e)) => Some(Finding::from(e)),
                None => Segment::open(&self.env, &self.dir, number, false)
                    .err()
                    .map(|e| Finding::from(&e)),
            };
            let Some(found) = why.map(|found| awaits_comparator(found, state, number)) else {
                continue;
            };
            if !self.report.unchecked.contains(&found) {
                self.report.unchecked.push(found);
            }
        }
    }

    /// Lays the tables of each keyspace that has an order into runs.
    fn arrange_all(&mut self) -> Result<()> {
        self.place_adopted();
        let ordered: Vec<(u32, KeyOrder)> =
            self.old.keyspaces.values().filter_map(|k| Some((k.id, k.order.clone()?))).collect();
        for (id, order) in ordered {
            let found = std::mem::take(&mut self.found);
            let (own, others) = found.into_iter().partition::<Vec<_>, _>(|(of, _, _)| *of == id);
            self.found = others;
            let own = own.into_iter().map(|(_, _, meta)| meta).collect();
            for (run, level) in (1..).zip(self.arrange(id, &order, own)?) {
                self.found.extend(level.into_iter().map(|meta| (id, run, meta)));
            }
        }
        Ok(())
    }

    fn cannot_be(&self, e: version::Invalid) -> Error {
        Error::corrupt(&self.dir, 0, format!("repair could not put it together: {e}"))
    }

    /// The new state, without tables.
    fn keyspaces(&self, new_log: Option<&NewLog>) -> Result<State> {
        let add = |id, name: &str, order_name: &str| Change::AddKeyspace {
            id,
            name: name.to_string(),
            order_name: order_name.to_string(),
            compression: self.old.keyspaces.get(&id).and_then(|k| k.compression),
            blob_threshold: self.old.keyspaces.get(&id).and_then(|k| k.blob_threshold),
        };
        let mut changes = Vec::new();
        if !self.old.keyspaces.contains_key(&0) {
            changes.push(add(0, crate::store::DEFAULT_KEYSPACE, &self.order_of_lost(0)));
        }
        changes.extend(self.old.keyspaces.values().map(|k| add(k.id, &k.name, &k.order_name)));
        changes.extend(new_log.map(|l| l.flushed.clone()).unwrap_or_default());
        let last_seq = self.found.iter().map(|(_, _, m)| m.max_seq).max().unwrap_or(0);
        // Also what could not be saved has used its sequence.
        let last_seq = last_seq.max(self.old.last_seq).max(self.log_seq);
        let next_keyspace = self.old.next_keyspace.max(1);
        changes.push(Change::NextKeyspace { id: next_keyspace });
        changes.push(Change::LastSeq { seq: last_seq });
        changes.push(Change::NextFile { number: self.files.next() + 1 });
        // Inputs of a compaction and what came out of them may both be there now.
        changes.push(Change::MayRepeat { below: self.files.next() + 1 });
        let state = State::new(self.orders.clone());
        state.apply(&VersionEdit::from(changes)).map_err(|e| self.cannot_be(e))
    }

    /// Adds all tables that were found: together, or one by one where some do not fit, as those of a
    /// store that was made up do not.
    fn name_tables(&mut self, state: &mut State) {
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|(id, run, m)| (*id, *run, m.number));
        let add = |(keyspace, run, meta): &(u32, u64, TableMeta)| Change::AddTable {
            keyspace: *keyspace,
            run: *run,
            meta: meta.clone(),
        };
        let all = VersionEdit::from(found.iter().map(add).collect::<Vec<_>>());
        let together = state.apply_in_place(&all).is_ok();
        for table in found {
            if !together && let Err(e) = state.apply_in_place(&VersionEdit::from(vec![add(&table)]))
            {
                let name = filename::table(table.2.number);
                let what = format!("it does not fit to the other tables ({e})");
                let (from, to) = (&table.2.smallest, &table.2.largest);
                self.lose(Finding::new(&name, what).keys(from, to));
                self.aside.push(name);
                continue;
            }
            self.report.tables += 1;
            // Of a keyspace that nobody can order here it is what the manifest says.
            self.report.entries = self.report.entries.saturating_add(table.2.entries);
        }
    }

    /// Gives damaged files a second name under `lost/`, before the manifest no longer names them: from
    /// then on opening removes what is in the directory itself. Which names these are.
    fn keep_for_later(&self) -> Result<Vec<PathBuf>> {
        if self.aside.is_empty() {
            return Ok(Vec::new());
        }
        let lost = self.dir.join(filename::LOST);
        // A directory is refused as a file, and a link as a link: it would lead outside.
        let is_link = |e: std::io::Error| {
            (e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())).then_some(e)
        };
        match self.env.open(&lost, crate::env::OpenMode::Read).err().and_then(is_link) {
            Some(e) => return Err(Error::io("put damaged files into", &lost, e)),
            None => match self.env.create_dir(&lost) {
                Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("create", &lost, e));
                }
                // A file of this name would take none.
                _ => {
                    let there = self.env.list(&lost).map(drop);
                    there.map_err(|e| Error::io("put damaged files into", &lost, e))?;
                }
            },
        }
        let mut names = Vec::new();
        for name in &self.aside {
            let kept = self.free_name(&lost, name)?;
            // Where that cannot be had it is moved in the end.
            drop(self.env.hard_link(&self.dir.join(name), &kept));
            names.push(kept);
        }
        drop(self.env.sync_dir(&lost));
        Ok(names)
    }

    /// A name in `lost` that no file has, which an earlier repair may have put there: numbers of files come again when the
    /// manifest that knew them is lost.
    fn free_name(&self, lost: &Path, name: &str) -> Result<PathBuf> {
        let mut candidate = lost.join(name);
        let mut number = 2;
        while self.env.exists(&candidate).map_err(|e| Error::io("look for", &candidate, e))? {
            candidate = lost.join(filename::put_aside_again(name, number));
            number += 1;
        }
        Ok(candidate)
    }

    fn put_aside(&self, lost: &[PathBuf]) -> Result<()> {
        for (name, to) in self.aside.iter().zip(lost) {
            let from = self.dir.join(name);
            match self.env.rename(&from, to) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("put aside", &from, e));
                }
                // Renaming one name of a file to another of its names leaves both.
                _ => drop(self.env.remove(&from)),
            }
        }
        Ok(())
    }
}
