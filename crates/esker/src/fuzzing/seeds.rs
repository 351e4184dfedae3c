//! Seeds: small inputs that are sound, made by the store itself.

use super::scratch::Scratch;
use super::store;
use crate::env::OpenMode;
use crate::filename;
use crate::{Compression, Db, KeyOrder, KeyspaceOptions, Options, WriteBatch, version, wal};

fn bytes_of(scratch: &Scratch, name: &str) -> Vec<u8> {
    let file = scratch.env.open(&scratch.dir.join(name), OpenMode::Read).expect("a file");
    let mut bytes = vec![0; file.len().expect("its length") as usize];
    file.read_exact_at(&mut bytes, 0).expect("its bytes");
    bytes
}

/// A store with a bit of everything, left open so that there is a log.
fn small(scratch: &Scratch, compression: Compression) -> Db {
    let options = Options::new().memory(1 << 20).segment_size(64 << 10);
    let options = options.blob_threshold(400).compression(compression);
    let db = options.open(&scratch.dir).expect("a store");
    let backward = KeyspaceOptions::new().comparator(KeyOrder::Reverse);
    let other = db.create_keyspace("other", backward).expect("a keyspace");
    let kept = db.snapshot();
    for n in 0..24u32 {
        let len = if n % 7 == 0 { 500 } else { 5 * n as usize };
        let value: Vec<u8> = b"some text, ".iter().copied().cycle().take(len).collect();
        db.put(format!("key {:03}", n / 2), &value).expect("a write");
        other.put(n.to_be_bytes(), value).expect("a write");
    }
    db.delete("key 003").expect("a write");
    db.flush().expect("a flush");
    drop(kept);
    let mut batch = WriteBatch::new();
    batch.put("batch", "one");
    batch.put_in(&other, "batch", "two");
    batch.delete("key 001");
    db.write(batch).expect("a write");
    db.put("last", vec![9; 450]).expect("a write");
    db
}

/// Seeds of a target.
pub fn of(name: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for compression in Compression::built_in() {
        let scratch = Scratch::new();
        let db = small(&scratch, compression);
        let names = scratch.env.list(&scratch.dir).expect("a directory");
        let with = |mode: u8, bytes: &[u8]| [&[mode], bytes].concat();
        let manifest = scratch.dir.join("MANIFEST-0000000001");
        let payloads = version::fuzz::payloads(&*scratch.env, &manifest);
        let mut whole = Vec::new();
        store::add(&mut whole, store::MANIFEST, 1, &store::join(&payloads));
        for file in &names {
            let bytes = bytes_of(&scratch, file);
            if let Some(n) = filename::table_number(file) {
                store::add(&mut whole, store::TABLE, n, &bytes);
                match name {
                    "table" => all.extend([with(0, &bytes), with(1, &bytes), with(3, &bytes)]),
                    "block" => all.push(bytes[..4096.min(bytes.len())].to_vec()),
                    "point_index" => all.push(bytes[bytes.len().min(4086)..].to_vec()),
                    "packed_value" => all.push(with(n as u8, &bytes[200..400])),
                    _ => {}
                }
            }
            if let Some(n) = filename::segment_number(file) {
                let input = wal::fuzz::shrink(&bytes);
                store::add(&mut whole, store::LOG, n, &input);
                match name {
                    "log" => all.extend([with(0, &input), with(1, &input)]),
                    "batch" => all.push(input[40.min(input.len())..].to_vec()),
                    _ => {}
                }
            }
        }
        match name {
            "manifest" => {
                all.push(with(0, &bytes_of(&scratch, "MANIFEST-0000000001")));
                all.push(with(1, &store::join(&payloads)));
            }
            "edit" => all.extend(payloads),
            "store" => all.push(whole),
            _ => {}
        }
        drop(db);
    }
    if name == "operations" {
        for step in [37u32, 53, 101] {
            all.push((0..600u32).map(|n| ((n * n * step) >> 3) as u8).collect());
        }
    }
    all.sort();
    all.dedup();
    all
}
