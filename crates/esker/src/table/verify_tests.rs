//! Properties that contradict the blocks under correct checksums: verification tells each, with both values.

use super::footer::{FOOTER_LEN, Properties};
use super::model_tests::{Entry, Made, Value, make};
use super::wire::{ONLY, checksum};
use super::{SegmentRef, TableOptions};
use crate::key::{MAX_KEY_LEN, MAX_VALUE_LEN, ValuePointer};

/// Keys of one and of two versions, with and without a sequence, over several blocks.
fn made() -> Made {
    let entry = |i: u64| Entry {
        key: format!("key {:03}", i / 2).into_bytes(),
        seq: i.is_multiple_of(2).then_some(i + 100),
        value: match i % 5 {
            0 => Value::Delete,
            1 => Value::Pointer(ValuePointer { segment: i % 3, offset: 2, len: 10, checksum: 4 }),
            _ => Value::Bytes(vec![b'v'; 300]),
        },
    };
    make((0..60).map(entry).collect(), TableOptions::default())
}

/// The same table with these properties in place of its own, under checksums that are right.
fn forge(mut m: Made, change: impl FnOnce(&mut Properties)) -> Made {
    let table = m.open().unwrap();
    let (mut props, mut footer) = (table.props.clone(), table.footer.clone());
    change(&mut props);
    let section = props.encode();
    footer.props_len = section.len() as u64;
    footer.props_checksum = checksum(&section, 7, ONLY);
    let mut bytes = table.bytes()[..table.layout.props as usize].to_vec();
    bytes.extend_from_slice(&section);
    m.meta.size = (bytes.len() + FOOTER_LEN) as u64;
    bytes.extend_from_slice(&footer.encode(m.meta.size));
    drop(table);
    std::fs::write(&m.path, &bytes).unwrap();
    m
}

/// All that verification says of it.
fn told(m: &Made) -> String {
    let problems = m.open().unwrap().verify(&mut |_| ()).unwrap();
    problems.iter().map(|p| format!("{p}\n")).collect()
}

#[test]
fn properties_that_contradict_the_blocks_were_not_all_told() {
    assert_eq!(told(&forge(made(), |_| ())), "");
    type Forge = fn(&mut Properties);
    let forged: [(&str, &str, &str, Forge); 15] = [
        ("entries", "61", "60", |p| p.entries += 1),
        ("tombstones", "11", "12", |p| p.tombstones -= 1),
        ("keys", "31", "30", |p| p.keys += 1),
        ("entries without a sequence", "29", "30", |p| p.base_entries -= 1),
        ("bytes of keys and values", "1", "11508", |p| p.raw_bytes = 1),
        ("longest key", "8", "7", |p| p.max_key_len += 1),
        ("smallest key", "\"key 000a\"", "\"key 000\"", |p| p.smallest = b"key 000a".to_vec()),
        ("smallest key", "\"key 00\"", "\"key 000\"", |p| p.smallest = b"key 00".to_vec()),
        ("largest key", "\"key 028\"", "\"key 029\"", |p| p.largest = b"key 028".to_vec()),
        ("largest key", "\"key 03\"", "\"key 029\"", |p| p.largest = b"key 03".to_vec()),
        ("lowest sequence", "101", "100", |p| p.min_seq += 1),
        ("highest sequence", "157", "158", |p| p.max_seq -= 1),
        ("log segment 1", "1", "40", |p| p.references[1].bytes = 1),
        ("log segment 2", "0", "40", |p| p.references.truncate(2)),
        ("log segment 9", "5", "0", |p| p.references.push(SegmentRef { segment: 9, bytes: 5 })),
    ];
    for (what, said, found, change) in forged {
        let told = told(&forge(made(), change));
        let line = |l: &&str| {
            l.contains(what)
                && l.contains(&format!("say {said}"))
                && l.contains(&format!("have {found}"))
        };
        assert!(told.lines().any(|l| line(&l)), "{what}, {said} in place of {found}: {told}");
    }
}

/// The heads of the block index are the same behind one byte and behind two.
#[test]
fn keys_that_share_less_than_the_properties_say_were_not_told() {
    let entry = |key: &[u8]| Entry { key: key.to_vec(), seq: None, value: Value::Delete };
    let m = make(vec![entry(&[b'a'; 20]), entry(b"ab")], TableOptions::default());
    let told = told(&forge(m, |p| p.prefix_len = 2));
    assert!(told.contains("say 2") && told.contains("have 1"), "{told}");
}

/// Sums over tables overflowed.
#[test]
fn a_table_with_more_entries_than_bytes_was_opened() {
    let refused = |change: fn(&mut Properties)| {
        let m = forge(made(), change);
        m.open().err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(refused(|p| p.entries = u64::MAX).contains("more entries than bytes"));
    assert!(refused(|p| p.raw_bytes = u64::MAX).contains("more bytes"));
    assert!(refused(|p| p.references[0].bytes = u64::MAX).contains("more bytes"));
    // As much as so many entries can have.
    let most = |p: &Properties, of_one: usize| p.entries * of_one as u64;
    let m = forge(made(), |p| p.raw_bytes = most(p, MAX_KEY_LEN + MAX_VALUE_LEN));
    assert!(m.open().is_ok());
}
