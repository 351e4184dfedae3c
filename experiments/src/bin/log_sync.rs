//! What does a small synced write cost, and what is the state of the file worth?
//!
//! `log_sync [dir] [syncs] [bytes]`. 128 B (or so many) appended and fdatasync, one after the other: to a growing file,
//! an allocated one, an allocated one with zeros written or pages dirtied ahead, and one that is
//! fully written, with large writes or page by page. Beside the times stand bytes written and flushes
//! per sync as the device counts them, which say more where the disk is a host's cache. Cases take turns, so that what else the disk does hits all of them.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::{Advice, madvise};

const FILE: usize = 16 << 20;
/// Syncs of one case before the next has its turn.
const TURN: usize = 50;

#[derive(Clone, Copy, PartialEq)]
enum Case {
    Growing,
    Allocated,
    /// Zeros by pwrite(2), this far ahead.
    Zeros(usize),
    /// Dirty pages by MADV_POPULATE_WRITE, this far ahead.
    Populate(usize),
    /// All of it, by one pwrite(2): the page cache holds it in large folios.
    Written,
    /// All of it, through a mapping, pages faulted in by MADV_POPULATE_WRITE: as a recycled log is.
    Recycled,
    /// The same, and pages dirtied ahead.
    RecycledPopulate(usize),
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let syncs: usize = args.next().map_or(1000, |s| s.parse().expect("a number of syncs"));
    let append: usize = args.next().map_or(128, |s| s.parse().expect("a number of bytes"));
    let dir = tempfile::tempdir_in(dir).expect("a directory to work in");
    let cases = [
        ("write(2), growing file", Case::Growing),
        ("allocated", Case::Allocated),
        ("allocated, 64 KiB zeros ahead", Case::Zeros(64 << 10)),
        ("allocated, 256 KiB zeros ahead", Case::Zeros(256 << 10)),
        ("allocated, 1 MiB zeros ahead", Case::Zeros(1 << 20)),
        ("allocated, 256 KiB populated", Case::Populate(256 << 10)),
        ("allocated, 1 MiB populated", Case::Populate(1 << 20)),
        ("allocated, 64 KiB populated", Case::Populate(64 << 10)),
        ("written before by pwrite", Case::Written),
        ("recycled log", Case::Recycled),
        ("recycled log, 256 KiB populated", Case::RecycledPopulate(256 << 10)),
    ];
    let mut logs: Vec<Log> = cases
        .iter()
        .enumerate()
        .map(|(i, case)| Log::create(&dir.path().join(i.to_string()), case.1))
        .collect();
    let mut costs = vec![Vec::new(); cases.len()];
    let mut device = vec![(0, 0); cases.len()];
    for _ in 0..syncs.div_ceil(TURN) {
        for ((log, costs), device) in logs.iter_mut().zip(&mut costs).zip(&mut device) {
            let before = device_counts(dir.path());
            for _ in 0..TURN {
                let start = Instant::now();
                log.append(append);
                log.file.sync_data().expect("a working disk");
                costs.push(start.elapsed().as_nanos() as f64 / 1e3);
            }
            let after = device_counts(dir.path());
            device.0 += after.0 - before.0;
            device.1 += after.1 - before.1;
        }
    }
    println!(
        "{:>36} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}",
        "us per append + fdatasync", "mean", "p50", "p90", "p99", "KiB/sync", "flushes"
    );
    for ((case, costs), device) in cases.iter().zip(&mut costs).zip(&device) {
        costs.sort_by(f64::total_cmp);
        let n = costs.len() as f64;
        let at = |q: f64| costs[((n - 1.0) * q) as usize];
        let mean = costs.iter().sum::<f64>() / n;
        let (kib, flushes) = (device.0 as f64 / 2.0 / n, device.1 as f64 / n);
        println!(
            "{:>36} {mean:8.0} {:8.0} {:8.0} {:8.0} {kib:9.1} {flushes:8.2}",
            case.0,
            at(0.5),
            at(0.9),
            at(0.99)
        );
    }
}

/// Sectors written and flushes of the block device under `dir`, zeros where it does not tell.
fn device_counts(dir: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let dev = dir.metadata().map_or(0, |m| m.dev());
    let name = format!("/sys/dev/block/{}:{}/stat", rustix::fs::major(dev), rustix::fs::minor(dev));
    let stat = fs::read_to_string(name).unwrap_or_default();
    let field = |i| stat.split_whitespace().nth(i).and_then(|f| f.parse().ok()).unwrap_or(0);
    (field(6), field(15))
}

struct Log {
    file: File,
    map: Option<MmapRaw>,
    at: usize,
    ready: usize,
    case: Case,
}

impl Log {
    fn create(path: &Path, case: Case) -> Log {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .expect("a file for the log");
        let mut map = None;
        if case != Case::Growing {
            fallocate(&file, FallocateFlags::empty(), 0, FILE as u64).expect("room for the log");
            map = Some(MmapOptions::new().len(FILE).map_raw(&file).expect("address space"));
        }
        if matches!(case, Case::Written) {
            file.write_all_at(&vec![1; FILE], 0).expect("room for the log");
        }
        if matches!(case, Case::Recycled | Case::RecycledPopulate(_)) {
            let map = map.as_ref().expect("these cases have one");
            populate(map, 0, FILE);
            // SAFETY: all of the mapping; nobody else has it.
            unsafe { map.as_mut_ptr().write_bytes(1, FILE) };
        }
        file.sync_all().expect("a working disk");
        let parent = path.parent().expect("it is in a directory");
        fs::File::open(parent).and_then(|d| d.sync_all()).expect("a working disk");
        Log { file, map, at: 0, ready: 0, case }
    }

    fn append(&mut self, len: usize) {
        let bytes = vec![self.at as u8 | 1; len];
        assert!(self.at + len <= FILE, "fewer syncs, please");
        if self.at + len > self.ready {
            self.go_ahead();
        }
        match &self.map {
            None => self.file.write_all_at(&bytes, self.at as u64).expect("room for the log"),
            // SAFETY: in bounds as just checked; nobody else has the mapping.
            Some(map) => unsafe {
                map.as_mut_ptr().add(self.at).copy_from_nonoverlapping(bytes.as_ptr(), len);
            },
        }
        self.at += len;
    }

    fn go_ahead(&mut self) {
        match self.case {
            Case::Zeros(n) => {
                let n = n.min(FILE - self.ready);
                self.file.write_all_at(&vec![0; n], self.ready as u64).expect("room for the log");
                self.ready += n;
            }
            Case::Populate(n) | Case::RecycledPopulate(n) => {
                let n = n.min(FILE - self.ready);
                let map = self.map.as_ref().expect("these cases have one");
                populate(map, self.ready, n);
                self.ready += n;
            }
            _ => self.ready = FILE,
        }
    }
}

fn populate(map: &MmapRaw, at: usize, len: usize) {
    // SAFETY: a range of the mapping, on a page boundary; contents do not change.
    let done = unsafe { madvise(map.as_mut_ptr().add(at).cast(), len, Advice::LinuxPopulateWrite) };
    done.expect("MADV_POPULATE_WRITE, Linux 5.14");
}
