//! What does it cost to append to a log: write(2), or a store into a mapping? With which pages
//! faulted in by whom? And from which size on is a value better written than copied?
//!
//! `log_append [dir] [MiB per file]`. Every figure is the median of some rounds, each with a file
//! of its own; a frame is 16 bytes of frame header, 16 of record header, key, value, padding, and
//! its checksum is XXH3 over all but itself.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use experiments::key16;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::{Advice, madvise};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

const ROUNDS: usize = 7;
const HEADERS: usize = 32;

/// Who faults the pages in.
#[derive(Clone, Copy, PartialEq)]
enum Pages {
    /// The stores themselves, one by one.
    Stores,
    /// The writer, this many bytes at a time.
    Writer(usize),
    /// The writer, by writing zeros with pwrite(2), this many bytes at a time.
    Zeros(usize),
    /// The stores, after all of the file was written with pwrite(2).
    Before,
    /// A helper thread that stays about this many bytes ahead.
    Helper(usize),
}

/// What a file was before.
#[derive(Clone, Copy, PartialEq)]
enum Life {
    None,
    /// Zeros, written with pwrite(2).
    Zeroed,
    /// A log, written through its mapping as ours are.
    Log,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mib: usize = args.next().map_or(64, |s| s.parse().expect("a number of MiB"));
    let dir = tempfile::tempdir_in(dir).expect("a directory to work in");
    let bytes = mib << 20;
    small(dir.path(), bytes);
    large(dir.path(), bytes);
}

fn small(dir: &Path, bytes: usize) {
    println!(
        "16 B key, 100 B value, {} MiB a file, ns a put (median, best of {ROUNDS})",
        bytes >> 20
    );
    let helper = Pages::Helper;
    let writer = Pages::Writer;
    let cases: Vec<(&str, bool, Option<Pages>)> = vec![
        ("write(2), growing file", false, None),
        ("fresh, faults by the stores", false, Some(Pages::Stores)),
        ("fresh, populate 64 KiB", false, Some(writer(64 << 10))),
        ("fresh, populate 256 KiB", false, Some(writer(256 << 10))),
        ("fresh, populate 1 MiB", false, Some(writer(1 << 20))),
        ("fresh, populate 4 MiB", false, Some(writer(4 << 20))),
        ("fresh, zeros 256 KiB", false, Some(Pages::Zeros(256 << 10))),
        ("fresh, zeros 1 MiB", false, Some(Pages::Zeros(1 << 20))),
        ("fresh, helper 4 MiB ahead", false, Some(helper(4 << 20))),
        ("recycled, faults by the stores", true, Some(Pages::Stores)),
        ("recycled, populate 64 KiB", true, Some(writer(64 << 10))),
        ("recycled, populate 256 KiB", true, Some(writer(256 << 10))),
        ("recycled, populate 1 MiB", true, Some(writer(1 << 20))),
        ("recycled, helper 4 MiB ahead", true, Some(helper(4 << 20))),
        ("recycled, all populated before", true, Some(writer(bytes))),
        ("zeroed by pwrite before", true, Some(Pages::Before)),
    ];
    let mut costs = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (case, costs) in cases.iter().zip(&mut costs) {
            let path = dir.join("log");
            if case.1 {
                let how = if case.2 == Some(Pages::Before) { Life::Zeroed } else { Life::Log };
                drop(Log::create(&path, bytes, how));
            }
            costs.push(match case.2 {
                None => small_written(&path, bytes),
                Some(pages) => small_mapped(&path, bytes, case.1, pages),
            });
            fs::remove_file(&path).expect("the log was there");
        }
    }
    for (case, costs) in cases.iter().zip(&mut costs) {
        costs.sort_by(f64::total_cmp);
        println!("{:>34} {:8.1} {:8.1}", case.0, costs[ROUNDS / 2], costs[0]);
    }
}

fn small_written(path: &Path, bytes: usize) -> f64 {
    let file = OpenOptions::new().append(true).create_new(true).open(path).expect("a new file");
    let value = [7; 100];
    let mut frame = [0; 152];
    let puts = bytes / frame.len();
    let start = Instant::now();
    for i in 0..puts {
        frame[8..16].copy_from_slice(&(i as u64).to_le_bytes());
        frame[HEADERS..HEADERS + 16].copy_from_slice(&key16(i as u64));
        frame[HEADERS + 16..HEADERS + 116].copy_from_slice(&value);
        let sum = xxh3_64_with_seed(&frame[4..], 1) as u32;
        frame[..4].copy_from_slice(&sum.to_le_bytes());
        (&file).write_all_checked(&frame);
    }
    start.elapsed().as_nanos() as f64 / puts as f64
}

trait WriteChecked {
    fn write_all_checked(&mut self, bytes: &[u8]);
}
impl WriteChecked for &File {
    fn write_all_checked(&mut self, bytes: &[u8]) {
        std::io::Write::write_all(self, bytes).expect("room for the log");
    }
}

fn small_mapped(path: &Path, bytes: usize, recycled: bool, pages: Pages) -> f64 {
    let mut log = Log::create(path, bytes, Life::None);
    assert!(!recycled || log.file.metadata().is_ok_and(|m| m.len() == bytes as u64));
    log.pages(pages);
    let value = [7; 100];
    let puts = bytes / 152;
    let start = Instant::now();
    for i in 0..puts {
        log.put(i as u64, &key16(i as u64), &value);
    }
    start.elapsed().as_nanos() as f64 / puts as f64
}

fn large(dir: &Path, bytes: usize) {
    println!("\nlarge values, MB/s, checksum included (median of {ROUNDS})");
    println!("{:>10} {:>28} {:>28}", "", "fresh", "recycled");
    let how = ["copy", "populate", "pwrite"];
    print!("{:>10}", "value");
    (0..2).for_each(|_| how.iter().for_each(|h| print!(" {h:>9}")));
    println!();
    for size in [1 << 10, 4 << 10, 16 << 10, 32 << 10, 100 << 10, 1 << 20] {
        let mut costs = vec![Vec::new(); 6];
        for _ in 0..ROUNDS {
            for (case, costs) in costs.iter_mut().enumerate() {
                let path = dir.join("log");
                if case >= 3 {
                    drop(Log::create(&path, bytes, Life::Log));
                }
                costs.push(large_one(&path, bytes, size, case % 3));
                fs::remove_file(&path).expect("the log was there");
            }
        }
        print!("{size:>10}");
        for costs in &mut costs {
            costs.sort_by(f64::total_cmp);
            print!(" {:9.0}", costs[ROUNDS / 2]);
        }
        println!();
    }
}

fn large_one(path: &Path, bytes: usize, size: usize, how: usize) -> f64 {
    let mut log = Log::create(path, bytes, Life::None);
    if how == 1 {
        log.pages(Pages::Writer(256 << 10));
    }
    let value = vec![7; size];
    let puts = bytes / (size + 64);
    let start = Instant::now();
    for i in 0..puts {
        let key = key16(i as u64);
        if how == 2 {
            log.put_written(i as u64, &key, &value)
        } else {
            log.put(i as u64, &key, &value)
        }
    }
    (puts * size) as f64 * 1e3 / start.elapsed().as_nanos() as f64
}

/// How far the writer is, and whether to stop; and the thread that wants to know.
type Helper = (Arc<(AtomicUsize, AtomicBool)>, std::thread::JoinHandle<()>);

/// A bare log in a mapping.
struct Log {
    file: File,
    map: Arc<MmapRaw>,
    at: usize,
    ready: usize,
    ahead: usize,
    zeros: Vec<u8>,
    helper: Option<Helper>,
}

impl Log {
    /// An allocated file and its mapping, after an earlier life.
    fn create(path: &Path, bytes: usize, before: Life) -> Log {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .expect("a file for the log");
        fallocate(&file, FallocateFlags::empty(), 0, bytes as u64).expect("room for the log");
        let map = MmapOptions::new().len(bytes).map_raw(&file).expect("address space");
        let map = Arc::new(map);
        let mut log =
            Log { file, map, at: 0, ready: usize::MAX, ahead: 0, zeros: vec![], helper: None };
        match before {
            Life::None => return log,
            Life::Zeroed => {
                let chunk = vec![0; 1 << 20];
                for at in (0..bytes).step_by(chunk.len()) {
                    log.file.write_all_at(&chunk, at as u64).expect("room for the log");
                }
            }
            Life::Log => {
                log.pages(Pages::Writer(256 << 10));
                for i in 0..(bytes / 152) as u64 {
                    log.put(i, &key16(i), &[7; 100]);
                }
            }
        }
        log.file.sync_data().expect("a working disk");
        log
    }

    fn pages(&mut self, pages: Pages) {
        match pages {
            Pages::Stores | Pages::Before => {}
            Pages::Zeros(step) => {
                (self.ready, self.ahead, self.zeros) = (0, step, vec![0; step]);
            }
            Pages::Writer(step) => (self.ready, self.ahead) = (0, step),
            Pages::Helper(distance) => {
                let state = Arc::new((AtomicUsize::new(0), AtomicBool::new(false)));
                let (theirs, map) = (Arc::clone(&state), Arc::clone(&self.map));
                let thread = std::thread::spawn(move || {
                    let mut ready = 0;
                    while !theirs.1.load(Ordering::Relaxed) && ready < map.len() {
                        if ready < theirs.0.load(Ordering::Relaxed) + distance {
                            populate(&map, ready, 256 << 10);
                            ready += 256 << 10;
                        } else {
                            std::thread::sleep(std::time::Duration::from_micros(50));
                        }
                    }
                });
                self.helper = Some((state, thread));
            }
        }
    }

    #[inline]
    fn reserve(&mut self, len: usize) -> *mut u8 {
        assert!(self.at + len <= self.map.len());
        if self.at + len > self.ready {
            if !self.zeros.is_empty() {
                let n = self.zeros.len().min(self.map.len() - self.ready);
                self.file.write_all_at(&self.zeros[..n], self.ready as u64).expect("room");
                self.ready += n;
            }
            let until = self.at + len + self.ahead;
            if self.zeros.is_empty() {
                populate(&self.map, self.ready, until - self.ready);
                self.ready = until;
            }
        }
        if let Some((state, _)) = &self.helper {
            state.0.store(self.at, Ordering::Relaxed);
        }
        // SAFETY: in bounds as just checked.
        unsafe { self.map.as_mut_ptr().add(self.at) }
    }

    #[inline]
    fn put(&mut self, seq: u64, key: &[u8], value: &[u8]) {
        let len = (HEADERS + key.len() + value.len()).next_multiple_of(8);
        let frame = self.reserve(len);
        // SAFETY: `reserve` gave us `len` bytes, and the parts written add up to them.
        unsafe {
            frame.add(len - 8).cast::<u64>().write(0);
            put_headers(frame, seq, len, key, value.len());
            let at = frame.add(HEADERS + key.len());
            at.copy_from_nonoverlapping(value.as_ptr(), value.len());
            let rest = std::slice::from_raw_parts(frame.add(4), len - 4);
            frame.cast::<u32>().write(xxh3_64_with_seed(rest, 1) as u32);
        }
        self.at += len;
    }

    /// As `put`, the value by pwrite(2) and hashed where it comes from.
    fn put_written(&mut self, seq: u64, key: &[u8], value: &[u8]) {
        let len = (HEADERS + key.len() + value.len()).next_multiple_of(8);
        let frame = self.reserve(len);
        let value_at = HEADERS + key.len();
        self.file.write_all_at(value, (self.at + value_at) as u64).expect("room for the log");
        // SAFETY: as in `put`.
        unsafe {
            put_headers(frame, seq, len, key, value.len());
            let mut sum = Xxh3::with_seed(1);
            sum.update(std::slice::from_raw_parts(frame.add(4), value_at - 4));
            sum.update(value);
            sum.update(&[0; 8][..len - value_at - value.len()]);
            frame.cast::<u32>().write(sum.digest() as u32);
        }
        self.at += len;
    }
}

/// Writes all of a frame before the value.
///
/// # Safety
/// `frame` is valid for writes of that many bytes and on an 8-byte boundary.
#[inline]
unsafe fn put_headers(frame: *mut u8, seq: u64, len: usize, key: &[u8], value_len: usize) {
    // SAFETY: the caller's.
    unsafe {
        frame.add(4).cast::<u32>().write(len as u32);
        frame.add(8).cast::<u64>().write(seq);
        frame.add(16).cast::<u64>().write(16 | (key.len() as u64) << 40);
        frame.add(24).cast::<u64>().write(value_len as u64);
        frame.add(HEADERS).copy_from_nonoverlapping(key.as_ptr(), key.len());
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some((state, thread)) = self.helper.take() {
            state.1.store(true, Ordering::Relaxed);
            thread.join().expect("the helper does not panic");
        }
    }
}

fn populate(map: &MmapRaw, at: usize, len: usize) {
    let start = at & !4095;
    let end = (at + len).min(map.len());
    if start < end {
        // SAFETY: a range of the mapping, on a page boundary; contents do not change.
        let done = unsafe {
            madvise(map.as_mut_ptr().add(start).cast(), end - start, Advice::LinuxPopulateWrite)
        };
        done.expect("MADV_POPULATE_WRITE, Linux 5.14");
    }
}
