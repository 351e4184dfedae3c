//! Every limit of what an edit may say, from both of its sides.

use super::*;
use crate::key::{MAX_KEY_LEN, MAX_VALUE_LEN};
use crate::util::MAX_NUMBER;
use crate::version::edit::MAX_NAME_LEN;
use crate::wal::Position;

/// Whether an edit of this change is taken when it is read back, and when it is about to be
/// written: both look, and both say the same.
fn is_taken(change: &Change) -> bool {
    let read = VersionEdit::decode(&VersionEdit::from(vec![change.clone()]).encode());
    assert_eq!(read.is_ok(), change.check().is_ok(), "{change:?}");
    if let Ok(edit) = &read {
        assert_eq!(edit.changes, std::slice::from_ref(change));
    }
    read.is_ok()
}

/// A change with a number in it is taken up to `most`.
fn goes_to(most: u64, change: impl Fn(u64) -> Change) {
    for (number, taken) in [(0, true), (most, true), (most + 1, false), (u64::MAX, false)] {
        let change = change(number);
        assert_eq!(is_taken(&change), taken, "{change:?}");
    }
}

#[test]
fn numbers_end_where_adding_to_them_could_overflow() {
    goes_to(MAX_NUMBER, |number| Change::NextFile { number });
    goes_to(MAX_NUMBER, |number| Change::RemoveTable { keyspace: 0, number });
    goes_to(MAX_NUMBER, |segment| Change::Flushed { keyspace: 0, segment });
    goes_to(MAX_NUMBER, |segment| Change::LogStart { segment, durable: Position::default() });
    let durable =
        |segment, end| Change::LogStart { segment: 3, durable: Position { segment, end } };
    goes_to(MAX_NUMBER, |n| durable(n, 1));
    goes_to(MAX_NUMBER, |n| durable(1, n));
    goes_to(MAX_NUMBER, |seq| Change::LastSeq { seq });
    goes_to(MAX_NUMBER, |run| add(0, run, table(1, "a", "b")));
    // The last id stands for "none".
    let named = |id| match add_keyspace(0, "name") {
        Change::AddKeyspace { name, order_name, .. } => {
            Change::AddKeyspace { id, name, order_name, compression: None, blob_threshold: None }
        }
        other => other,
    };
    assert!(is_taken(&named(u32::MAX - 1)));
    assert!(!is_taken(&named(u32::MAX)));
}

#[test]
fn names_have_a_longest() {
    let named = |name: usize, order: usize| Change::AddKeyspace {
        id: 1,
        name: "n".repeat(name),
        order_name: "o".repeat(order),
        compression: None,
        blob_threshold: None,
    };
    assert!(is_taken(&named(MAX_NAME_LEN, MAX_NAME_LEN)));
    assert!(!is_taken(&named(MAX_NAME_LEN + 1, 1)));
    assert!(!is_taken(&named(1, MAX_NAME_LEN + 1)));
}

/// Why a table is refused; empty when it is not.
fn refusal(change: impl Fn(&mut TableMeta)) -> String {
    let mut meta = table(1, "a", "b");
    change(&mut meta);
    let change = add(0, 1, meta);
    is_taken(&change);
    change.check().err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn a_table_is_what_a_table_can_be() {
    let n = MAX_NUMBER;
    type Set = fn(&mut TableMeta, u64);
    let fields: [(&str, Set); 4] = [
        ("number or size", |m, v| m.number = v),
        ("number or size", |m, v| m.size = v),
        ("sequence", |m, v| m.max_seq = v.max(m.min_seq)),
        ("sequence", |m, v| m.base_seq = v),
    ];
    for (what, set) in fields {
        assert_eq!(refusal(|m| set(m, n)), "");
        let why = refusal(|m| set(m, n + 1));
        assert!(why.contains(what) && why.contains("out of range"), "{why}");
    }
    assert!(refusal(|m| m.entries = 0).contains("no entries"));
    assert_eq!(refusal(|m| m.entries = 1), "");
    assert_eq!(refusal(|m| m.tombstones = m.entries), "");
    assert!(refusal(|m| m.tombstones = m.entries + 1).contains("tombstones"));
    assert_eq!(refusal(|m| m.min_seq = m.max_seq), "");
    assert!(refusal(|m| m.min_seq = m.max_seq + 1).contains("lowest sequence"));
}

/// Sums over tables overflowed.
#[test]
fn a_table_holds_no_more_than_its_bytes_and_entries_can() {
    assert_eq!(refusal(|m| m.entries = m.size), "");
    let most = |m: &TableMeta, of_one: usize| m.entries * of_one as u64;
    assert_eq!(refusal(|m| m.raw_bytes = most(m, MAX_KEY_LEN + MAX_VALUE_LEN)), "");
    let values = |m: &mut TableMeta, bytes: [u64; 2]| {
        m.references =
            (3..).zip(bytes).map(|(segment, bytes)| SegmentRef { segment, bytes }).collect();
    };
    assert_eq!(refusal(|m| values(m, [most(m, u32::MAX as usize) - 1, 1])), "");
    assert!(refusal(|m| m.entries = m.size + 1).contains("more entries than bytes"));
    assert!(refusal(|m| m.entries = u64::MAX).contains("more entries than bytes"));
    let why = refusal(|m| m.raw_bytes = most(m, MAX_KEY_LEN + MAX_VALUE_LEN) + 1);
    assert!(why.contains("more bytes"), "{why}");
    assert!(refusal(|m| m.raw_bytes = u64::MAX).contains("more bytes"));
    assert!(refusal(|m| values(m, [most(m, u32::MAX as usize), 1])).contains("more bytes"));
    assert!(refusal(|m| values(m, [u64::MAX, u64::MAX])).contains("more bytes"));
}

#[test]
fn keys_of_a_table_are_no_longer_than_keys() {
    assert_eq!(refusal(|m| m.smallest = vec![b'a'; MAX_KEY_LEN]), "");
    assert_eq!(refusal(|m| m.largest = vec![b'b'; MAX_KEY_LEN]), "");
    // Asked before an edit is written; what is read is not even made so long.
    for (small, large) in [(MAX_KEY_LEN + 1, 1), (1, MAX_KEY_LEN + 1)] {
        let meta = TableMeta {
            smallest: vec![b'a'; small],
            largest: vec![b'b'; large],
            ..table(1, "a", "b")
        };
        let change = add(0, 1, meta);
        assert!(change.check().unwrap_err().to_string().contains("a key is too long"));
        assert!(!is_taken(&change));
    }
}

#[test]
fn references_ascend_and_stay_in_range() {
    let with = |list: &[(u64, u64)]| {
        let references = list.iter().map(|&(segment, bytes)| SegmentRef { segment, bytes });
        let references: Vec<_> = references.collect();
        refusal(|m| m.references = references.clone())
    };
    assert_eq!(with(&[(3, 10), (4, 10), (MAX_NUMBER, 10)]), "");
    assert!(with(&[(MAX_NUMBER + 1, 1)]).contains("out of range"));
    assert!(with(&[(4, 10), (3, 10)]).contains("not in order"));
    assert!(with(&[(4, 10), (4, 10)]).contains("not in order"));
    let meta = TableMeta {
        references: vec![
            SegmentRef { segment: 3, bytes: 9000 },
            SegmentRef { segment: 4, bytes: 77 },
        ],
        ..table(1, "a", "b")
    };
    assert_eq!(meta.separated_bytes(), 9077);
    assert_eq!(table(1, "a", "b").separated_bytes(), 0);
}

#[test]
fn a_table_raises_what_was_never_used() {
    let meta =
        TableMeta { references: vec![SegmentRef { segment: 70, bytes: 1 }], ..table(12, "a", "b") };
    let state = State::new(Orders::default());
    let first = state.apply(&VersionEdit::from(vec![add_keyspace(0, "default")])).unwrap();
    assert_eq!(first.next_file, 1);
    let plain = first.apply(&VersionEdit::from(vec![add(0, 1, table(12, "a", "b"))])).unwrap();
    // Above the file, and up to its last sequence.
    assert_eq!((plain.next_file, plain.last_seq), (13, 129));
    let referring = first.apply(&VersionEdit::from(vec![add(0, 1, meta)])).unwrap();
    assert_eq!(referring.next_file, 71);
    assert!(referring.has_table(12) && !referring.has_table(70));
    assert!(referring.value_segments().iter().eq(&[70]));
}
