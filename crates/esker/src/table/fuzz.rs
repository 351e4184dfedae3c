//! Tables of any bytes, for fuzzing: opening, reading, verifying and salvaging end, and read
//! nothing outside.

use std::path::Path;
use std::sync::Arc;

use super::block::{self, Block, PAGE};
use super::codec;
use super::dictionary::Dictionary;
use super::footer::{FOOTER_LEN, MAGIC, VERSION};
use super::hash_index::{Geometry, LINE_BYTES, Line};
use super::wire::{ONLY, checksum};
use super::{Table, memory};
use crate::env::{Env, OpenMode};
use crate::filename;
use crate::key::{Codec, InternalCursor, KeyOrder, Stored, ValuePointer, key_hash};

/// Number of the table that [`table`] takes its bytes for.
pub(crate) const NUMBER: u64 = 7;

/// More steps than the entries of any table here: a walk that goes on longer is going in circles.
const MOST_STEPS: usize = 1 << 20;

/// Checks what can be checked of a value.
fn decompress(table: &Table, stored: Stored<'_>, out: &mut Vec<u8>) {
    if !matches!(stored, Stored::Pointer(_)) {
        drop(table.decompress(stored, out));
    }
}

/// Opens `bytes` as a table in `dir` and reads it by every way there is.
pub(crate) fn table(env: &Arc<dyn Env>, dir: &Path, bytes: &[u8], order: KeyOrder) {
    let path = dir.join(filename::table(NUMBER));
    drop(env.remove(&path));
    let Ok(file) = env.open(&path, OpenMode::CreateNew) else { return };
    file.write_all_at(bytes, 0).expect("writing a file of the fuzzer's");
    let size = bytes.len() as u64;
    let Ok(table) = Table::open(&**env, &path, NUMBER, size, order.clone(), 40) else { return };
    read(&Arc::new(table), &order);
}

fn read(table: &Arc<Table>, order: &KeyOrder) {
    let mut out = Vec::new();
    let (mut keys, mut steps) = (Vec::new(), 0);
    let mut cursor = table.cursor();
    let mut moved = cursor.first();
    while moved.is_ok() && cursor.valid() {
        steps += 1;
        assert!(steps < MOST_STEPS, "a walk that does not end");
        decompress(table, cursor.stored(), &mut out);
        let _ = (cursor.seq(), cursor.kind());
        if steps % 16 == 1 && keys.len() < 100 {
            keys.push(cursor.key().to_vec());
        }
        moved = cursor.next();
    }
    let mut moved = cursor.last();
    steps = 0;
    while moved.is_ok() && cursor.valid() {
        steps += 1;
        assert!(steps < MOST_STEPS, "a walk back that does not end");
        moved = cursor.prev();
    }
    keys.extend([vec![], b"key 001x".to_vec(), vec![0xff; 40], table.props.smallest.clone()]);
    for key in &keys {
        for seq in [0, 40, u64::MAX] {
            if let Ok(Some(found)) = table.get(key_hash(key), key, seq) {
                assert!(found.seq <= seq, "a version from the future");
                decompress(table, found.stored, &mut out);
            }
        }
        if cursor.seek(key).is_ok() && cursor.valid() {
            drop(cursor.next());
        }
        if cursor.seek_for_prev(key).is_ok() && cursor.valid() {
            drop(cursor.prev());
        }
        table.approximate_offset(key);
    }
    let problems = table.verify(&mut |_| {}).expect("verification reports and does not fail");
    let mut salvaged = 0;
    let lost = table.salvage(&mut |key, _, _, stored| {
        salvaged += 1;
        assert!(key.len() <= crate::MAX_KEY_LEN);
        decompress(table, stored, &mut Vec::new());
        Ok(())
    });
    let lost = lost.expect("salvage goes around what is damaged");
    if problems.is_empty() {
        assert!(
            lost.is_empty() && salvaged == table.entries(),
            "sound, and not all of it is there"
        );
        sound(table, order);
    }
}

/// In a table that verification finds sound, all ways of reading agree.
fn sound(table: &Arc<Table>, order: &KeyOrder) {
    let mut cursor = table.cursor();
    cursor.first().expect("sound");
    let mut last: Option<(Vec<u8>, u64)> = None;
    while cursor.valid() {
        if let Some((key, seq)) = &last {
            let side = order.compare(key, cursor.key()).then(cursor.seq().cmp(seq));
            assert!(side.is_lt(), "sound, and out of order");
        }
        let found = table.get(key_hash(cursor.key()), cursor.key(), cursor.seq());
        let found = found.expect("sound").expect("sound, and a key is not found");
        assert!(found.seq == cursor.seq() && found.kind == cursor.kind());
        last = Some((cursor.key().to_vec(), cursor.seq()));
        cursor.next().expect("sound");
    }
}

/// Sets right every checksum and length that others rest on, so that what lies behind is reached.
pub(crate) fn reseal(b: &mut [u8], number: u64) {
    use xxhash_rust::xxh3::xxh3_64;
    let Some(footer) = b.len().checked_sub(FOOTER_LEN) else { return };
    let len = b.len() as u64;
    let put = |b: &mut [u8], at: usize, v: u64| b[at..at + 8].copy_from_slice(&v.to_le_bytes());
    let u32_at =
        |b: &[u8], at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]) as usize;
    put(b, footer, number);
    put(b, footer + 8, len);
    let (data_pages, lines) = (u32_at(b, footer + 16), u32_at(b, footer + 24));
    let props_len = u32_at(b, footer + 56);
    let index = data_pages * PAGE;
    let sums = index + lines * LINE_BYTES;
    let block_index = sums + 8 * (lines * LINE_BYTES).div_ceil(4096);
    if let Some(props) = footer.checked_sub(props_len).filter(|p| *p >= block_index) {
        let mut page = 0;
        while page < data_pages {
            let start = page * PAGE;
            let pages = block::claimed_pages(&b[start..]).clamp(1, data_pages - page);
            let sum = checksum(&b[start + 8..start + pages * PAGE], number, page as u64);
            put(b, start, sum);
            page += pages;
        }
        for (i, at) in (index..sums).step_by(4096).enumerate() {
            let sum = checksum(&b[at..sums.min(at + 4096)], number, i as u64);
            put(b, sums + 8 * i, sum);
        }
        for (at, from, to) in
            [(40, sums, block_index), (48, block_index, props), (64, props, footer)]
        {
            let sum = checksum(&b[from..to], number, ONLY);
            put(b, footer + at, sum);
        }
    }
    b[footer + 76..footer + 80].copy_from_slice(&VERSION.to_le_bytes());
    let sum = xxh3_64(&b[footer..footer + 80]);
    put(b, footer + 80, sum);
    put(b, footer + 88, MAGIC);
}

/// A block of any bytes: what passes validation is read without one more check.
pub(crate) fn a_block(data: &[u8]) {
    let mut bytes = data.to_vec();
    bytes.resize(data.len().max(1).next_multiple_of(PAGE), 0);
    let len = bytes.len();
    // What lies behind a block in a file: here a pattern that no answer may depend on.
    bytes.resize(len + memory::SLACK, 0xEE);
    if block::validate(&bytes[..len], 100).is_err() {
        return;
    }
    // SAFETY: validated, and followed by the slack.
    let block = unsafe { Block::new(bytes.as_ptr()) };
    let inside = |p: *const u8, n: usize| {
        let range = bytes.as_ptr_range();
        p >= range.start && p.wrapping_add(n) <= range.start.wrapping_add(len)
    };
    assert!(block.prefix().len() <= 100 && inside(block.prefix().as_ptr(), block.prefix().len()));
    for i in 0..block.count {
        let r = block.record(i);
        assert!(inside(r.suffix_at, r.suffix_len), "a suffix outside of the block");
        assert!(r.payload.is_empty() || inside(r.payload.as_ptr(), r.payload.len()));
        let key = [block.prefix(), r.suffix()].concat();
        assert!(key.len() <= 100 && block.key_is(i, &key));
        let _ = (r.kind(), r.seq, r.stored(1));
        for order in [KeyOrder::Bytewise, KeyOrder::Reverse] {
            assert!(block.rank(&order, &key, false) <= block.count);
            assert!(block.rank(&order, &key, true) <= block.count);
            block.compare(&order, 0, &key);
        }
    }
}

/// Lines of a hash index of any bytes and any shape.
pub(crate) fn an_index(data: &[u8]) {
    let Some((head, lines)) = data.split_at_checked(10) else { return };
    let geometry = Geometry {
        lines: (lines.len() / LINE_BYTES) as u32,
        slot_bits: head[0],
        place_bits: head[1],
    };
    if !geometry.is_valid() || geometry.lines == 0 {
        return;
    }
    let hash = u64::from_le_bytes(*head[2..].first_chunk().expect("ten bytes"));
    for hash in [hash, !hash, 0, u64::MAX, hash << 32] {
        let line_no = geometry.line(hash);
        assert!(line_no < geometry.lines);
        let at = line_no as usize * LINE_BYTES;
        let bytes = &lines[at..at + LINE_BYTES];
        // SAFETY: 64 bytes, as just sliced.
        let line = unsafe { Line::new(bytes.as_ptr()) };
        let (print, mask) = (geometry.fingerprint(hash), geometry.mask());
        let matches = line.matches(print, mask);
        for i in 0..16 {
            let matched = line.entry(i) & mask == print;
            assert_eq!(matches >> i & 1 != 0, matched, "entry {i}");
            let (page, slot) = geometry.place(line.entry(i));
            assert!(u64::from(page) << geometry.slot_bits < 1 << 28);
            assert!(slot < 1 << geometry.slot_bits);
        }
        line.overflowed();
    }
}

/// Packed values of any bytes, with any dictionary.
pub(crate) fn a_value(data: &[u8]) {
    let Some((head, rest)) = data.split_at_checked(6) else { return };
    let codec = if head[0] & 1 == 0 { Codec::Lz4 } else { Codec::Zstd };
    let raw_len = u32::from_le_bytes([head[1], head[2], head[3], head[4] & 0x3F]);
    let (dictionary, bytes) = rest.split_at(usize::from(head[5]).min(rest.len()));
    let dictionary = Dictionary::new(codec, dictionary);
    let mut out = Vec::new();
    for dict in [0, dictionary.id()] {
        let stored = Stored::Compressed { codec, dict, raw_len, bytes };
        if codec::decompress(stored, Some(&dictionary), &mut out).is_ok() {
            assert_eq!(out.len(), raw_len as usize);
        }
        let bound = (bytes.len() + 3).saturating_mul(128 << 10);
        assert!(out.capacity() <= bound, "{} bytes for {}", out.capacity(), bytes.len());
    }
    if let Some(p) = ValuePointer::decode(bytes) {
        assert_eq!(p.encode(), bytes[..ValuePointer::ENCODED_LEN]);
    }
}
