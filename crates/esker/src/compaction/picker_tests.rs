//! The picker: golden scripts, and properties of whole histories.

use std::fmt::Write;
use std::sync::Arc;

use proptest::prelude::*;

use super::overlap::{WaitingMemtable, written};
use super::picker::{
    self, Compaction, CompactionReason, PickerInput, RUNS_HARD, RUNS_SOFT, SegmentUse,
};
use super::simulation::{ENTRY, KEYS, Sim, WritePattern, key, leveled};
use crate::key::KeyOrder;
use crate::version::script::{Case, run_folder, size, word};
use crate::version::{KeyspaceVersion, SegmentRef, TableMeta};

const MIB: u64 = 1 << 20;

#[test]
fn scripts() {
    run_folder("picker", || {
        |case: &Case<'_>| match case.command {
            "pick" => pick(case),
            "fill" => fill(case),
            other => panic!("unknown command {other}"),
        }
    });
}

/// `pick [cap=64M] [debt=0.2] [idle] [after_flush] [table=32M] [oldest_snapshot=0] [being_compacted=1-2]`, then lines
/// `mem SIZE FIRST..LAST`, `run SIZE FIRST..LAST [tables=1] [tombstones=PERCENT] [refs=SEG:SIZE,..]`
/// newest first, and `segment N live=SIZE dead=SIZE`.
fn pick(case: &Case<'_>) -> String {
    let get = |name: &str, default: &str| case.word(name).unwrap_or(default).to_owned();
    let order = KeyOrder::Bytewise;
    let (mut memtables, mut segments, mut added) = (Vec::new(), Vec::new(), Vec::new());
    let runs = case.input.iter().filter(|l| l.starts_with("run")).count() as u64;
    for line in &case.input {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "mem" => {
                let (first, last) = words[2].split_once("..").unwrap();
                let (smallest, largest) = (first.into(), last.into());
                memtables.push(WaitingMemtable { bytes: size(words[1]), smallest, largest });
            }
            "run" => {
                let id = runs - added.last().map_or(0, |(id, _): &(u64, _)| runs - id + 1);
                added.extend(tables(&words, id));
            }
            "segment" => segments.push(SegmentUse {
                segment: size(words[1]),
                live: size(word(&words, "live").unwrap()),
                dead: size(word(&words, "dead").unwrap()),
            }),
            other => panic!("unknown line {other}"),
        }
    }
    let version = KeyspaceVersion::default().edit(Some(&order), &[], added).unwrap();
    let being_compacted = case.word("being_compacted").map(|b| b.split_once('-').unwrap());
    let picker_input = PickerInput {
        order: &order,
        memtables: &memtables,
        runs: version.runs(),
        being_compacted: being_compacted
            .map_or(0..0, |(a, b)| a.parse().unwrap()..b.parse().unwrap()),
        repeated: size(&get("repeated", "0")),
        repeated_values: size(&get("repeated_values", "0")),
        since_rest: size(&get("since", "0")),
        pending_cap: size(&get("cap", "64M")),
        debt: get("debt", "0.2").parse().unwrap(),
        readers: get("readers", "0").parse().unwrap(),
        idle: case.words.contains(&"idle"),
        small_table: size(&get("table", "32M")) / 8,
        oldest_snapshot: size(&get("oldest_snapshot", "0")),
        segments: &segments,
    };
    let plan = match case.words.contains(&"after_flush") {
        true => picker::thin_out(&picker_input),
        false => picker::pick(&picker_input),
    };
    match plan {
        None => "nothing".into(),
        Some(plan) => describe(&plan, &picker_input),
    }
}

/// The tables of a `run` line. Keys are three digits; the range is split evenly.
fn tables(words: &[&str], run: u64) -> Vec<(u64, Arc<TableMeta>)> {
    let (first, last) = words[2].split_once("..").unwrap();
    let (first, last) = (first.parse::<u64>().unwrap(), last.parse::<u64>().unwrap());
    let n = word(words, "tables").map_or(1, size);
    let bytes = size(words[1]) / n;
    let entries = bytes / 1024;
    let percent = word(words, "tombstones").map_or(0, size);
    let references = word(words, "refs").map_or(Vec::new(), |list| {
        let parse = |r: &str| {
            let (segment, bytes) = r.split_once(':').unwrap();
            SegmentRef { segment: size(segment), bytes: size(bytes) / n }
        };
        list.split(',').map(parse).collect()
    });
    let table = |i: u64| TableMeta {
        number: run * 1000 + i,
        size: bytes,
        entries,
        tombstones: entries * percent / 100,
        raw_bytes: bytes,
        smallest: format!("{:03}", first + (last - first + 1) * i / n).into(),
        largest: format!("{:03}", first + (last - first + 1) * (i + 1) / n - 1).into(),
        min_seq: run,
        max_seq: run,
        base_seq: run,
        unique_keys: true,
        references: references.clone(),
    };
    (0..n).map(|i| (run, Arc::new(table(i)))).collect()
}

fn describe(plan: &Compaction, s: &PickerInput<'_, Arc<TableMeta>>) -> String {
    let mut out = format!("{:?}:", plan.reason);
    if plan.memtables > 0 {
        write!(out, " {} memtables", plan.memtables).unwrap();
    }
    if !plan.runs.is_empty() {
        write!(out, " runs {}..{}", plan.runs.start, plan.runs.end).unwrap();
    }
    let list = plan.groups(s);
    let bytes = written(&list);
    let trivial_move = list.iter().filter(|c| c.trivial_move).count();
    write!(out, "\nwrites {} KiB in {} groups", bytes >> 10, list.len() - trivial_move).unwrap();
    write!(out, ", moves {trivial_move} tables").unwrap();
    if !plan.relocate.is_empty() {
        write!(out, "\nempties segments {:?}", plan.relocate).unwrap();
    }
    out
}

/// `fill LOAD flushes=N flush=SIZE [cap=SIZE] [table=SIZE] [together=N] [keys=N] [pressed]`
fn fill(case: &Case<'_>) -> String {
    let get = |name: &str, default: &str| size(case.word(name).unwrap_or(default));
    let load = match case.words[0] {
        "random" => WritePattern::Random,
        "sequential" => WritePattern::Sequential,
        "overwrite" => WritePattern::Overwrite(get("keys", "1M")),
        other => panic!("unknown load {other}"),
    };
    let (flushes, flush) = (get("flushes", "64"), get("flush", "16M"));
    let mut sim = Sim::new(load, get("cap", "64M"), get("table", "32M"));
    sim.fill(flushes, flush, get("together", "1"), !case.words.contains(&"pressed"));
    let (amplification, runs) = (sim.amplification(), sim.version.runs().len());
    let (most, largest) = (sim.max_runs, sim.largest_plan >> 20);
    sim.settle(0.0, true);
    let mut out = format!(
        "write amplification {amplification:.1}, runs {runs} (most {most}), largest compaction {largest} MiB\n\
         after idling {:.1}, runs {}\n",
        sim.amplification(),
        sim.version.runs().len(),
    );
    if let WritePattern::Overwrite(keys) = load {
        let most = sim.max_bytes as f64 / (keys * ENTRY) as f64;
        write!(out, "space at most {most:.1} times the live data").unwrap();
    }
    if load == WritePattern::Random {
        write!(out, "leveled, fanout 10: {:.1}", leveled(flushes, flush)).unwrap();
    }
    out
}

#[test]
fn write_amplification_stays_low() {
    for (flush, cap) in [(16, 64), (16, 128), (8, 64), (64, 256), (1, 4)] {
        let mut sim = Sim::new(WritePattern::Random, cap * MIB, 32 * MIB);
        sim.fill(64, flush * MIB, 1, true);
        let random = sim.amplification();
        assert!(random <= 6.0, "flush {flush}, cap {cap}: {random}");
        assert!(sim.max_runs <= RUNS_SOFT + 1, "{} runs", sim.max_runs);
        let mut sim = Sim::new(WritePattern::Sequential, cap * MIB, 32 * MIB);
        sim.fill(64, flush * MIB, 1, true);
        sim.settle(0.0, true);
        let sequential = sim.amplification();
        assert!(sequential <= if flush >= 8 { 1.05 } else { 3.0 }, "{flush}: {sequential}");
        assert_eq!(sim.version.runs().len(), 1);
    }
}

#[test]
fn a_pressed_store_stays_below_the_hard_cap_of_runs() {
    for together in 1..=4 {
        let mut sim = Sim::new(WritePattern::Random, 64 * MIB, 32 * MIB);
        sim.fill(1000, 16 * MIB, together, false);
        assert!(sim.max_runs <= RUNS_HARD);
        assert!(sim.amplification() < 12.0, "{together}: {}", sim.amplification());
    }
}

#[test]
fn garbage_is_moved_out_of_its_segments() {
    let mut sim = Sim::new(WritePattern::Random, 64 * MIB, 32 * MIB);
    sim.fill(40, 16 * MIB, 1, true);
    let runs = sim.version.runs().to_vec();
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for run in &runs {
        for (i, t) in run.tables().iter().enumerate() {
            let mut t = TableMeta::clone(t);
            removed.push(t.number);
            let segment = 1 + i as u64 % 10;
            t.references = vec![SegmentRef { segment, bytes: MIB }];
            *sim.segments.entry(segment).or_default() += 12 * MIB;
            added.push((run.id(), Arc::new(t)));
        }
    }
    sim.version = sim.version.edit(Some(&KeyOrder::Bytewise), &removed, added).unwrap();
    sim.settle(0.0, false);
    let referenced = |sim: &Sim| {
        let refs = sim.version.tables().flat_map(|t| &t.references).map(|r| r.segment);
        refs.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert!(referenced(&sim) < 6, "{}", referenced(&sim));
    sim.settle(0.0, true);
    assert_eq!(referenced(&sim), 0);
}

/// What a repair or loads leave comes down beside flushes that never end, and no compaction of it is large.
#[test]
fn a_crowd_of_runs_thins_out_however_fast_flushes_come() {
    let mut sim = Sim::new(WritePattern::Random, 64 * MIB, 32 * MIB);
    let added = (1..=300).map(|run| (run, Arc::new(sim.table(0, KEYS, 32 * MIB / ENTRY, 0))));
    let added: Vec<_> = added.collect();
    let added = added.into_iter().map(|(run, t)| {
        let (min_seq, max_seq) = (run, run);
        (run, Arc::new(TableMeta { min_seq, max_seq, base_seq: run, ..TableMeta::clone(&t) }))
    });
    sim.version = sim.version.edit(Some(&KeyOrder::Bytewise), &[], added.collect()).unwrap();
    sim.skip_seq(301);
    let mut flushes = 0;
    while sim.version.runs().len() > RUNS_HARD {
        let waiting = [sim.memtable(16 * MIB), sim.memtable(16 * MIB)];
        let flush = sim.step_with(&waiting, 0.9, false, picker::flush).unwrap();
        assert!(flush.memtables == 2 && flush.runs.len() <= 16);
        let step = sim.step_with(&[], 0.9, false, picker::thin_out);
        assert!(step.is_none_or(|s| (2..=16).contains(&s.runs.len())));
        flushes += 1;
        assert!(flushes < 100, "{} runs", sim.version.runs().len());
    }
    assert!(sim.max_runs <= 300, "{}", sim.max_runs);
    // Some 10 GiB there were: each byte is written a few times, and not with every flush.
    let written = sim.written >> 30;
    assert!(written < 60, "{written} GiB in {flushes} flushes");
    // From here on as ever: one run, and what is not worth the rewriting of that.
    sim.settle(0.0, true);
    assert!(sim.version.runs().len() <= 2);
}

/// A store of nothing but overwrites, whatever its size and however fast they come.
#[test]
fn old_versions_take_less_than_half_of_what_lives() {
    for (keys, spare) in [(1 << 20, true), (1 << 20, false), (1 << 24, true), (1 << 24, false)] {
        let mut sim = Sim::new(WritePattern::Overwrite(keys), 64 * MIB, 8 * MIB);
        sim.fill(4 * keys * ENTRY / (16 * MIB), 16 * MIB, 2, spare);
        let times = sim.max_bytes as f64 / (keys * ENTRY) as f64;
        // A flush, and less than the pending cap that is not looked at.
        let more = 128.0 * MIB as f64 / (keys * ENTRY) as f64;
        assert!(times < 1.5 + more, "{times} times, {keys} keys");
    }
}

#[test]
fn compactions_press_with_runs_with_old_versions_and_with_dead_values() {
    let with = |runs: u64, repeated: u64, readers: f64, dead: u64, plan: Option<&Compaction>| {
        let added = (1..=runs).flat_map(|n| tables(&["run", "100M", "0..999"], n));
        let order = KeyOrder::Bytewise;
        let version = KeyspaceVersion::default().edit(Some(&order), &[], added.collect()).unwrap();
        let picker_input = PickerInput {
            order: &order,
            memtables: &[],
            runs: version.runs(),
            being_compacted: 0..0,
            repeated,
            repeated_values: 0,
            since_rest: 0,
            pending_cap: 64 * MIB,
            debt: 0.0,
            readers,
            idle: false,
            small_table: 4 * MIB,
            oldest_snapshot: 0,
            segments: &[SegmentUse { segment: 1, live: 512 * MIB, dead }],
        };
        match plan {
            Some(plan) => picker::pressure_of(plan, &picker_input),
            None => picker::pressure(&picker_input),
        }
    };
    let pressure = |runs, repeated, readers| with(runs, repeated, readers, 0, None);
    assert_eq!(pressure(0, 0, 0.0), 0.0);
    assert_eq!(pressure(4, 0, 0.0), 0.0);
    assert_eq!(pressure(8, 0, 0.0), 0.5);
    assert_eq!(pressure(12, 0, 0.0), 1.0);
    assert_eq!(pressure(20, 0, 0.0), 1.0);
    // Of 300 MiB a third: half of what lives.
    assert!((0.74..0.76).contains(&pressure(3, 100 * MIB, 0.0)));
    assert_eq!(pressure(3, 150 * MIB, 0.0), 1.0);
    // Readers that search all the time are held up by fewer runs.
    assert_eq!(pressure(2, 0, 1.0), 0.0);
    assert_eq!(pressure(4, 0, 1.0), 0.5);
    assert_eq!(pressure(6, 0, 1.0), 1.0);
    // Half of what lives and 256 MiB: compactions get most of the time. Beyond it writers slow down whatever waits.
    let garbage = |dead| with(1, 0, 0.0, dead * MIB, None);
    assert_eq!((garbage(0), garbage(256), garbage(384), garbage(512)), (0.0, 0.0, 0.5, 1.0));
    assert_eq!((garbage(768), garbage(1024), garbage(1 << 20)), (1.5, 2.0, 2.0));
    // But not for a compaction that leaves them where they are.
    let planned = |reason, relocate| {
        let plan = Compaction { memtables: 0, runs: 0..1, reason, relocate };
        with(1, 0, 0.0, 1024 * MIB, Some(&plan))
    };
    assert_eq!(planned(CompactionReason::Garbage, vec![1]), 2.0);
    assert_eq!(planned(CompactionReason::Space, vec![1]), 2.0);
    assert_eq!(planned(CompactionReason::Space, Vec::new()), 1.0);
    assert_eq!(planned(CompactionReason::Runs, Vec::new()), 1.0);
    assert_eq!(planned(CompactionReason::Idle, Vec::new()), 0.0);
}

/// On a tight disk the first one was kept, in which the run had none: the compaction did nothing, again and again.
#[test]
fn the_one_segment_that_is_emptied_is_emptied_by_a_run_that_has_values_in_it() {
    let newer = tables(&["run", "1M", "0..999", "refs=6:10M"], 2);
    let older = tables(&["run", "9M", "0..999", "refs=5:10M,6:10M"], 1);
    let order = KeyOrder::Bytewise;
    let added = newer.into_iter().chain(older).collect();
    let version = KeyspaceVersion::default().edit(Some(&order), &[], added).unwrap();
    let segment = |segment, dead| SegmentUse { segment, live: 20 * MIB, dead: dead * MIB };
    let picker_input = PickerInput {
        order: &order,
        memtables: &[],
        runs: version.runs(),
        being_compacted: 0..0,
        repeated: 0,
        repeated_values: 0,
        since_rest: 0,
        pending_cap: 64 * MIB,
        debt: 0.0,
        readers: 0.0,
        idle: false,
        small_table: 4 * MIB,
        oldest_snapshot: 0,
        segments: &[segment(5, 300), segment(6, 200)],
    };
    let mut plan = picker::pick(&picker_input).unwrap();
    assert_eq!((&plan.runs, &plan.relocate[..]), (&(0..1), &[5, 6][..]));
    plan.empty_one(&picker_input);
    assert_eq!((&plan.runs, &plan.relocate[..]), (&(1..2), &[5][..]));
}

/// Random new keys, one flush at a time, compacted as there is time.
#[test]
fn where_readers_search_runs_are_few_and_writes_still_bounded() {
    for (flushes, readers, most_runs, most_written) in
        [(64, 0.0, 9, 5.0), (64, 1.0, 4, 8.0), (4096, 0.0, 9, 8.0), (4096, 1.0, 8, 16.0)]
    {
        let mut sim = Sim::new(WritePattern::Random, 64 * MIB, 8 * MIB);
        sim.readers = readers;
        sim.fill(flushes, 4 * MIB, 1, true);
        let (runs, written) = (sim.max_runs, sim.amplification());
        println!("{flushes} flushes, readers {readers}: {runs} runs, {written:.1} written");
        assert!(runs <= most_runs && written <= most_written, "{runs} runs, {written:.1} written");
    }
}

/// Compares bytes, and counts how often.
#[derive(Default)]
struct Counting(std::sync::atomic::AtomicU64);

impl crate::key::Comparator for Counting {
    fn name(&self) -> &str {
        "test.counting"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        a.cmp(b)
    }
}

#[test]
fn thousands_of_tables_take_no_work_that_grows_with_their_square() {
    let counting = Arc::new(Counting::default());
    let order = KeyOrder::Custom(counting.clone());
    let n = 4000;
    let mut sim = Sim::new(WritePattern::Random, 64 * MIB, 32 * MIB);
    let metas: Vec<_> =
        (0..n).map(|i| Arc::new(sim.table(i * 7 % n * 10, i * 7 % n * 10 + 5, 9, 0))).collect();
    let numbers: Vec<u64> = metas.iter().map(|m| m.number).collect();
    let into = |run| metas.iter().map(|m| (run, Arc::clone(m))).collect::<Vec<_>>();
    let spent = |what: &str| {
        let compared = counting.0.swap(0, std::sync::atomic::Ordering::Relaxed);
        assert!((1..60 * n).contains(&compared), "{what}: {compared} comparisons of {n} tables");
    };
    let loaded = KeyspaceVersion::default().edit(Some(&order), &[], into(1)).unwrap();
    spent("a load");
    let moved = loaded.edit(Some(&order), &numbers, into(2)).unwrap();
    spent("a move");
    let list = super::overlap::groups(&order, &[], moved.runs(), 0..1, MIB, |_| true);
    assert_eq!(list.len(), 1, "small ones become one");
    spent("a plan");
}

#[test]
fn what_little_is_in_too_many_segments_goes_into_tables() {
    let mut sim = Sim::new(WritePattern::Sequential, 64 * MIB, 32 * MIB);
    let segments = (16 << 10) + 600;
    sim.fill(1, 16 * MIB, 1, false);
    let mut t = TableMeta::clone(sim.version.tables().next().unwrap());
    let value = |segment| SegmentRef { segment, bytes: 4096 * (1 + segment % 9) };
    t.references = (1..=segments).map(value).collect();
    sim.segments.extend((1..=segments).map(|s| (s, 4096 * (1 + s % 9))));
    let number = t.number;
    let added = vec![(sim.version.runs()[0].id(), Arc::new(t))];
    sim.version = sim.version.edit(Some(&KeyOrder::Bytewise), &[number], added).unwrap();
    let plan = sim.step(&[], 0.0, false).unwrap();
    assert_eq!((plan.reason, plan.relocate.len()), (picker::CompactionReason::Garbage, 256));
    assert!(plan.relocate.iter().all(|s| s % 9 == 0), "those that hold least");
    sim.settle(0.0, false);
    let left: usize = sim.version.tables().map(|t| t.references.len()).sum();
    assert_eq!(left, 16 << 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every plan is one that a version takes (ages and ranges are checked there), every chain of
    /// plans ends, the runs stay under their cap, and in an idle store the largest is nearly all of it.
    #[test]
    fn any_history_ends_well(
        steps in proptest::collection::vec(
            (1u64..40, 0.0f64..1.0, any::<bool>(), 0u64..4, 0u64..1000, 1u64..1000), 1..60),
        load in 0usize..3,
        cap in 4u64..100,
    ) {
        let load = [WritePattern::Random, WritePattern::Sequential, WritePattern::Overwrite(100_000)][load];
        let mut sim = Sim::new(load, cap * MIB, 8 * MIB);
        for (bytes, debt, settle, idle, at, width) in steps {
            let mut memtable = sim.memtable(bytes * MIB / 4);
            if load != WritePattern::Sequential && idle == 1 {
                let low = KEYS / 1000 * at;
                memtable.smallest = key(low);
                memtable.largest = key(low + KEYS / 1000 * width);
            }
            let plan = sim.step(&[memtable], debt, false).unwrap();
            prop_assert_eq!(plan.memtables, 1);
            if settle {
                sim.settle(debt, idle == 0);
            }
        }
        sim.settle(0.0, true);
        let sizes: Vec<u64> = sim.version.runs().iter().map(|r| r.bytes()).collect();
        let largest = sizes.iter().max().copied().unwrap_or(0);
        let rest = sizes.iter().sum::<u64>() - largest;
        prop_assert!(rest * 100 < largest * 7 && sizes.len() <= 3, "{:?}", sizes);
    }

    /// No plan touches a run that is being compacted or reaches across it.
    #[test]
    fn runs_being_compacted_are_left_alone(
        sizes in proptest::collection::vec(1u64..200, 2..12),
        from in 0usize..12,
        len in 1usize..4,
        idle in any::<bool>(),
        flush in any::<bool>(),
    ) {
        let from = from.min(sizes.len() - 1);
        let being_compacted = from..(from + len).min(sizes.len());
        let n = sizes.len() as u64;
        let added = sizes.iter().enumerate().flat_map(|(i, s)| {
            let bytes = format!("{s}M");
            tables(&["run", &bytes, "0..999", "tables=2", "tombstones=30"], n - i as u64)
        });
        let order = KeyOrder::Bytewise;
        let version = KeyspaceVersion::default().edit(Some(&order), &[], added.collect()).unwrap();
        let memtable = WaitingMemtable { bytes: MIB, smallest: key(0), largest: key(KEYS) };
        let plan = picker::pick(&PickerInput {
            order: &order,
            memtables: if flush { std::slice::from_ref(&memtable) } else { &[] },
            runs: version.runs(),
            being_compacted: being_compacted.clone(),
            repeated: 0,
            repeated_values: 0,
            since_rest: 0,
            pending_cap: 64 * MIB,
            debt: 0.1,
            readers: 0.0,
            idle,
            small_table: 4 * MIB,
            oldest_snapshot: 1000,
            segments: &[],
        });
        if let Some(plan) = plan {
            prop_assert!(plan.runs.end <= being_compacted.start || plan.runs.start >= being_compacted.end);
            prop_assert!(plan.memtables == 0 || plan.runs.start == 0);
        }
    }
}
