//! What a store may take: of the disk, of memory, of descriptors. And the end of every round.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use esker::{Db, VerifyReport};

use super::model::Model;
use super::settings::Settings;
use crate::script::Rng;

/// Beyond the budget: what R12 promises.
const MEMORY_BEYOND: u64 = 64 << 20;
/// What this program takes for each entry that it expects, beside the entry's key.
const ORACLE_ENTRY: u64 = 200;
/// Files held open beside the log's.
const DESCRIPTORS: u64 = 64;

/// Bytes that the files of a directory take on the disk.
pub fn disk(dir: &Path) -> u64 {
    let Ok(files) = fs::read_dir(dir) else { return 0 };
    files.flatten().filter_map(|f| f.metadata().ok()).map(|m| m.blocks() * 512).sum()
}

/// Anonymous memory of this process, in bytes: mapped files are the page cache's.
pub fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Open descriptors of this process.
pub fn descriptors() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64)
}

/// Dead values that stay in the log's segments are borne up to so many bytes (ARCHITECTURE, background
/// work); holes free whole pages only, so small ones are on the disk until then.
const DEAD_VALUES: u64 = 64 << 20;

/// What a settled store may take: three times what lives in it, and what does not grow with that: the
/// pool of segments, a table for each keyspace, and dead values where small ones stay in the log.
pub fn disk_allowed(model: &Model, settings: &Settings) -> u64 {
    let tables = model.spaces.len() as u64 * (64 << 10);
    let dead = if settings.separate < 4096 { DEAD_VALUES } else { 0 };
    let fixed = 8 * settings.segment_bytes() + tables + dead + (16 << 20);
    3 * (model.bytes() + 64 * model.len()) + fixed
}

/// Fails when a settled store takes more.
pub fn check_disk(dir: &Path, model: &Model, settings: &Settings) -> Result<(), String> {
    let (taken, allowed) = (disk(dir), disk_allowed(model, settings));
    if taken > allowed {
        let live = model.bytes();
        return Err(format!("{taken} bytes on the disk, {allowed} allowed, {live} of them live"));
    }
    Ok(())
}

/// Watches this process's memory and descriptors until it is asked.
pub struct Watch {
    stop: Arc<AtomicBool>,
    most: Arc<[AtomicU64; 2]>,
    before: u64,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub fn start() -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let most: Arc<[AtomicU64; 2]> = Arc::default();
        let (s, m) = (Arc::clone(&stop), Arc::clone(&most));
        let look = move || {
            while !s.load(Relaxed) {
                m[0].fetch_max(memory(), Relaxed);
                m[1].fetch_max(descriptors(), Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        Watch { stop, most, before: memory(), thread: Some(std::thread::spawn(look)) }
    }

    /// Fails when the most that was seen is beyond what the settings allow.
    pub fn check(&self, model: &Model, settings: &Settings) -> Result<(), String> {
        let [memory, descriptors] = [0, 1].map(|i| self.most[i].load(Relaxed));
        let oracle = model.len() * ORACLE_ENTRY;
        let allowed = self.before + settings.memory.max(16 << 20) + MEMORY_BEYOND + oracle;
        if memory > allowed {
            return Err(format!("{} MiB of memory, {} allowed", memory >> 20, allowed >> 20));
        }
        if descriptors > DESCRIPTORS {
            return Err(format!("{descriptors} files open, {DESCRIPTORS} allowed"));
        }
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Verifies a store that is not open; all that is wrong is an error.
pub fn verify(dir: &Path) -> Result<VerifyReport, String> {
    let mut report = Db::verify_path(dir).map_err(|e| format!("verify: {e}"))?;
    // It is given no comparators.
    report.problems.retain(|p| !p.what.ends_with("the order of its keys is not checked"));
    match report.problems.first() {
        None => Ok(report),
        Some(first) => Err(format!("verify: {} problems: {first}", report.problems.len())),
    }
}

/// The end of a round: verified, opened, compared, settled, measured, compared again, and closed.
pub fn sound(dir: &Path, model: &Model, settings: &Settings, rng: &mut Rng) -> Result<(), String> {
    verify(dir)?;
    let watch = Watch::start();
    let (db, _) = model.open(dir, settings)?;
    model.compare(&db, rng).map_err(|e| format!("opened again: {e}"))?;
    db.wait_for_compactions().map_err(|e| format!("settling: {e}"))?;
    check_disk(dir, model, settings)?;
    model.compare(&db, rng).map_err(|e| format!("settled: {e}"))?;
    watch.check(model, settings)?;
    db.close().map_err(|e| format!("closing: {e}"))?;
    verify(dir).map(drop)
}
