//! Asks the picker about a keyspace, and has done what it says where there is room for it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::inputs::CompactionInputs;
use super::overlap::{self, OverlapGroup};
use super::picker::{self, Compaction, CompactionReason, PickerInput, RUNS_MOST, SegmentUse};
use super::room::values_in;
use crate::comparator;
use crate::error::Result;
use crate::key::Seq;
use crate::memtable::Memtable;
use crate::read::{Dead, LoadedRun, LoadedTable, SuperVersion};
use crate::store::{Counters, KeyspaceState, Store};

/// About how many tables are written before the picker is asked again.
pub(super) const PART_TABLES: u64 = 32;

/// After this time an idle store is looked at again that had nothing to merge, or nothing that may be written yet: what
/// snapshots held may have become free meanwhile.
const LOOKED_AT_AGAIN: Duration = Duration::from_secs(1);

/// What the picker is asked about.
pub(super) enum Look<'a> {
    /// All there is; `idle`: nothing was written for a while.
    Work { idle: bool },
    /// The memtables that wait, in the middle of a compaction, whose input runs are taken.
    Between,
    /// The tables that somebody found, who waits until nothing is left to do about them. The outlook ends there too.
    Upto(&'a Horizon),
    /// The tables alone, whatever waits for a flush: what bounds runs and space.
    Bounds,
    /// The runs, where there are more than flushes leave and somebody waits until they are fewer.
    TooManyRuns,
}

impl Look<'_> {
    fn ask(&self, picker_input: &PickerInput<'_, Arc<LoadedTable>>) -> Option<Compaction> {
        #[cfg(test)]
        PLANS.set(PLANS.get() + 1);
        match self {
            Look::Work { .. } | Look::Upto(_) => picker::pick(picker_input),
            Look::Between => picker::flush(picker_input),
            Look::Bounds => picker::thin_out(picker_input),
            Look::TooManyRuns => picker::too_many_runs(picker_input),
        }
    }

    /// Whether the memtables that wait go along.
    fn takes_memtables(&self) -> bool {
        !matches!(self, Look::Bounds | Look::TooManyRuns)
    }

    /// Whether somebody waits for the compactions, so that they do not rest.
    fn is_awaited(&self) -> bool {
        matches!(self, Look::Upto(_) | Look::TooManyRuns)
    }
}

/// What is done of a plan of the picker's before it is asked again.
struct PickedPart {
    inputs: CompactionInputs,
    reason: CompactionReason,
    /// Where the next part of such a plan begins.
    next: Option<Vec<u8>>,
    /// Bytes of values that are moved.
    moved: u64,
    /// How urgent it is, where that is told.
    pressure: Option<f64>,
    /// Its runs wait, as the last compaction was refused room: only its memtables are flushed.
    rests: bool,
    /// What it writes, where it only makes the store tidier.
    tidies: Option<u64>,
}

/// What the picker sees of the store beside a keyspace. It takes a look at each keyspace and segment, so those that are
/// asked for work one after the other share it until there was any.
pub(super) struct Outlook {
    segments: Vec<SegmentUse>,
    small_table: u64,
}

impl Outlook {
    /// Without segments from this one on.
    pub(super) fn below(mut self, segment: u64) -> Outlook {
        self.segments.retain(|s| s.segment < segment);
        self
    }
}

#[cfg(test)]
thread_local! {
    /// How often a thread looked at all keyspaces.
    pub(super) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    /// How often it asked the picker.
    pub(super) static PLANS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// What there was at a moment: runs up to this one, sequences up to this one.
pub(super) struct Horizon {
    pub run: u64,
    pub seq: Seq,
}

/// Bytes of the runs that came after this one, as they are now.
fn later_bytes(ks: &KeyspaceState, run: u64) -> u64 {
    let super_version = ks.super_version.load();
    super_version.runs().iter().filter(|r| r.id() > run).map(|r| r.bytes()).sum()
}

/// Up to this run a keyspace is as merged as it gets; what came later has still to come to rest.
pub(super) fn note_rest(ks: &KeyspaceState, newest: u64) {
    ks.since_rest.fetch_min(later_bytes(ks, newest), Ordering::Relaxed);
}

/// A part of a plan is begun: the next one of such a plan goes on at this key, or is the first.
fn note_part(ks: &KeyspaceState, reason: CompactionReason, next: Option<Vec<u8>>) {
    let mut cursors = ks.compaction_cursors.lock();
    match next {
        Some(next) => drop(cursors.insert(reason, next)),
        None => drop(cursors.remove(&reason)),
    }
}

impl Store {
    /// Asks the picker about one keyspace and carries its plan out.
    pub(super) fn compact_picked(
        &self,
        ks: &KeyspaceState,
        look: &Look<'_>,
        outlook: &Outlook,
    ) -> Result<bool> {
        comparator::catch(|| self.pick_and_compact(ks, look, outlook))
    }

    fn pick_and_compact(
        &self,
        ks: &KeyspaceState,
        look: &Look<'_>,
        outlook: &Outlook,
    ) -> Result<bool> {
        let Some(part) = self.pick_part(ks, look, outlook) else { return Ok(false) };
        let flush = !part.inputs.memtables.is_empty();
        if flush && !self.may_flush() {
            return Ok(false);
        }
        if part.rests {
            return self.flush_as_can_be(ks);
        }
        let begin = |tried| {
            if let Some(pressure) = part.pressure {
                self.note_pressure(ks, if tried { pressure } else { 0.0 });
            }
            if tried {
                note_part(ks, part.reason, part.next);
            }
        };
        // What bounds runs is done only where there is room for all of it: the flush or load beside it needs the room more.
        let try_hard = look.takes_memtables();
        let done = self.compact_in_room(ks, part.inputs, part.moved, try_hard, begin)?;
        match (done, part.tidies) {
            (true, Some(written)) => self.backpressure.note_tidied(written),
            // A flush makes do with what it needs; what can wait does.
            (false, _) if flush => return self.flush_as_can_be(ks),
            _ => {}
        }
        Ok(done)
    }

    /// Asks the picker, and takes of its plan what is done at once. `None`: nothing is due, or what is due has to wait.
    fn pick_part(
        &self,
        ks: &KeyspaceState,
        look: &Look<'_>,
        outlook: &Outlook,
    ) -> Option<PickedPart> {
        let mut super_version = ks.super_version.load_full();
        if let Look::Upto(horizon) = look {
            super_version = Arc::new(super_version.tables_upto(horizon.run));
        }
        let mut memtables =
            if look.takes_memtables() { self.sealed(&super_version) } else { Vec::new() };
        let only_tidies = matches!(look, Look::Work { idle: true }) && memtables.is_empty();
        if only_tidies && self.may_not_tidy_yet(ks, &super_version) {
            return None;
        }
        let waiting = describe(&memtables);
        let picker_input = self.input_for(look, ks, &super_version, &waiting, outlook);
        // Where a flush is due, what has its turn after it says how urgent the rest is.
        let tells = waiting.is_empty() && !matches!(look, Look::Between | Look::Upto(_));
        let tell = |pressure| {
            if tells {
                self.note_pressure(ks, pressure);
            }
        };
        let Some(mut plan) = look.ask(&picker_input) else {
            tell(0.0);
            // Runs that somebody else merges were not asked about.
            if picker_input.idle && waiting.is_empty() && picker_input.being_compacted.is_empty() {
                note_rest(ks, picker_input.runs.first().map_or(0, |r| r.id()));
                if only_tidies {
                    self.look_again_later(ks, &super_version);
                }
            }
            return None;
        };
        let flushes = plan.memtables > 0;
        let rests = || if flushes { self.flushes_alone(ks) } else { self.rests(ks) };
        let rests = !plan.runs.is_empty() && !look.is_awaited() && rests();
        if rests && !flushes {
            tell(0.0);
            return None;
        }
        let (groups, next) = self.next_part(ks, &mut plan, &picker_input);
        let tidies = matches!(plan.reason, CompactionReason::Idle | CompactionReason::Bottommost)
            && !look.is_awaited();
        let tidies = tidies.then(|| overlap::written(&groups));
        let user_bytes = || Counters::get(&self.counters.user_bytes);
        if tidies.is_some_and(|written| !self.backpressure.may_tidy(written, user_bytes())) {
            self.look_again_later(ks, &super_version);
            return None;
        }
        let pressure = tells.then(|| picker::pressure_of(&plan, &picker_input));
        memtables.truncate(plan.memtables);
        let Compaction { runs, reason, relocate, .. } = plan;
        let moved = values_in(&relocate, &outlook.segments);
        let inputs = CompactionInputs { super_version, memtables, runs, groups, relocate };
        Some(PickedPart { inputs, reason, next, moved, pressure, rests, tidies })
    }

    /// Of what this super version has nothing is merged now while the store is idle.
    fn look_again_later(&self, ks: &KeyspaceState, super_version: &Arc<SuperVersion>) {
        let until = self.env.now() + LOOKED_AT_AGAIN;
        *ks.not_yet.lock() = Some((Arc::downgrade(super_version), until));
    }

    /// Whether nothing was to be done about what this super version has a moment ago, or a compaction of it was refused, as an idle
    /// store has written what it may: planning looks at each table, and it may take hours until there is enough to write for
    /// a large part.
    fn may_not_tidy_yet(&self, ks: &KeyspaceState, super_version: &Arc<SuperVersion>) -> bool {
        let not_yet = ks.not_yet.lock();
        let is = |of: &Weak<SuperVersion>| of.as_ptr() == Arc::as_ptr(super_version);
        not_yet.as_ref().is_some_and(|(of, until)| is(of) && self.env.now() < *until)
    }

    /// What adds a run by other means than a flush comes here first: it merges, where there are too many
    /// runs, and so takes the time that merging takes. It waits for nobody, so nothing can wait for it in
    /// turn. The caller holds `jobs`, and not the writer.
    pub(crate) fn make_room_for_a_run(&self, ks: &KeyspaceState) -> Result<()> {
        while ks.super_version.load().runs().len() >= RUNS_MOST {
            self.check_writable()?;
            let outlook = self.outlook();
            if !self.compact_picked(ks, &Look::TooManyRuns, &outlook)? {
                break;
            }
        }
        Ok(())
    }

    /// What is done of a plan before the picker is asked again, as far as there is room, and where it is to go on then
    /// ([`note_part`]): a flush is one piece, of tables it goes on where it stopped.
    fn next_part(
        &self,
        ks: &KeyspaceState,
        plan: &mut Compaction,
        picker_input: &PickerInput<'_, Arc<LoadedTable>>,
    ) -> (Vec<OverlapGroup>, Option<Vec<u8>>) {
        if plan.memtables > 0 {
            return (plan.groups(picker_input), None);
        }
        let from = ks.compaction_cursors.lock().get(&plan.reason).cloned();
        let most = self.table_sizes().full.saturating_mul(PART_TABLES);
        let part = |plan: &Compaction, room: u64| {
            let mut groups = plan.groups(picker_input);
            groups.retain(|g| g.trivial_move || g.bytes <= room);
            let (runs, most) = (picker_input.runs, most.min(room));
            overlap::next_part(&ks.order, runs, groups, from.as_deref(), most)
        };
        let mut found = part(plan, u64::MAX);
        if self.cut_to_room(ks, plan, picker_input, overlap::written(&found.0)) {
            found = part(plan, u64::MAX);
        }
        // What fits gives room for the rest; where nothing does, hope is left.
        if plan.relocate.is_empty() && self.is_tight(overlap::written(&found.0)) {
            let fits = part(plan, u64::try_from(self.to_spare(0)).unwrap_or(0));
            found = if overlap::written(&fits.0) > 0 { fits } else { found };
        }
        found
    }

    /// Looks at what the picker sees beside a keyspace, for all that are asked about next.
    pub(super) fn outlook(&self) -> Outlook {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        Outlook { segments: self.segments.usage(), small_table: self.table_sizes().small }
    }

    /// What the picker sees where it is asked about this.
    fn input_for<'a>(
        &self,
        look: &Look<'_>,
        ks: &'a KeyspaceState,
        super_version: &'a SuperVersion,
        memtables: &'a [overlap::WaitingMemtable],
        outlook: &'a Outlook,
    ) -> PickerInput<'a, Arc<LoadedTable>> {
        let idle = matches!(look, Look::Work { idle: true } | Look::Upto(_));
        let mut input = self.picker_input(ks, super_version, memtables, outlook, idle);
        if let Look::Upto(horizon) = look {
            // It keeps them for itself.
            input.being_compacted = 0..0;
            input.oldest_snapshot = input.oldest_snapshot.min(horizon.seq);
            let later = later_bytes(ks, horizon.run);
            input.since_rest = input.since_rest.saturating_sub(later);
        }
        input
    }

    /// What the picker sees.
    pub(super) fn picker_input<'a>(
        &self,
        ks: &'a KeyspaceState,
        super_version: &'a SuperVersion,
        memtables: &'a [overlap::WaitingMemtable],
        outlook: &'a Outlook,
        idle: bool,
    ) -> PickerInput<'a, Arc<LoadedTable>> {
        let being_compacted = {
            let ids = ks.runs_being_compacted.lock();
            let is_held = |r: &Arc<LoadedRun>| ids.contains(&r.id());
            let start = super_version.runs().iter().position(is_held).unwrap_or(0);
            start..start + super_version.runs().iter().filter(|r| is_held(r)).count()
        };
        let oldest_snapshot = self.snapshots.oldest(|| self.visible_seq());
        let dead = dead(super_version.runs(), oldest_snapshot);
        PickerInput {
            order: &ks.order,
            memtables,
            runs: super_version.version.runs(),
            being_compacted,
            repeated: dead.entries,
            repeated_values: dead.values,
            since_rest: ks.since_rest.load(Ordering::Relaxed),
            pending_cap: self.backpressure.cap(),
            debt: self.backpressure.debt(),
            readers: self.backpressure.readers(),
            idle,
            small_table: outlook.small_table,
            oldest_snapshot,
            segments: &outlook.segments,
        }
    }
}

/// About how much is dead for the newer runs.
fn dead(runs: &[Arc<LoadedRun>], oldest_snapshot: Seq) -> Dead {
    let newer = runs.split_last().map_or(&[][..], |(_, newer)| newer);
    let killed = newer.iter().flat_map(|r| r.tables()).map(|t| t.kills(oldest_snapshot));
    killed.fold(Dead::default(), |sum, dead| Dead {
        entries: sum.entries.saturating_add(dead.entries),
        values: sum.values.saturating_add(dead.values),
    })
}

/// What the picker has to know of memtables that wait.
pub(crate) fn describe(sealed: &[Arc<Memtable>]) -> Vec<overlap::WaitingMemtable> {
    sealed
        .iter()
        .map(|m| {
            let (smallest, largest) = m.key_range().unwrap_or_default();
            overlap::WaitingMemtable { bytes: m.inline_bytes(), smallest, largest }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Weak};
    use std::time::Duration;

    use parking_lot::Mutex;

    use super::{Compaction, CompactionReason};
    use crate::env::sim::SimEnv;
    use crate::memtable::Memtable;
    use crate::{Comparator, Compression, Db, KeyOrder, KeyspaceOptions, Options};

    /// A compaction of all that was due again and again went on where one of something else had stopped, or from the
    /// first key on: the last ones never had their turn.
    #[test]
    fn a_compaction_in_parts_forgot_where_it_was_when_another_came_in_between() {
        let options = Options::new().compression(Compression::None).table_size(16 << 10);
        let db = Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap();
        for round in 0..3u8 {
            db.bulk_load((0..3000u32).map(|n| (n.to_be_bytes(), [round; 1000]))).unwrap();
        }
        let (store, all) = (db.store(), db.store().all_keyspaces());
        let super_version = all[0].super_version.load_full();
        let outlook = store.outlook();
        let picker_input = store.picker_input(&all[0], &super_version, &[], &outlook, false);
        let first_of = |reason, runs| {
            let mut plan = Compaction { memtables: 0, runs, reason, relocate: Vec::new() };
            let (groups, next) = store.next_part(&all[0], &mut plan, &picker_input);
            super::note_part(&all[0], reason, next);
            let (run, table) = groups[0].tables[0];
            super_version.runs()[run].tables()[table].meta.smallest.clone()
        };
        let start = first_of(CompactionReason::Space, 0..3);
        let second = first_of(CompactionReason::Runs, 0..2);
        assert_eq!((&start[..], &second[..]), (&[0; 4][..], &[0; 4][..]));
        let next = first_of(CompactionReason::Space, 0..3);
        let other = first_of(CompactionReason::Runs, 0..2);
        assert!(next > start && other > start && next != other, "{next:?} {other:?}");
    }

    /// Sees at each comparison how many of some memtables are still in memory.
    #[derive(Default)]
    struct Watching {
        memtables: Mutex<Vec<Weak<Memtable>>>,
        alive: AtomicUsize,
    }

    impl Comparator for Watching {
        fn name(&self) -> &str {
            "test.watching"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            let memtables = self.memtables.lock();
            let alive = memtables.iter().filter(|m| m.strong_count() > 0).count();
            self.alive.store(alive, Ordering::Relaxed);
            a.cmp(b)
        }
    }

    /// With them their segments: half a gigabyte of log, as long as dead values had to be collected.
    #[test]
    fn what_followed_a_flush_kept_the_memtables_that_were_flushed() {
        let watching = Arc::new(Watching::default());
        let order = KeyOrder::Custom(Arc::clone(&watching) as Arc<dyn Comparator>);
        let options = Options::new().compression(Compression::None);
        let db = Db::open_in(Arc::new(SimEnv::new(1, true)), Path::new("/db"), options).unwrap();
        let options = KeyspaceOptions::new().comparator(order);
        let watched = db.create_keyspace("watched", options).unwrap();
        for round in 0..10u8 {
            watched.bulk_load((0..1000u32).map(|n| (n.to_be_bytes(), [round; 1000]))).unwrap();
        }
        watched.put("key", "value").unwrap();
        let all = db.store().all_keyspaces();
        let ks = all.iter().find(|ks| ks.name == "watched").unwrap();
        *watching.memtables.lock() =
            ks.super_version.load().memtables.iter().map(Arc::downgrade).collect();
        watched.put("other", "value").unwrap();
        assert_eq!(watching.alive.load(Ordering::Relaxed), 1);
        db.store().seal_active().unwrap();
        db.store().step(Duration::ZERO);
        assert!(ks.super_version.load().runs().len() < 9, "runs were merged after the flush");
        assert_eq!(watching.alive.load(Ordering::Relaxed), 0);
    }

    /// They were collected in rounds in which no memtable waited: where writers never paused, in none.
    #[test]
    fn dead_values_stayed_while_writers_never_paused() {
        const HOT: u64 = 8_000;
        let env = SimEnv::new(1, true);
        let options = Options::new().compression(Compression::None).segment_size(1 << 20);
        let db = Db::open_in(Arc::new(env), Path::new("/db"), options).unwrap();
        let (mut fresh, mut most) = (HOT, 0);
        for n in 0..80_000u64 {
            // One in ten stays, so that no segment is ever empty.
            let key = if n % 10 == 0 { fresh } else { n % HOT };
            fresh += u64::from(n % 10 == 0);
            db.put(key.to_be_bytes(), [n as u8; 5_000]).unwrap();
            if n % 4000 == 3999 {
                db.store().step(Duration::ZERO);
                let sealed = |ks: &crate::store::KeyspaceState| db.store().has_sealed(ks);
                assert!(!db.store().all_keyspaces().iter().any(|ks| sealed(ks)));
                most = most.max(db.stats().blob_garbage_bytes);
            }
        }
        // Half of what lives, 64 MiB, and what dies from one look to the next; 312 when they stayed.
        assert!(most < 190 << 20, "{} MiB of dead values", most >> 20);
    }

    /// Small entries between large values are in tables after the flush: what they leave in segments was taken for dead
    /// values, and the large ones were written again.
    #[test]
    fn small_entries_between_large_values_left_garbage() {
        let env = SimEnv::new(1, true);
        let options = Options::new().compression(Compression::None).segment_size(1 << 20);
        let db = Db::open_in(Arc::new(env), Path::new("/db"), options).unwrap();
        for n in 0..2_000u64 {
            db.put(n.to_be_bytes(), [n as u8; 8 << 10]).unwrap();
            for small in 0..24u64 {
                db.put([n.to_be_bytes(), small.to_be_bytes()].concat(), [n as u8; 500]).unwrap();
            }
        }
        db.store().seal_active().unwrap();
        db.store().step(Duration::ZERO);
        db.store().step(Duration::ZERO);
        let stats = db.stats();
        assert!(stats.blob_bytes > 15 << 20, "{stats:?}");
        // No more than the pages at their edges.
        assert!(stats.blob_garbage_bytes < stats.blob_bytes / 4 * 3, "{stats:?}");
    }
}
