//! Encoding, application and searching.

use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::key::KeyOrder;

#[test]
fn edits_come_back() {
    for edit in history() {
        assert_eq!(VersionEdit::decode(&edit.encode()).unwrap(), edit);
    }
}

/// What lay in the newest run was moved to the oldest, as nothing overlapped it; then what was left of the newer runs became one
/// table, which goes across that place. It was refused as a bug, and the store stopped.
#[test]
fn a_compaction_may_lie_across_what_was_moved_to_an_older_run() {
    let order = Some(&KeyOrder::Bytewise);
    let tables = [(1, 9, "c", "d"), (2, 3, "a", "b"), (3, 4, "n", "o")];
    let tables = tables.map(|(run, n, first, last)| (run, Arc::new(table(n, first, last))));
    let version = KeyspaceVersion::default().edit(order, &[], tables.to_vec()).unwrap();
    let joined = Arc::new(table(5, "a", "o"));
    let version = version.edit(order, &[3, 4], vec![(2, joined)]).unwrap();
    let runs = version.runs().iter().map(|run| run.tables()[0].number);
    assert_eq!(runs.collect::<Vec<_>>(), [5, 9]);
}

#[test]
fn snapshots_say_the_same() {
    for state in states() {
        let again = State::new(Orders::default()).apply(&state.snapshot()).unwrap();
        assert!(again == state);
        assert_eq!(again.closed, state.closed);
        assert_eq!(again.value_segments(), state.value_segments());
    }
}

#[test]
fn every_cut_and_every_flip_of_an_edit_is_refused_or_means_something_else() {
    for edit in history() {
        let bytes = edit.encode();
        for cut in 0..bytes.len() {
            // A cut between two changes is a shorter edit; the record's checksum catches that.
            if let Ok(shorter) = VersionEdit::decode(&bytes[..cut]) {
                assert!(edit.changes.starts_with(&shorter.changes));
            }
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                if let Ok(other) = VersionEdit::decode(&bad) {
                    assert_ne!(other, edit);
                    assert_eq!(other.encode(), bad, "one encoding only");
                }
            }
        }
    }
}

#[test]
fn an_edit_cannot_ask_for_more_memory_than_it_is_long() {
    // A table whose list of references claims 2^60 of them.
    let mut body = vec![0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1];
    body.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    let mut bytes = vec![3, body.len() as u8];
    bytes.extend_from_slice(&body);
    assert!(VersionEdit::decode(&bytes).is_err());
}

#[test]
fn unknown_orders_are_kept_and_not_checked() {
    let add_it = Change::AddKeyspace {
        id: 0,
        name: "n".into(),
        order_name: "mine".into(),
        compression: None,
        blob_threshold: None,
    };
    let edit = VersionEdit::from(vec![add_it, add(0, 1, table(1, "z", "a"))]);
    let state = State::new(Orders::default()).apply(&edit).unwrap();
    assert!(state.keyspace("n").unwrap().order.is_none());
    assert_eq!(state.keyspace("n").unwrap().order_name, "mine");
}

proptest! {
    #[test]
    fn decoding_anything_does_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(edit) = VersionEdit::decode(&bytes) {
            prop_assert_eq!(edit.encode(), bytes);
            let _ = State::new(Orders::default()).apply(&edit);
        }
    }

    #[test]
    fn a_search_finds_what_a_walk_finds(
        mut cuts in proptest::collection::btree_set("(shared|sharee|)[a-c\0]{0,12}", 2..40),
        keys in proptest::collection::vec("(shared|share|shareg|)[a-c\0]{0,12}", 1..20),
        reverse in any::<bool>(),
    ) {
        let order = if reverse { KeyOrder::Reverse } else { KeyOrder::Bytewise };
        if cuts.len() % 2 == 1 {
            cuts.pop_first();
        }
        let mut ends: Vec<String> = cuts.into_iter().collect();
        if reverse {
            ends.reverse();
        }
        let added = ends.chunks(2).enumerate();
        let added = added.map(|(i, p)| (1, Arc::new(table(i as u64, &p[0], &p[1])))).collect();
        let version = KeyspaceVersion::default().edit(Some(&order), &[], added).unwrap();
        let run = &version.runs()[0];
        let cmp = |a: &[u8], b: &[u8]| order.compare(a, b);
        for key in keys.iter().chain(&ends).map(|k| k.as_bytes()) {
            let tables = run.tables();
            let seek = tables.iter().position(|t| cmp(&t.largest, key).is_ge());
            prop_assert_eq!(run.seek(&order, key), seek.unwrap_or(tables.len()));
            let prev = tables.iter().rposition(|t| cmp(&t.smallest, key).is_le());
            prop_assert_eq!(run.seek_for_prev(&order, key), prev);
            let holds = |t: &&Arc<TableMeta>| {
                cmp(&t.smallest, key).is_le() && cmp(&t.largest, key).is_ge()
            };
            let found = tables.iter().find(holds).map(|t| t.number);
            prop_assert_eq!(run.find(&order, key).map(|t| t.number), found);
            for high in ends.iter().map(|k| k.as_bytes()).filter(|h| cmp(key, h).is_lt()) {
                let range = run.overlapping(&order, Bound::Excluded(key), Bound::Excluded(high));
                let walk: Vec<usize> = (0..tables.len())
                    .filter(|&i| cmp(&tables[i].largest, key).is_gt())
                    .filter(|&i| cmp(&tables[i].smallest, high).is_lt())
                    .collect();
                prop_assert_eq!(range.collect::<Vec<_>>(), walk);
            }
        }
    }
}
