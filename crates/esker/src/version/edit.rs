//! A change of the store's composition: what one manifest record holds.
//!
//! An edit is applied whole or not at all. Encoded, it is a list of changes, each a tag, the
//! length of its body and the body (`docs/format/manifest.md`). One that is too long for a record lies
//! in several, of which all but the last end by saying so.

use super::wire::{Reader, put_bytes, put_option, put_u64};
use super::{Invalid, MAX_NUMBER};
use crate::key::{Seq, TableMeta};
use crate::wal::Position;

/// Longest name of a keyspace or an order, in bytes.
pub(crate) const MAX_NAME_LEN: usize = 1024;
const _: () = assert!(crate::comparator::MAX_COMPARATOR_NAME <= MAX_NAME_LEN);
/// From so many bytes on an edit goes on in another record. Far below what a record can hold, as no
/// single change may make the difference.
const RECORD_BYTES: usize = 64 << 20;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A keyspace is there from now on. Its id was never used before: log records name keyspaces
    /// by id, and those of a dropped one must not reappear in another.
    AddKeyspace {
        id: u32,
        name: String,
        order_name: String,
        /// Number of the codec setting; `None` takes the store's.
        compression: Option<u8>,
        /// Threshold in bytes; `None` takes the store's.
        blob_threshold: Option<u64>,
    },
    /// A keyspace and all its tables are gone.
    DropKeyspace { id: u32 },
    /// A table is part of a run. Run numbers are ages: a higher number is newer, whatever the
    /// order in which edits arrive.
    AddTable { keyspace: u32, run: u64, meta: TableMeta },
    /// A table is no longer part of the store. Within one edit all removals happen before all
    /// additions, so a table moves to another run by being removed and added again.
    RemoveTable { keyspace: u32, number: u64 },
    /// All entries of the keyspace in segments up to and including this one are in tables.
    Flushed { keyspace: u32, segment: u64 },
    /// Segments below this one are never replayed. Its name is durable before this is written: where there is no such
    /// file, the manifest has lost what let go of it.
    LogStart {
        segment: u64,
        /// The log is known to be durable up to here, the header of that segment included: any crash leaves a log
        /// that reaches it.
        durable: Position,
    },
    /// File numbers from here on were never used.
    NextFile { number: u64 },
    /// Keyspace ids from here on were never used.
    NextKeyspace { id: u32 },
    /// Sequences up to this one were used.
    LastSeq { seq: Seq },
    /// The store was closed in order: there is no log. Holds until the next edit, whatever that is.
    CleanClose,
    /// The store is open for writing again; changes nothing but ends a clean close. Durable before
    /// the first byte is written to the log.
    Reopened,
    /// A repair had to guess which tables belong to the store: two of them may point to the same value in segments below
    /// this one.
    MayRepeat { below: u64 },
    /// The edit goes on in the next record, of which this one is no more than a part. The last change of
    /// a record, and of no edit.
    Continued,
}

/// A list of changes that take effect together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct VersionEdit {
    /// The changes, in order (but see [`Change::RemoveTable`]).
    pub changes: Vec<Change>,
}

impl From<Vec<Change>> for VersionEdit {
    fn from(changes: Vec<Change>) -> VersionEdit {
        VersionEdit { changes }
    }
}

impl VersionEdit {
    /// All of it as one payload.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.payloads(usize::MAX).pop().unwrap_or_default()
    }

    /// The payloads of its records, mostly one. An empty edit has none and is not written.
    pub(super) fn records(&self) -> Vec<Vec<u8>> {
        #[cfg(test)]
        if let Some(bytes) = testing::RECORD_BYTES.get() {
            return self.payloads(bytes);
        }
        self.payloads(RECORD_BYTES)
    }

    fn payloads(&self, record_bytes: usize) -> Vec<Vec<u8>> {
        let mut done = Vec::new();
        let mut out = Vec::new();
        for change in &self.changes {
            if out.len() >= record_bytes {
                Change::Continued.encode(&mut out);
                done.push(std::mem::take(&mut out));
            }
            change.encode(&mut out);
        }
        if !out.is_empty() {
            done.push(out);
        }
        done
    }

    /// The reverse of [`encode`](VersionEdit::encode). Refuses everything that `encode` cannot have made.
    pub(crate) fn decode(bytes: &[u8]) -> Result<VersionEdit, Invalid> {
        let mut r = Reader::new(bytes);
        let mut changes = Vec::new();
        while r.left() > 0 {
            let tag = r.u8()?;
            let mut body = Reader::new(r.bytes(bytes.len())?);
            changes.push(Change::decode_body(tag, &mut body)?);
            body.end()?;
        }
        if changes.is_empty() {
            return Err(Invalid::new("an edit without changes"));
        }
        Ok(VersionEdit { changes })
    }
}

impl Change {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        out.push(self.encode_body(&mut body));
        put_bytes(out, &body);
    }

    /// Appends the body; returns the tag.
    fn encode_body(&self, out: &mut Vec<u8>) -> u8 {
        match self {
            Change::AddKeyspace { id, name, order_name, compression, blob_threshold } => {
                put_u64(out, u64::from(*id));
                put_bytes(out, name.as_bytes());
                put_bytes(out, order_name.as_bytes());
                put_option(out, compression.map(u64::from));
                put_option(out, *blob_threshold);
                1
            }
            Change::DropKeyspace { id } => {
                put_u64(out, u64::from(*id));
                2
            }
            Change::AddTable { keyspace, run, meta } => {
                put_u64(out, u64::from(*keyspace));
                put_u64(out, *run);
                meta.encode(out);
                3
            }
            Change::RemoveTable { keyspace, number } => {
                put_u64(out, u64::from(*keyspace));
                put_u64(out, *number);
                4
            }
            Change::Flushed { keyspace, segment } => {
                put_u64(out, u64::from(*keyspace));
                put_u64(out, *segment);
                5
            }
            Change::LogStart { segment, durable } => {
                for v in [*segment, durable.segment, durable.end] {
                    put_u64(out, v);
                }
                6
            }
            Change::NextFile { number } => {
                put_u64(out, *number);
                7
            }
            Change::NextKeyspace { id } => {
                put_u64(out, u64::from(*id));
                8
            }
            Change::LastSeq { seq } => {
                put_u64(out, *seq);
                9
            }
            Change::CleanClose => 10,
            Change::Reopened => 11,
            Change::Continued => 13,
            Change::MayRepeat { below } => {
                put_u64(out, *below);
                12
            }
        }
    }

    fn decode_body(tag: u8, r: &mut Reader<'_>) -> Result<Change, Invalid> {
        let change = match tag {
            1 => Change::AddKeyspace {
                id: r.u32()?,
                name: r.text(MAX_NAME_LEN)?,
                order_name: r.text(MAX_NAME_LEN)?,
                compression: match r.option()? {
                    None => None,
                    Some(v) => {
                        Some(u8::try_from(v).map_err(|_| Invalid::new("unknown compression"))?)
                    }
                },
                blob_threshold: r.option()?,
            },
            2 => Change::DropKeyspace { id: r.u32()? },
            3 => {
                Change::AddTable { keyspace: r.u32()?, run: r.u64()?, meta: TableMeta::decode(r)? }
            }
            4 => Change::RemoveTable { keyspace: r.u32()?, number: r.u64()? },
            5 => Change::Flushed { keyspace: r.u32()?, segment: r.u64()? },
            6 => Change::LogStart {
                segment: r.u64()?,
                durable: Position { segment: r.u64()?, end: r.u64()? },
            },
            7 => Change::NextFile { number: r.u64()? },
            8 => Change::NextKeyspace { id: r.u32()? },
            9 => Change::LastSeq { seq: r.u64()? },
            10 => Change::CleanClose,
            11 => Change::Reopened,
            13 => Change::Continued,
            12 => Change::MayRepeat { below: r.u64()? },
            _ => return Err(Invalid::new(format!("unknown change {tag}"))),
        };
        change.check()?;
        Ok(change)
    }

    /// What holds for a change by itself. Checked before an edit is written and after it is read.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let numbers = match self {
            Change::AddKeyspace { id, name, order_name, .. } => {
                if *id == u32::MAX {
                    return Err(Invalid::new("keyspace id out of range"));
                }
                if name.len() > MAX_NAME_LEN || order_name.len() > MAX_NAME_LEN {
                    return Err(Invalid::new("a name is too long"));
                }
                [0, 0, 0]
            }
            Change::AddTable { run, meta, .. } => {
                meta.check()?;
                [*run, 0, 0]
            }
            Change::RemoveTable { number, .. } | Change::NextFile { number } => [*number, 0, 0],
            Change::Flushed { segment, .. } => [*segment, 0, 0],
            Change::LogStart { segment, durable } => [*segment, durable.segment, durable.end],
            Change::LastSeq { seq } => [*seq, 0, 0],
            Change::MayRepeat { below } => [*below, 0, 0],
            _ => [0, 0, 0],
        };
        if numbers.iter().any(|&n| n > MAX_NUMBER) {
            return Err(Invalid::new("a number is out of range"));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod testing {
    use std::cell::Cell;

    thread_local! {
        /// Takes the place of the real limit, which no test reaches.
        pub(in super::super) static RECORD_BYTES: Cell<Option<usize>> = const { Cell::new(None) };
    }
}
