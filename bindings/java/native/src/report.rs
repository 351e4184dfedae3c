//! What stores tell, as `Decoder.java` reads it: numbers of 8 bytes, little-endian; texts and lists with their lengths in front;
//! what may be missing behind a 0 or 1.

use esker::{Finding, KeyspaceStats, RepairReport, RunStats, Stats, VerifyReport};

/// A report being written.
#[derive(Default)]
pub struct Report(Vec<u8>);

impl Report {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn size(&mut self, number: usize) {
        self.number(number as u64);
    }

    fn blob(&mut self, bytes: &[u8]) {
        self.size(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.blob(text.as_bytes());
    }

    pub fn list<T>(&mut self, list: &[T], element: impl Fn(&mut Report, &T)) {
        self.size(list.len());
        list.iter().for_each(|e| element(self, e));
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl Fn(&mut Report, T)) {
        self.number(u64::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        self.text(&finding.file);
        self.optional(finding.offset, Report::number);
        self.optional(finding.keys.as_ref(), |report, (first, _)| report.blob(first));
        self.optional(finding.keys.as_ref(), |report, (_, last)| report.blob(last));
        self.text(&finding.what);
    }

    pub fn verify(found: &VerifyReport) -> Report {
        let mut report = Report::default();
        report.number(found.files);
        report.number(found.bytes);
        report.number(found.entries);
        report.list(&found.problems, Report::finding);
        report
    }

    pub fn repair(done: &RepairReport) -> Report {
        let mut report = Report::default();
        report.number(u64::from(done.changed));
        report.number(done.tables);
        report.number(done.entries);
        for findings in [&done.problems, &done.lost, &done.unchecked] {
            report.list(findings, Report::finding);
        }
        report
    }

    fn run(&mut self, run: &RunStats) {
        self.size(run.tables);
        self.number(run.bytes);
        self.number(run.raw_bytes);
        self.size(run.lz4_tables);
        self.size(run.zstd_tables);
        self.number(run.entries);
        self.number(run.tombstones);
    }

    fn keyspace(&mut self, keyspace: &KeyspaceStats) {
        self.text(&keyspace.name);
        self.number(u64::from(keyspace.id));
        self.text(&keyspace.comparator);
        self.text(&keyspace.compression);
        self.size(keyspace.blob_threshold);
        self.list(&keyspace.runs, Report::run);
        self.number(keyspace.memtable_entries);
        self.number(keyspace.memtable_bytes);
    }

    pub fn stats(stats: &Stats) -> Report {
        let mut report = Report::default();
        report.list(&stats.keyspaces, Report::keyspace);
        for number in [
            stats.sequence,
            stats.log_segments as u64,
            stats.log_bytes,
            stats.blob_bytes,
            stats.blob_garbage_bytes,
            stats.pinned_bytes,
            stats.table_bytes,
            stats.disk_bytes,
            stats.memory_budget,
            stats.memory_used,
            stats.bytes_written,
            stats.log_bytes_written,
            stats.compaction_bytes_read,
            stats.compaction_bytes_written,
            stats.compactions,
            stats.log_syncs,
            stats.write_stall_ns,
            stats.snapshots as u64,
            stats.open_files as u64,
            stats.mappings as u64,
        ] {
            report.number(number);
        }
        report.optional(stats.halted.as_deref(), Report::text);
        report
    }
}
