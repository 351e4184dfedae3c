//! `esker stats`: the shape of a store.

use std::fmt::Write;

use esker::{KeyspaceStats, RunStats, Stats};
use serde_json::{Value, json};

use crate::args::{JsonArgs, StoreArgs};
use crate::exit::Outcome;
use crate::human::{self, bar, bytes, count, counted, share};
use crate::output::Out;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  esker stats ./db
  esker stats ./db --json | jq '.keyspaces[].runs | length'

A run is a part of a keyspace that was written at one time, in tables that do not overlap; reads
ask the memtable, then the runs from the newest to the oldest. The bars compare their sizes.
Entries include overwritten and deleted ones that no compaction has dropped yet; `esker count` is
exact.

Large values stay apart in the log file they were written to; what else was there is given back to
the file system. A value takes whole blocks of it, 4 KiB each as a rule, so around values of 4 KiB
almost half of the space is the rest of their blocks: that is no loss that grows, and it stays as
long as the values do. Dead values that a compaction has dropped are counted with it, until their
space is given back.";

/// Characters of the longest bar.
const BAR_WIDTH: usize = 40;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: Args) -> Outcome {
    let db = store::open_to_read(&args.store)?;
    let stats = db.stats();
    let mut out = Out::stdout();
    if args.json.json {
        out.json(&as_json(&stats))?;
    } else {
        out.bytes(as_text(&stats, &args.store.db.display().to_string()).as_bytes())?;
    }
    out.finish()
}

/// Bytes written to the device for each byte the user gave; none before anything was written.
fn write_amplification(s: &Stats) -> Option<f64> {
    let written = s.log_bytes_written + s.compaction_bytes_written;
    (s.bytes_written > 0).then(|| written as f64 / s.bytes_written as f64)
}

/// Bytes on the disk of the log files that are kept for the values in them.
fn apart_bytes(s: &Stats) -> u64 {
    s.blob_bytes + s.blob_garbage_bytes
}

fn as_text(s: &Stats, path: &str) -> String {
    let mut text = String::new();
    store_lines(&mut text, s, path).expect("writing to a string does not fail");
    let largest = s.keyspaces.iter().flat_map(sizes).max().unwrap_or(0);
    for keyspace in &s.keyspaces {
        keyspace_lines(&mut text, keyspace, largest).expect("writing to a string does not fail");
    }
    text
}

fn store_lines(text: &mut String, s: &Stats, path: &str) -> std::fmt::Result {
    writeln!(text, "store {path}")?;
    writeln!(
        text,
        "  disk     {}: tables {}, log {} in {}",
        bytes(s.disk_bytes),
        bytes(s.table_bytes),
        bytes(s.log_bytes),
        counted(s.log_segments as u64, "segment")
    )?;
    match s.blob_bytes {
        0 => writeln!(text, "  values   none kept apart in the log")?,
        apart => writeln!(
            text,
            "  values   {} kept apart in the log, taking {}: {} ({}) are the rest of their blocks, \
             and dead values",
            bytes(apart),
            bytes(apart_bytes(s)),
            bytes(s.blob_garbage_bytes),
            share(s.blob_garbage_bytes, apart_bytes(s))
        )?,
    }
    if s.pinned_bytes > 0 {
        writeln!(text, "  held     {} by cursors and values in use", bytes(s.pinned_bytes))?;
    }
    let (used, budget) = (s.memory_used, s.memory_budget);
    let filled = bar(used, budget, BAR_WIDTH / 2);
    let (width, percent) = (BAR_WIDTH / 2, share(used, budget));
    writeln!(
        text,
        "  memory   [{filled:width$}] {} of {} ({percent})",
        bytes(used),
        bytes(budget)
    )?;
    match write_amplification(s) {
        None => writeln!(text, "  writes   none since it was opened")?,
        Some(amplification) => writeln!(
            text,
            "  writes   {} by the user, {} to the log, {} by {} flushes and compactions: write amplification \
             {amplification:.1}; {}, writers waited {:.1} s",
            bytes(s.bytes_written),
            bytes(s.log_bytes_written),
            bytes(s.compaction_bytes_written),
            count(s.compactions),
            counted(s.log_syncs, "sync"),
            s.write_stall_ns as f64 / 1e9
        )?,
    }
    writeln!(
        text,
        "  now      commit {}, {}, {} open",
        count(s.sequence),
        counted(s.snapshots as u64, "snapshot"),
        counted(s.open_files as u64, "file")
    )
}

fn sizes(k: &KeyspaceStats) -> impl Iterator<Item = u64> {
    k.runs.iter().map(|run| run.bytes).chain([k.memtable_bytes])
}

fn keyspace_lines(text: &mut String, k: &KeyspaceStats, largest: u64) -> std::fmt::Result {
    let entries = k.memtable_entries + k.runs.iter().map(|run| run.entries).sum::<u64>();
    writeln!(
        text,
        "\nkeyspace {}: {}, {}, {}, {}",
        k.name,
        human::order(&k.comparator),
        k.compression,
        counted(entries, "entry"),
        bytes(sizes(k).sum())
    )?;
    let mut rows = vec![[
        "memtable".into(),
        String::new(),
        counted(k.memtable_entries, "entry"),
        bytes(k.memtable_bytes),
        bar(k.memtable_bytes, largest, BAR_WIDTH),
    ]];
    rows.extend(k.runs.iter().enumerate().map(|(i, run)| row(i, run, largest)));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (a, b, c, d) = (width(0), width(1), width(2), width(3));
    for [name, tables, entries, size, bar] in &rows {
        let line = format!("  {name:a$}  {tables:>b$}  {entries:>c$}  {size:>d$}  {bar}");
        writeln!(text, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(index: usize, run: &RunStats, largest: u64) -> [String; 5] {
    let deleted = match run.tombstones {
        0 => String::new(),
        n => format!(" ({} of them deletions)", count(n)),
    };
    [
        format!("run {}", index + 1),
        tables(run),
        format!("{}{deleted}", counted(run.entries, "entry")),
        bytes(run.bytes),
        bar(run.bytes, largest, BAR_WIDTH),
    ]
}

/// How many tables, and how many of them have a dictionary for which codec.
fn tables(run: &RunStats) -> String {
    let codecs = [(run.lz4_tables, "lz4"), (run.zstd_tables, "zstd")];
    let with: Vec<String> =
        codecs.iter().filter(|(n, _)| *n > 0).map(|(n, codec)| format!("{n} {codec}")).collect();
    let with = if with.is_empty() { String::new() } else { format!(" ({})", with.join(", ")) };
    format!("{}{with}", counted(run.tables as u64, "table"))
}

fn as_json(s: &Stats) -> Value {
    let run = |run: &RunStats| {
        json!({
            "tables": run.tables,
            "bytes": run.bytes,
            "raw_bytes": run.raw_bytes,
            "lz4_tables": run.lz4_tables,
            "zstd_tables": run.zstd_tables,
            "entries": run.entries,
            "tombstones": run.tombstones,
        })
    };
    let keyspace = |k: &KeyspaceStats| {
        json!({
            "name": k.name,
            "id": k.id,
            "comparator": k.comparator,
            "compression": k.compression,
            "blob_threshold": k.blob_threshold,
            "runs": k.runs.iter().map(run).collect::<Vec<_>>(),
            "memtable_entries": k.memtable_entries,
            "memtable_bytes": k.memtable_bytes,
        })
    };
    json!({
        "keyspaces": s.keyspaces.iter().map(keyspace).collect::<Vec<_>>(),
        "sequence": s.sequence,
        "log_segments": s.log_segments,
        "log_bytes": s.log_bytes,
        "blob_bytes": s.blob_bytes,
        "blob_garbage_bytes": s.blob_garbage_bytes,
        "blob_disk_bytes": apart_bytes(s),
        "pinned_bytes": s.pinned_bytes,
        "table_bytes": s.table_bytes,
        "disk_bytes": s.disk_bytes,
        "memory_budget": s.memory_budget,
        "memory_used": s.memory_used,
        "bytes_written": s.bytes_written,
        "log_bytes_written": s.log_bytes_written,
        "compaction_bytes_read": s.compaction_bytes_read,
        "compaction_bytes_written": s.compaction_bytes_written,
        "compactions": s.compactions,
        "log_syncs": s.log_syncs,
        "write_stall_ns": s.write_stall_ns,
        "snapshots": s.snapshots,
        "open_files": s.open_files,
        "mappings": s.mappings,
        "write_amplification": write_amplification(s),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(tables: usize, bytes: u64, entries: u64, tombstones: u64) -> RunStats {
        let mut run = RunStats::default();
        (run.tables, run.bytes) = (tables, bytes);
        (run.entries, run.tombstones) = (entries, tombstones);
        run
    }

    fn sample() -> Stats {
        let mut keyspace = KeyspaceStats::default();
        keyspace.name = "default".into();
        keyspace.comparator = "esker.bytewise".into();
        keyspace.compression = "lz4".into();
        keyspace.runs = vec![run_of(1, 12 << 10, 100, 7), run_of(64, 1 << 30, 1_300_000, 0)];
        (keyspace.memtable_entries, keyspace.memtable_bytes) = (1234, 1 << 20);
        let mut stats = Stats::default();
        stats.keyspaces = vec![keyspace];
        (stats.disk_bytes, stats.table_bytes, stats.log_bytes) = (3 << 29, 1 << 30, 1 << 29);
        (stats.log_segments, stats.blob_bytes, stats.blob_garbage_bytes) = (8, 1 << 28, 1 << 26);
        (stats.memory_used, stats.memory_budget, stats.sequence) = (32 << 20, 128 << 20, 123456);
        stats
    }

    #[test]
    fn for_people() {
        let text = as_text(&sample(), "./db");
        let bar = "#".repeat(BAR_WIDTH);
        let expected = format!(
            "\
store ./db
  disk     1.5 GiB: tables 1.0 GiB, log 512.0 MiB in 8 segments
  values   256.0 MiB kept apart in the log, taking 320.0 MiB: 64.0 MiB (20%) are the rest of their blocks, and dead values
  memory   [#####               ] 32.0 MiB of 128.0 MiB (25%)
  writes   none since it was opened
  now      commit 123,456, 0 snapshots, 0 files open

keyspace default: bytewise, lz4, 1,301,334 entries, 1.0 GiB
  memtable                           1,234 entries   1.0 MiB  #
  run 1       1 table  100 entries (7 of them deletions)  12.0 KiB  #
  run 2     64 tables  1,300,000 entries   1.0 GiB  {bar}
"
        );
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeeze(&text), squeeze(&expected), "{text}");
        // The bars stand below each other.
        let columns: Vec<_> = text
            .lines()
            .filter_map(|l| l.find(" #").filter(|_| l.contains("run") || l.contains("memtable")))
            .collect();
        assert_eq!(columns.len(), 3);
        assert!(columns.iter().all(|c| *c == columns[0]), "{text}");
    }

    #[test]
    fn tables_of_two_codecs_are_told_apart() {
        let mut run = run_of(64, 1 << 30, 1_300_000, 0);
        run.raw_bytes = 2 << 30;
        assert_eq!(tables(&run), "64 tables");
        (run.lz4_tables, run.zstd_tables) = (60, 1);
        assert_eq!(tables(&run), "64 tables (60 lz4, 1 zstd)");
        let mut stats = sample();
        stats.keyspaces[0].runs[0] = run;
        let json = &as_json(&stats)["keyspaces"][0]["runs"][0];
        assert_eq!((&json["lz4_tables"], &json["raw_bytes"]), (&60.into(), &(2u64 << 30).into()));
    }

    #[test]
    fn write_amplification_counts_log_and_compactions() {
        let mut stats = sample();
        assert_eq!(as_json(&stats)["write_amplification"], Value::Null);
        (stats.bytes_written, stats.log_bytes_written, stats.compaction_bytes_written) =
            (100, 110, 290);
        stats.compactions = 3;
        assert_eq!(as_json(&stats)["write_amplification"], 4.0);
        assert!(
            as_text(&stats, "x")
                .contains("290 B by 3 flushes and compactions: write amplification 4.0;")
        );
        assert_eq!(as_json(&stats)["keyspaces"][0]["runs"][1]["tables"], 64);
    }
}
