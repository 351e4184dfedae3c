//! Experiment (d): a get through a point index of 64-byte lines, warm. The index in the 4 KiB pages
//! of a file mapping against a copy in 2 MiB pages; an entry that names page and slot, with and
//! without asking for the guessed record line early, against one that names the record itself.
//!
//! `point_index [entries...]`, by default 1 and 20 million, in tables of half a million.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};

use experiments::{Random, key16, median_ns};
use memmap2::{Advice, Mmap, MmapMut};
use xxhash_rust::xxh3::xxh3_64;

/// Short rounds, so that other work on the machine falls on all variants alike.
const ROUNDS: usize = 15;
const OPS: u64 = 100_000;
const PER_TABLE: u64 = 500_000;
const PAGE: usize = 4096;
const PER_PAGE: u64 = 34;
/// Header and slots of a page; records of 116 bytes follow.
const FIRST: usize = 88;
const RECORD: usize = 116;
const SLOT_BITS: u32 = 6;
const LINE: usize = 16;
const PER_LINE: u64 = 12;
const TABLE_PAGES: u64 = PER_TABLE.div_ceil(PER_PAGE);
const LINES: u64 = PER_TABLE.div_ceil(PER_LINE);

#[derive(Clone, Copy, PartialEq)]
enum Naming {
    /// Fingerprint of 12 bits, page of 14, slot of 6.
    PageSlot,
    /// The same, and the line in which the record should be is asked for with the page's first.
    PageSlotGuessed,
    /// Fingerprint of 8 bits, a quarter of the record's offset in 24.
    Record,
}

impl Naming {
    fn place_bits(self) -> u32 {
        if self == Naming::Record { 24 } else { 20 }
    }
    fn entry(self, hash: u64, i: u64) -> u32 {
        let (page, slot) = (i / PER_PAGE, i % PER_PAGE);
        let place = match self {
            Naming::Record => (page as usize * PAGE + FIRST + slot as usize * RECORD) as u32 / 4,
            _ => (page as u32) << SLOT_BITS | slot as u32,
        };
        let fingerprint = ((hash as u32) << self.place_bits()).max(1 << self.place_bits());
        fingerprint | place
    }
}

fn line_of(hash: u64) -> u64 {
    ((u128::from(hash) * u128::from(LINES)) >> 64) as u64
}

/// The lines of all tables, one after the other.
fn index(entries: u64, naming: Naming) -> Vec<u8> {
    let mut all = Vec::new();
    for t in 0..entries / PER_TABLE {
        let mut lines = vec![0u32; LINES as usize * LINE];
        for i in 0..PER_TABLE {
            let hash = xxh3_64(&key16(t * PER_TABLE + i));
            let mut at = line_of(hash) as usize * LINE;
            while lines[at] != 0 {
                at = (at + 1) % lines.len();
            }
            lines[at] = naming.entry(hash, i);
        }
        all.extend(lines.iter().flat_map(|e| e.to_le_bytes()));
    }
    all
}

fn data(path: &std::path::Path, entries: u64) -> Mmap {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).expect("created"));
    for t in 0..entries / PER_TABLE {
        for first in (0..PER_TABLE).step_by(PER_PAGE as usize) {
            let mut page = vec![0u8; PAGE];
            for slot in 0..PER_PAGE.min(PER_TABLE - first) as usize {
                let at = FIRST + slot * RECORD;
                page[20 + 2 * slot..][..2].copy_from_slice(&(at as u16).to_le_bytes());
                let key = key16(t * PER_TABLE + first + slot as u64);
                page[at..at + 16].copy_from_slice(&key);
                page[at + 16..at + RECORD].fill(slot as u8);
            }
            out.write_all(&page).expect("written");
        }
    }
    drop(out);
    mapped(path)
}

fn mapped(path: &std::path::Path) -> Mmap {
    // SAFETY: nobody else writes the file.
    let map = unsafe { Mmap::map(&File::open(path).expect("there")) }.expect("mapped");
    map.advise(Advice::Random).expect("advice");
    map.iter().step_by(PAGE).for_each(|b| _ = black_box(*b));
    map
}

fn prefetch(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect a program can see.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
}

#[inline(never)]
fn get<'a>(
    index: &[u8],
    data: &'a [u8],
    naming: Naming,
    table: u64,
    key: &[u8; 16],
) -> Option<&'a [u8]> {
    let hash = xxh3_64(key);
    let lines = &index[(table * LINES) as usize * 64..][..LINES as usize * 64];
    let pages = &data[(table * TABLE_PAGES) as usize * PAGE..][..TABLE_PAGES as usize * PAGE];
    let mask = u32::MAX << naming.place_bits();
    let want = naming.entry(hash, 0) & mask;
    let mut line = line_of(hash) as usize;
    loop {
        let entries: &[u8; 64] = lines[line * 64..].first_chunk()?;
        let mut words = [0; LINE];
        for (w, e) in words.iter_mut().zip(entries.chunks_exact(4)) {
            *w = u32::from_le_bytes([e[0], e[1], e[2], e[3]]);
        }
        let full = words[LINE - 1] != 0;
        let mut matches = 0u32;
        for (i, w) in words.iter().enumerate() {
            matches |= u32::from(w & mask == want) << i;
        }
        while matches != 0 {
            let e = words[matches.trailing_zeros() as usize];
            matches &= matches - 1;
            let place = (e & !mask) as usize;
            let at = if naming == Naming::Record {
                place * 4
            } else {
                let (page, slot) = (place >> SLOT_BITS, place & ((1 << SLOT_BITS) - 1));
                let base = pages[page * PAGE..].as_ptr();
                if naming == Naming::PageSlotGuessed {
                    prefetch(base);
                    prefetch(base.wrapping_add(FIRST + slot * RECORD));
                    prefetch(base.wrapping_add(FIRST + slot * RECORD + 64));
                }
                let slots = &pages[page * PAGE + 20 + 2 * slot..];
                page * PAGE + usize::from(u16::from_le_bytes([slots[0], slots[1]]))
            };
            let record = &pages[at..at + RECORD];
            if &record[..16] == key {
                return Some(&record[16..]);
            }
        }
        if !full {
            return None;
        }
        line = (line + 1) % LINES as usize;
    }
}

fn main() {
    let mut sizes: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1_000_000, 20_000_000];
    }
    let dir = tempfile::tempdir_in(".").expect("a directory");
    for entries in sizes {
        let data = data(&dir.path().join("data"), entries);
        println!("{entries} entries: median and least of {ROUNDS} rounds, all variants in each");
        let names = ["page + slot", "page + slot, guessed", "record"];
        let namings = [Naming::PageSlot, Naming::PageSlotGuessed, Naming::Record];
        let path = dir.path().join("index");
        let indexes: Vec<(Mmap, MmapMut)> =
            namings.iter().map(|n| both(&path, index(entries, *n))).collect();
        let mut random = Random(1);
        let mut costs = vec![[Vec::new(), Vec::new()]; 6];
        for _ in 0..ROUNDS {
            for (v, costs) in costs.iter_mut().enumerate() {
                let (naming, pair) = (namings[v / 2], &indexes[v / 2]);
                let index = if v % 2 == 0 { &pair.0[..] } else { &pair.1[..] };
                for (absent, costs) in costs.iter_mut().enumerate() {
                    costs.push(median_ns(1, OPS, || {
                        for _ in 0..OPS {
                            let i = random.below(entries);
                            let mut key = key16(i);
                            if absent == 1 {
                                key[0] = b'x';
                            }
                            let found = get(index, &data, naming, i / PER_TABLE, &key);
                            assert_eq!(found.is_none(), absent == 1);
                            black_box(found.map(|v| v[0] ^ v[99]));
                        }
                    }));
                }
            }
        }
        for (v, mut costs) in costs.into_iter().enumerate() {
            print!("  {:<22}", names[v / 2]);
            print!(" {:<16}", if v % 2 == 0 { "4 KiB mapped" } else { "2 MiB anonymous" });
            for (what, costs) in ["hit", "miss"].into_iter().zip(&mut costs) {
                costs.sort_by(f64::total_cmp);
                print!("  {what} {:>7.1} ({:.1})", costs[ROUNDS / 2], costs[0]);
            }
            println!(" ns");
        }
    }
}

/// The index in a file mapping and in large pages.
fn both(path: &std::path::Path, bytes: Vec<u8>) -> (Mmap, MmapMut) {
    // A file removed while it is mapped stays; the next index gets one of its own.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, &bytes).expect("written");
    let small = mapped(path);
    let mut huge = MmapMut::map_anon(bytes.len().next_multiple_of(2 << 20)).expect("memory");
    let _ = huge.advise(Advice::HugePage);
    huge[..bytes.len()].copy_from_slice(&bytes);
    (small, huge)
}
