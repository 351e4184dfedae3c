//! Damaged tables: the answer is right or an error, and nothing panics or reads outside.

use std::sync::Arc;

use super::model_tests::{Entry, Made, NoCase, Value, make, value_of};
use super::{Table, TableOptions};
use crate::env::Env;
use crate::fuzzing::testing::some_of;
use crate::key::{InternalCursor, KeyOrder, ValuePointer, key_hash};
use crate::options::Compression;

fn small(order: KeyOrder, compression: Compression) -> Made {
    let entries = (0..60u64)
        .map(|i| Entry {
            key: format!("key {:03}", i / 2).into_bytes(),
            seq: (i % 2 == 0).then_some(i + 1),
            value: match i % 5 {
                0 => Value::Delete,
                1 => Value::Pointer(ValuePointer { segment: i, offset: 2, len: 3, checksum: 4 }),
                2 => Value::Bytes(vec![b'v'; 300]),
                _ => Value::Bytes(vec![i as u8; 5]),
            },
        })
        .collect();
    make(entries, TableOptions { order, compression, ..TableOptions::default() })
}

/// Reads everything; every answer that is not an error has to be right. Whether there was one.
fn read_all(m: &Made, table: &Arc<Table>) -> bool {
    let mut failed = false;
    for e in &m.entries {
        match table.get(key_hash(&e.key), &e.key, e.seq.unwrap_or(0)) {
            Err(_) => failed = true,
            Ok(found) => {
                let found = found.expect("an entry was lost without an error");
                assert_eq!(found.seq, e.seq.unwrap_or(0));
                match value_of(table, found.kind, found.stored) {
                    Ok(v) => assert_eq!(v, e.value),
                    Err(_) => failed = true,
                }
            }
        }
    }
    for key in [&b"absent"[..], b"", b"key 001x"] {
        match table.get(key_hash(key), key, u64::MAX) {
            Err(_) => failed = true,
            Ok(found) => assert!(found.is_none()),
        }
    }
    let mut c = table.cursor();
    let mut i = 0;
    let mut moved = c.first();
    while moved.is_ok() && c.valid() {
        assert_eq!(c.key(), m.entries[i].key);
        i += 1;
        moved = c.next();
    }
    failed |= moved.is_err();
    assert!(moved.is_err() || i == m.entries.len(), "a scan ended early without an error");
    failed |= c.last().is_err() || c.seek(b"key 004").is_err() || c.seek_for_prev(b"key").is_err();
    table.approximate_offset(b"key 010");
    failed |= !table.verify(&mut |_| ()).unwrap().is_empty();
    failed
}

#[test]
fn every_flipped_byte_is_found_or_harmless() {
    for order in [KeyOrder::Bytewise, KeyOrder::Reverse, KeyOrder::Custom(Arc::new(NoCase))] {
        let m = small(order, Compression::Lz4);
        let whole = std::fs::read(&m.path).unwrap();
        let mut unnoticed = 0;
        for at in some_of(0..whole.len(), 5) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&m.path, &bytes).unwrap();
            match m.open() {
                Err(e) => assert!(!e.to_string().is_empty()),
                Ok(table) => unnoticed += usize::from(!read_all(&m, &table)),
            }
        }
        // Nothing in the file is without a checksum.
        assert_eq!(unnoticed, 0);
    }
}

#[test]
fn a_block_in_the_wrong_place_is_found() {
    let entries = (0..2000u64)
        .map(|i| Entry {
            key: i.to_be_bytes().to_vec(),
            seq: None,
            value: Value::Bytes(vec![1; 100]),
        })
        .collect();
    let m = make(entries, TableOptions::default());
    let mut bytes = std::fs::read(&m.path).unwrap();
    bytes.copy_within(4096..8192, 8192);
    std::fs::write(&m.path, &bytes).unwrap();
    assert!(read_all(&m, &m.open().unwrap()));
}

#[test]
fn truncated_files_are_refused() {
    let m = small(KeyOrder::Bytewise, Compression::None);
    let whole = std::fs::read(&m.path).unwrap();
    for len in (0..whole.len()).step_by(7).chain(whole.len() - 100..whole.len()) {
        std::fs::write(&m.path, &whole[..len]).unwrap();
        assert!(m.open().unwrap_err().is_corruption());
        // Also when the manifest agrees with the length.
        let t = Table::open(&*m.env, &m.path, 7, len as u64, KeyOrder::Bytewise, 0);
        assert!(t.unwrap_err().is_corruption());
    }
    let mut longer = whole.clone();
    longer.push(0);
    std::fs::write(&m.path, &longer).unwrap();
    assert!(m.open().unwrap_err().is_corruption());
}

#[test]
fn wrong_number_and_order_are_named() {
    let m = small(KeyOrder::Bytewise, Compression::None);
    let open = |number, order| {
        Table::open(&*m.env, &m.path, number, m.meta.size, order, 0).unwrap_err().to_string()
    };
    assert!(open(8, KeyOrder::Bytewise).contains("this is table 7"));
    assert!(open(7, KeyOrder::Reverse).contains("esker.bytewise"));
    assert!(open(7, KeyOrder::Custom(Arc::new(NoCase))).contains("test.nocase"));
}

/// Damage under correct checksums: what an attacker or a bug could write. Answers may be wrong,
/// but nothing panics, hangs or reads outside.
#[test]
fn resealed_garbage_does_no_harm() {
    let m = small(KeyOrder::Bytewise, Compression::Lz4);
    let whole = std::fs::read(&m.path).unwrap();
    let table = m.open().unwrap();
    let (layout, footer) = (table.layout, table.footer.clone());
    let mut x = 88172645463325252u64;
    let mut roll = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    let rounds = 3_000;
    for round in 0..rounds {
        let mut b = whole.clone();
        for _ in 0..=roll() % 4 {
            // Headers, slots and index lines are small against the values: aim at them half the time.
            let at = match roll() % 4 {
                0 => roll() as usize % 200,
                1 => layout.index as usize + roll() as usize % (b.len() - layout.index as usize),
                _ => roll() as usize % b.len(),
            };
            b[at] = match roll() % 3 {
                0 => roll() as u8,
                1 => 0xFF,
                _ => b[at] ^ (1 << (roll() % 8)),
            };
        }
        reseal(&mut b, &layout, footer.data_pages);
        std::fs::write(&m.path, &b).unwrap();
        let Ok(table) = m.open() else { continue };
        for e in m.entries.iter().step_by(1 + round % 7) {
            if let Ok(Some(f)) = table.get(key_hash(&e.key), &e.key, 40) {
                let _ = value_quietly(&table, f.stored);
            }
        }
        let mut c = table.cursor();
        let mut steps = 0;
        let mut moved = c.first();
        while moved.is_ok() && c.valid() && steps < 5000 {
            let _ = (c.key().len(), c.seq(), c.kind());
            let _ = value_quietly(&table, c.stored());
            steps += 1;
            moved = c.next();
        }
        let _ = c.seek(b"key 010");
        let _ = c.seek_for_prev(b"key 020");
        if c.valid() {
            let _ = c.prev();
        }
        let _ = table.verify(&mut |_| ());
    }
}

fn value_quietly(table: &Table, stored: crate::key::Stored<'_>) -> crate::Result<usize> {
    let mut out = Vec::new();
    table.decompress(stored, &mut out)?;
    Ok(out.len())
}

/// Sets every checksum right that covers bytes where they were written.
fn reseal(b: &mut [u8], l: &super::footer::Layout, data_pages: u32) {
    use super::wire::{ONLY, checksum};
    use xxhash_rust::xxh3::xxh3_64;
    let mut page = 0;
    while page < data_pages as usize {
        let start = page * 4096;
        let pages = super::block::claimed_pages(&b[start..]).clamp(1, data_pages as usize - page);
        let sum = checksum(&b[start + 8..start + pages * 4096], 7, page as u64);
        b[start..start + 8].copy_from_slice(&sum.to_le_bytes());
        page += pages;
    }
    let (index, sums, block_index) = (l.index as usize, l.sums as usize, l.block_index as usize);
    let (props, footer) = (l.props as usize, l.footer as usize);
    for (i, at) in (index..sums).step_by(4096).enumerate() {
        let sum = checksum(&b[at..sums.min(at + 4096)], 7, i as u64);
        b[sums + 8 * i..][..8].copy_from_slice(&sum.to_le_bytes());
    }
    let put = |b: &mut [u8], at: usize, v: u64| b[at..at + 8].copy_from_slice(&v.to_le_bytes());
    let s = checksum(&b[sums..block_index], 7, ONLY);
    put(b, footer + 40, s);
    let s = checksum(&b[block_index..props], 7, ONLY);
    put(b, footer + 48, s);
    let s = checksum(&b[props..footer], 7, ONLY);
    put(b, footer + 64, s);
    let s = xxh3_64(&b[footer..footer + 80]);
    put(b, footer + 80, s);
}

#[test]
fn random_bytes_are_refused() {
    let m = small(KeyOrder::Bytewise, Compression::None);
    let mut x = 1u64;
    for len in [0usize, 1, 95, 96, 97, 4096, 8192, 10_000] {
        let garbage: Vec<u8> = (0..len)
            .map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
                (x >> 56) as u8
            })
            .collect();
        std::fs::write(&m.path, &garbage).unwrap();
        let t = Table::open(&*m.env, &m.path, 7, len as u64, KeyOrder::Bytewise, 0);
        assert!(t.unwrap_err().is_corruption());
    }
    let dyn_env: &dyn Env = &*m.env;
    assert!(
        Table::open(dyn_env, &m.path.with_extension("no"), 7, 9, KeyOrder::Bytewise, 0).is_err()
    );
}
