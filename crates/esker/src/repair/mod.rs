//! Repair: saving every intact entry of a damaged store, and saying precisely what is lost.
//!
//! 1. The manifest is read as far as it goes; it says which tables there are and how old.
//! 2. Tables that no manifest names are taken up only when the manifest itself was damaged: they
//!    may be what it named.
//! 3. Sound tables stay as they are. Of damaged ones the intact blocks are copied to a new table.
//! 4. The log is read as far as it goes, segment by segment, and its entries written to tables.
//! 5. A new manifest names what there is now. Damaged files are kept under `lost/`, so that a
//!    repair never makes anything worse and can be run again.

mod copy;
mod log_entries;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::check::{check_manifest, lock_existing};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq, Stored};
use crate::log::{self, ManifestEnd, Segment};
use crate::memtable::Memtable;
use crate::table::{self, Table, TableSummary};
use crate::util::MAX_NEXT_FILE;
use crate::version::{self, Change, Edit, Manifest, Orders, State, TableMeta};
use copy::{Copy, meta_of_table, show};

/// Where damaged files are put.
const LOST: &str = "lost";

/// What a repair did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Tables of the repaired store.
    pub tables: u64,
    /// Entries in them, all versions counted.
    pub entries: u64,
    /// What was lost: files, offsets and key ranges, in words. Empty: nothing.
    pub lost: Vec<String>,
}

/// Removes a store that is not open.
pub(crate) fn destroy(env: &dyn Env, dir: &Path) -> Result<()> {
    if !env.exists(dir).map_err(|e| Error::io("open", dir, e))? {
        return Ok(());
    }
    let lock_path = dir.join(crate::store::LOCK);
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let ours = |n: &String| {
        n == version::CURRENT
            || n == version::CURRENT_TEMP
            || n == crate::store::LOCK
            || version::parse_manifest_name(n).is_some()
            || table::parse_file_name(n).is_some()
            || log::parse_file_name(n).is_some()
    };
    if !names.iter().any(ours) {
        return Err(Error::NotAStore { path: dir.to_path_buf() });
    }
    let lock = env.lock(&lock_path).map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: lock_path.clone() },
        _ => Error::io("lock", &lock_path, e),
    })?;
    // Again, now that nobody else is in it: the lock file is new where the store was never opened.
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    // CURRENT first: a store that is half removed is none.
    let mut names: Vec<&String> = names.iter().filter(|n| ours(n)).collect();
    names.sort_by_key(|n| (*n != version::CURRENT, *n == crate::store::LOCK));
    for name in names {
        let path = dir.join(name);
        match env.remove(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path, e));
            }
            _ => {}
        }
    }
    drop(lock);
    // Fails when something of the user's is in it, which then stays.
    drop(env.remove_dir(dir));
    Ok(())
}

/// Repairs the store in `dir`.
pub(crate) fn repair(env: Arc<dyn Env>, dir: &Path) -> Result<RepairReport> {
    let _lock = lock_existing(&env, dir)?;
    let salvaged = version::load_prefix(&*env, dir, &Orders::default())?;
    let names = env.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let numbers =
        names.iter().filter_map(|n| log::parse_file_name(n).or_else(|| table::parse_file_name(n)));
    // Numbers that no store comes to are not gone on from.
    let sound = |n: &u64| *n < MAX_NEXT_FILE;
    let noted = Some(salvaged.state.next_file);
    let next_file = numbers.map(|n| n + 1).chain(noted).filter(sound).max().unwrap_or(1);
    let mut lost = salvaged.lost;
    // When only CURRENT is damaged the manifest says as precisely as ever what there is.
    let mut manifest_damaged = !salvaged.whole;
    if let Some((number, end)) = salvaged.manifest
        && let Err(e) = check_manifest(&env, dir, ManifestEnd { number, end }, &salvaged.state)
    {
        lost.push(e.to_string());
        manifest_damaged = true;
    }
    let mut repair = Repair {
        report: RepairReport { lost, ..RepairReport::default() },
        segments: Vec::new(),
        aside: Vec::new(),
        found: Vec::new(),
        old: salvaged.state,
        env,
        dir: dir.to_path_buf(),
        names,
        next_file,
        manifest_damaged,
    };
    repair.open_segments();
    repair.tables()?;
    repair.unnamed_tables()?;
    repair.log()?;
    repair.finish()
}

struct Repair {
    env: Arc<dyn Env>,
    dir: PathBuf,
    names: Vec<String>,
    old: State,
    next_file: u64,
    manifest_damaged: bool,
    segments: Vec<Arc<Segment>>,
    /// Files to put under `lost/`.
    aside: Vec<String>,
    /// Keyspace, run and table of all that is saved.
    found: Vec<(u32, u64, TableMeta)>,
    report: RepairReport,
}

impl Repair {
    fn lose(&mut self, what: impl Into<String>) {
        self.report.lost.push(what.into());
    }

    fn open_segments(&mut self) {
        let references = self.old.segment_references();
        let mut numbers: Vec<u64> =
            self.names.iter().filter_map(|n| log::parse_file_name(n)).collect();
        numbers.sort_unstable();
        for number in numbers {
            let needed = self.manifest_damaged
                || number >= self.old.log_start
                || references.contains_key(&number);
            match Segment::open(&self.env, &self.dir, number, false) {
                Ok(s) => self.segments.push(Arc::new(s)),
                Err(_) if !needed => {}
                // Made, and not used before a crash. That the log should go on in it is told elsewhere.
                Err(_) if !references.contains_key(&number) && self.holds_nothing(number) => {}
                Err(e) => {
                    self.lose(format!("log segment {number} could not be read: {e}"));
                    self.aside.push(log::file_name(number));
                }
            }
        }
    }

    /// Whether a file that is no segment never held what a segment does.
    fn holds_nothing(&self, number: u64) -> bool {
        let left = Segment::never_synced(&self.env, &self.dir, number).ok().flatten();
        left.is_some_and(|behind| !behind.frames)
    }

    fn order_of(&mut self, id: u32) -> Option<KeyOrder> {
        let ks = self.old.keyspaces.get(&id)?;
        if ks.order.is_none() {
            let (name, order) = (ks.name.clone(), ks.order_name.clone());
            self.lose(format!(
                "keyspace {name:?} is ordered by comparator {order:?}, which repair does not know: left as it is"
            ));
        }
        self.old.keyspaces.get(&id)?.order.clone()
    }

    /// The tables that the manifest names.
    fn tables(&mut self) -> Result<()> {
        let named: Vec<(u32, u64, TableMeta)> = self
            .old
            .keyspaces
            .values()
            .flat_map(|k| k.version.runs().iter().map(move |r| (k.id, r)))
            .flat_map(|(id, r)| r.tables().iter().map(move |t| (id, r.id(), (**t).clone())))
            .collect();
        for (id, run, meta) in named {
            let Some(order) = self.order_of(id) else {
                self.found.push((id, run, meta));
                continue;
            };
            let path = self.dir.join(table::file_name(meta.number));
            let opened = Table::open(
                &*self.env,
                &path,
                meta.number,
                meta.size,
                order.clone(),
                meta.base_seq,
            );
            match opened {
                Err(e) => {
                    self.lose(format!(
                        "{e}; keys {} to {} may be missing or old",
                        show(&meta.smallest),
                        show(&meta.largest)
                    ));
                    self.aside.push(table::file_name(meta.number));
                }
                Ok(t) => self.keep_or_copy(id, run, Arc::new(t), order, meta)?,
            }
        }
        Ok(())
    }

    fn keep_or_copy(
        &mut self,
        id: u32,
        run: u64,
        t: Arc<Table>,
        order: KeyOrder,
        meta: TableMeta,
    ) -> Result<()> {
        let problems = t.verify(&mut |_| {})?;
        let values_whole = meta.references.iter().all(|r| self.values_whole(&t, r.segment));
        if problems.is_empty() && values_whole {
            self.report.entries += meta.entries;
            self.found.push((id, run, meta));
            return Ok(());
        }
        let name = table::file_name(meta.number);
        let mut copy = Copy::new(self, id, order)?;
        let mut bad_values = Vec::new();
        let segments = self.segments.clone();
        let mut buf = Vec::new();
        let lost = t.salvage(&mut |key, seq, kind, stored| {
            let seq = (seq != meta.base_seq).then_some(seq);
            match stored {
                Stored::Pointer(p) => {
                    let whole = segments
                        .iter()
                        .find(|s| s.number() == p.segment)
                        .is_some_and(|s| s.value(&p).is_ok());
                    if !whole {
                        bad_values.push(show(key));
                        return Ok(());
                    }
                    copy.add(key, seq, kind, stored)
                }
                Stored::Packed { .. } => match t.unpack(stored, &mut buf) {
                    Ok(()) => copy.add(key, seq, kind, Stored::Inline(&buf)),
                    // Not lost: another build can read it.
                    Err(e @ Error::NoZstd { .. }) => Err(e),
                    Err(_) => {
                        bad_values.push(show(key));
                        Ok(())
                    }
                },
                Stored::Inline(_) => copy.add(key, seq, kind, stored),
            }
        })?;
        let saved = copy.finish()?;
        for l in lost {
            let after = l
                .after
                .as_deref()
                .map_or("the first key".to_string(), |k| format!("key {}", show(k)));
            self.lose(format!("{name} at byte {}: a block after {after}: {}", l.offset, l.what));
        }
        for key in bad_values {
            self.lose(format!("{name}: the value of key {key} is damaged"));
        }
        for p in problems {
            self.lose(format!("{p} (found while repairing)"));
        }
        if let Some(summary) = saved {
            self.report.entries += summary.entries;
            let number = summary.number;
            let copied = self.meta_of(summary, meta.base_seq);
            debug_assert_eq!(copied.number, number);
            self.found.push((id, run, copied));
        }
        self.aside.push(name);
        Ok(())
    }

    fn values_whole(&self, t: &Arc<Table>, segment: u64) -> bool {
        let Some(s) = self.segments.iter().find(|s| s.number() == segment) else { return false };
        let mut whole = true;
        let walked = t.salvage(&mut |_, _, _, stored| {
            if let Stored::Pointer(p) = stored
                && p.segment == segment
            {
                whole &= s.value(&p).is_ok();
            }
            Ok(())
        });
        whole && walked.is_ok_and(|lost| lost.is_empty())
    }

    /// Tables that the manifest does not name. They count only when the manifest was damaged; the
    /// higher the number, the newer the table.
    fn unnamed_tables(&mut self) -> Result<()> {
        if !self.manifest_damaged {
            return Ok(());
        }
        let known: HashSet<u64> = self.found.iter().map(|(_, _, m)| m.number).collect();
        let mut numbers: Vec<u64> = self
            .names
            .iter()
            .filter_map(|n| table::parse_file_name(n))
            .filter(|n| !known.contains(n) && !self.aside.contains(&table::file_name(*n)))
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            let name = table::file_name(number);
            let path = self.dir.join(&name);
            let size = self.env.open(&path, crate::env::OpenMode::Read).and_then(|f| f.len());
            let size = size.map_err(|e| Error::io("open", &path, e))?;
            let opened = [KeyOrder::Bytewise, KeyOrder::Reverse]
                .into_iter()
                .map(|order| {
                    (order.clone(), Table::open(&*self.env, &path, number, size, order, 0))
                })
                .find(|(_, t)| !matches!(t, Err(Error::ComparatorMismatch { .. })));
            match opened {
                Some((order, Ok(t))) => {
                    let id = t.keyspace();
                    self.know_keyspace(id, &order);
                    let meta = meta_of_table(&t, size);
                    self.keep_or_copy(id, number, Arc::new(t), order, meta)?;
                }
                Some((_, Err(e))) => {
                    self.lose(format!("{e}; it may have been part of the store"));
                    self.aside.push(name);
                }
                None => self
                    .lose(format!("{name} has an order that repair does not know; left as it is")),
            }
        }
        Ok(())
    }

    /// A keyspace whose name was lost with the manifest gets its number for a name.
    fn know_keyspace(&mut self, id: u32, order: &KeyOrder) {
        if self.old.keyspaces.contains_key(&id) {
            return;
        }
        let name = if id == 0 {
            crate::store::DEFAULT_KEYSPACE.to_string()
        } else {
            let name = format!("recovered-{id}");
            self.lose(format!("the name of keyspace {id}; it is called {name:?} now"));
            name
        };
        let add = Change::AddKeyspace {
            id,
            name,
            order_name: order.name().to_string(),
            compression: None,
            separate_values_from: None,
        };
        // Ids that the lost part of the manifest had used may come in any order.
        let mut old = self.old.clone();
        old.next_keyspace = old.next_keyspace.min(id);
        if let Ok(mut next) = old.apply(&Edit::from(vec![add])) {
            next.next_keyspace = next.next_keyspace.max(self.old.next_keyspace);
            self.old = next;
        }
    }

    fn write_memtable(&mut self, id: u32, m: &Arc<Memtable>) -> Result<Option<TableMeta>> {
        use crate::key::Cursor;
        let Some(order) = self.order_of(id) else { return Ok(None) };
        let mut copy = Copy::new(self, id, order)?;
        let mut cursor = m.cursor();
        cursor.first()?;
        while cursor.valid() {
            copy.add(cursor.key(), Some(cursor.seq()), cursor.kind(), cursor.stored())?;
            cursor.next()?;
        }
        let Some(summary) = copy.finish()? else { return Ok(None) };
        self.report.entries += summary.entries;
        Ok(Some(self.meta_of(summary, 0)))
    }

    fn meta_of(&self, s: TableSummary, base_seq: Seq) -> TableMeta {
        crate::store::install::meta_of(s, base_seq)
    }

    /// Writes the new manifest and puts damaged files aside.
    fn finish(mut self) -> Result<RepairReport> {
        let mut state = State::new(Orders::default());
        let mut changes = Vec::new();
        let mut keyspaces: Vec<_> = self.old.keyspaces.values().collect();
        keyspaces.sort_by_key(|k| k.id);
        if keyspaces.first().is_none_or(|k| k.id != 0) {
            changes.push(Change::AddKeyspace {
                id: 0,
                name: crate::store::DEFAULT_KEYSPACE.to_string(),
                order_name: KeyOrder::Bytewise.name().to_string(),
                compression: None,
                separate_values_from: None,
            });
        }
        for k in keyspaces {
            changes.push(Change::AddKeyspace {
                id: k.id,
                name: k.name.clone(),
                order_name: k.order_name.clone(),
                compression: k.compression,
                separate_values_from: k.separate_values_from,
            });
        }
        let last_seq =
            self.found.iter().map(|(_, _, m)| m.max_seq).max().unwrap_or(0).max(self.old.last_seq);
        changes.push(Change::LastSeq { seq: last_seq });
        changes.push(Change::NextFile { number: self.next_file + 1 });
        if !self.report.lost.is_empty() {
            let mut note = self.report.lost.join("\n");
            let mut cut = note.len().min(32 << 10);
            while !note.is_char_boundary(cut) {
                cut -= 1;
            }
            note.truncate(cut);
            changes.push(Change::Repaired { note });
        }
        let bad = |e: version::Invalid| {
            Error::corrupt(&self.dir, 0, format!("repair could not put it together: {e}"))
        };
        state = state.apply(&Edit::from(changes)).map_err(bad)?;
        // One table after the other: where ages no longer fit together the table becomes a run of
        // its own, newer than those before it.
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|(_, run, m)| (*run, m.number));
        // A segment whose log is damaged stays where it is as long as values in it are needed.
        let needed = found.iter().flat_map(|(_, _, m)| &m.references);
        let needed: HashSet<String> = needed.map(|r| log::file_name(r.segment)).collect();
        self.aside.retain(|name| !needed.contains(name));
        for (id, run, meta) in found {
            self.report.tables += 1;
            let add =
                |run| Edit::from(vec![Change::AddTable { keyspace: id, run, meta: meta.clone() }]);
            let next = state.apply(&add(run)).or_else(|_| {
                let newest = state.keyspaces.get(&id).map_or(1, |k| k.version.next_run());
                state.apply(&add(newest))
            });
            match next {
                Ok(next) => state = next,
                Err(e) => {
                    self.report.tables -= 1;
                    self.report.entries = self.report.entries.saturating_sub(meta.entries);
                    let name = table::file_name(meta.number);
                    self.report.lost.push(format!("{name} does not fit to the others ({e})"));
                    self.aside.push(name);
                }
            }
        }
        state.close(self.next_file);
        self.make_lost()?;
        drop(Manifest::create(Arc::clone(&self.env), &self.dir, state)?);
        self.put_aside()?;
        Ok(self.report)
    }

    /// Before the manifest no longer names what is to be put aside: from then on opening removes it.
    fn make_lost(&self) -> Result<()> {
        if self.aside.is_empty() {
            return Ok(());
        }
        let lost = self.dir.join(LOST);
        // A directory is refused as a file, and a link as a link: it would lead outside.
        let is_link = |e: std::io::Error| {
            (e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())).then_some(e)
        };
        match self.env.open(&lost, crate::env::OpenMode::Read).err().and_then(is_link) {
            Some(e) => Err(Error::io("put damaged files into", &lost, e)),
            None => self.env.create_dir_all(&lost).map_err(|e| Error::io("create", &lost, e)),
        }
    }

    fn put_aside(&self) -> Result<()> {
        if self.aside.is_empty() {
            return Ok(());
        }
        let lost = self.dir.join(LOST);
        for name in &self.aside {
            let (from, to) = (self.dir.join(name), lost.join(name));
            match self.env.rename(&from, &to) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("put aside", &from, e));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
