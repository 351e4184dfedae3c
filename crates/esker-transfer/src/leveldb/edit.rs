//! The manifest's records: what a database consists of, as changes one after the other.
//!
//! ```text
//! edit   := field*
//! field  := 1 comparator | 2 log | 3 next_file | 4 last_sequence | 5 level key | 6 level table
//!         | 7 level table size smallest largest | 9 previous_log
//! ```
//!
//! Numbers are in groups of seven bits, names and keys behind their lengths. Field 5 is where the next
//! compaction of a level begins, which nobody who reads needs.

use std::collections::BTreeMap;

use super::coding::{Input, put_prefixed, put_varint};
use super::internal_key::split;

const COMPARATOR: u64 = 1;
const LOG: u64 = 2;
const NEXT_FILE: u64 = 3;
const LAST_SEQUENCE: u64 = 4;
const COMPACT_FROM: u64 = 5;
const REMOVED: u64 = 6;
const ADDED: u64 = 7;
const PREVIOUS_LOG: u64 = 9;

/// A table, as the manifest names it. Its keys are those of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableMeta {
    pub level: u32,
    pub number: u64,
    pub size: u64,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
}

/// What a database consists of.
#[derive(Debug, Default)]
pub(super) struct State {
    pub comparator: Option<String>,
    /// Logs from this number on are not in tables yet,
    pub log: u64,
    /// nor is this one.
    pub previous_log: u64,
    pub next_file: u64,
    pub last_sequence: u64,
    tables: BTreeMap<(u32, u64), TableMeta>,
}

/// How much of a comparator's name is kept: it is shown and compared, and names nothing larger.
const NAME_BYTES: usize = 1000;

impl State {
    /// Applies the changes of a record; says what is wrong with it if it is none.
    pub fn apply(&mut self, record: &[u8]) -> Result<(), String> {
        let mut input = Input(record);
        while !input.is_empty() {
            let field = input.varint().ok_or("an edit is cut off")?;
            let known = self.field(field, &mut input);
            known.ok_or_else(|| match field {
                COMPARATOR..=ADDED | PREVIOUS_LOG => {
                    format!("field {field} of an edit cannot be read")
                }
                _ => format!(
                    "an edit has the unknown field {field}; a fork of LevelDB may have written it"
                ),
            })?;
        }
        Ok(())
    }

    fn field(&mut self, field: u64, input: &mut Input) -> Option<()> {
        match field {
            COMPARATOR => {
                let name = input.prefixed()?;
                let name = &name[..name.len().min(NAME_BYTES)];
                self.comparator = Some(String::from_utf8_lossy(name).into_owned());
            }
            LOG => self.log = input.varint()?,
            PREVIOUS_LOG => self.previous_log = input.varint()?,
            NEXT_FILE => self.next_file = input.varint()?,
            LAST_SEQUENCE => self.last_sequence = input.varint()?,
            COMPACT_FROM => {
                input.varint32()?;
                input.prefixed()?;
            }
            REMOVED => {
                let (level, number) = (input.varint32()?, input.varint()?);
                self.tables.remove(&(level, number));
            }
            ADDED => {
                let (level, number, size) = (input.varint32()?, input.varint()?, input.varint()?);
                let (smallest, largest) = (input.prefixed()?, input.prefixed()?);
                split(smallest)?;
                split(largest)?;
                let (smallest, largest) = (smallest.to_vec(), largest.to_vec());
                let table = TableMeta { level, number, size, smallest, largest };
                self.tables.insert((level, number), table);
            }
            _ => return None,
        }
        Some(())
    }

    pub fn tables(&self) -> impl Iterator<Item = &TableMeta> {
        self.tables.values()
    }

    /// Whether the log has to be read.
    pub fn needs_log(&self, number: u64) -> bool {
        number >= self.log || number == self.previous_log
    }
}

/// An edit that begins a database: it says everything.
pub(super) fn first_edit(
    comparator: &str,
    next_file: u64,
    last_sequence: u64,
    tables: &[TableMeta],
) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, COMPARATOR);
    put_prefixed(&mut out, comparator.as_bytes());
    // No log: numbers of files begin at 1.
    for (field, value) in
        [(LOG, 0), (PREVIOUS_LOG, 0), (NEXT_FILE, next_file), (LAST_SEQUENCE, last_sequence)]
    {
        put_varint(&mut out, field);
        put_varint(&mut out, value);
    }
    for table in tables {
        for number in [ADDED, u64::from(table.level), table.number, table.size] {
            put_varint(&mut out, number);
        }
        put_prefixed(&mut out, &table.smallest);
        put_prefixed(&mut out, &table.largest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(level: u32, number: u64) -> TableMeta {
        let key = |name: &[u8]| [name, &[1, 7, 0, 0, 0, 0, 0, 0]].concat();
        TableMeta { level, number, size: 1 << 33, smallest: key(b""), largest: key(b"\xff") }
    }

    #[test]
    fn an_edit_comes_back() {
        let tables = [table(0, 9), table(6, 7), table(6, 8)];
        let edit = first_edit("c", 10, 77, &tables);
        let mut state = State::default();
        state.apply(&edit).unwrap();
        assert_eq!(state.comparator.as_deref(), Some("c"));
        assert_eq!((state.log, state.next_file, state.last_sequence), (0, 10, 77));
        assert!(state.tables().eq(&tables));
        // Removed from one level, added to another.
        let mut moved = vec![5, 6, 1, b'x', 6, 6, 7, 2, 12, 9, 11];
        moved.extend(&first_edit("c", 13, 80, &[table(5, 7)])[..]);
        state.apply(&moved).unwrap();
        assert!(state.tables().eq(&[table(0, 9), table(5, 7), table(6, 8)]));
        assert!(state.needs_log(0), "the later field counts");
    }

    #[test]
    fn what_is_no_edit() {
        let edit = first_edit("c", 10, 77, &[table(0, 9)]);
        let whole = |len: usize| State::default().apply(&edit[..len]).is_ok();
        let fields: Vec<_> = (0..=edit.len()).filter(|len| whole(*len)).collect();
        assert_eq!(fields.len(), 7, "six fields, each whole, and nothing: {fields:?}");
        assert!(State::default().apply(&[8, 1]).unwrap_err().contains("unknown field 8"));
        assert!(State::default().apply(&[7, 0, 1, 1, 1, b'x', 1, b'y']).is_err(), "short keys");
    }
}
