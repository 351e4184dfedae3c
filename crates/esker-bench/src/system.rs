//! What the operating system tells: processor time, disk, the machine.

use procfs::process::{Io, Process};
use procfs::{CpuInfo, Current};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What this process took of the machine: since its start, or between two moments.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Seconds of processor time, of all threads, in user and system mode.
    pub cpu_s: f64,
    /// Bytes that went towards the device, or will go there.
    pub written_bytes: u64,
    /// Bytes that came from it.
    pub read_bytes: u64,
}

impl Usage {
    /// Since the process began.
    pub fn now() -> Self {
        let io = Process::myself().and_then(|process| process.io()).ok();
        let written_bytes = io.as_ref().map_or(0, written);
        Usage { cpu_s: cpu_seconds(), written_bytes, read_bytes: io.map_or(0, |io| io.read_bytes) }
    }
    /// Since an earlier moment.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_s: self.cpu_s - earlier.cpu_s,
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
        }
    }
}

/// Bytes that were written, of what the kernel tells. It counts a page as written when it becomes dirty, and counts apart those
/// of files that were cut off or deleted before the device had them.
fn written(io: &Io) -> u64 {
    io.write_bytes.saturating_sub(io.cancelled_write_bytes)
}

/// Processor time of all threads, those that ended included.
pub fn cpu_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let at = clock_gettime(ClockId::ProcessCPUTime);
    at.tv_sec as f64 + at.tv_nsec as f64 / 1e9
}

/// Bytes free, to us, on the file system that holds `dir`.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

/// Hands over every file below a directory, in the order of their names. What an engine deletes meanwhile is passed over.
pub fn each_file(
    dir: &Path,
    see: &mut dyn FnMut(&Path, &Metadata) -> io::Result<()>,
) -> io::Result<()> {
    walk(dir, see, |e| e.kind() == io::ErrorKind::NotFound)
}

/// The same, passing over what fails in a way that is excused.
fn walk(
    dir: &Path,
    see: &mut dyn FnMut(&Path, &Metadata) -> io::Result<()>,
    is_excused: fn(&io::Error) -> bool,
) -> io::Result<()> {
    let mut entries = std::fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_cached_key(|entry| entry.file_name());
    for entry in entries {
        let path = entry.path();
        let seen = match entry.metadata() {
            Ok(meta) if meta.is_dir() => walk(&path, see, is_excused),
            Ok(meta) => see(&path, &meta),
            Err(e) => Err(e),
        };
        match seen {
            Err(e) if is_excused(&e) => {}
            seen => seen?,
        }
    }
    Ok(())
}

/// Writes a directory's files to the device and drops them from the page cache, as if the machine
/// had been started again.
pub fn make_cold(dir: &Path) -> io::Result<()> {
    each_file(dir, &mut |path, _| {
        let file = File::open(path)?;
        file.sync_all()?;
        Ok(rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?)
    })
}

/// Writes a directory's files to the device, so that none of their pages is dirty.
pub fn write_back(dir: &Path) -> io::Result<()> {
    each_file(dir, &mut |path, _| File::open(path)?.sync_all())
}

/// How many processors there are for us.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// The moment, as in 2011-07-22T14:05:09Z.
pub fn date() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    date_of(since.map_or(0, |d| d.as_secs()))
}

fn date_of(seconds: u64) -> String {
    let (mut day, time) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while day >= 365 + leap(year) as u64 {
        day -= 365 + leap(year) as u64;
        year += 1;
    }
    let lengths = [31, 28 + leap(year) as u64, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, day + 1)
}

/// Bytes that a directory's files occupy: blocks, so that holes cost nothing and preallocation does. What cannot be looked at is
/// not counted, and all else is.
pub fn disk_bytes(dir: &Path) -> u64 {
    let mut bytes = 0;
    let count = &mut |_: &Path, meta: &Metadata| {
        bytes += meta.blocks() * 512;
        Ok(())
    };
    // Every failure is excused but that the whole directory is not there, where nothing is.
    let _ = walk(dir, count, |_| true);
    bytes
}

/// The processor's name, or what is known of it.
pub fn cpu_name() -> String {
    let info = CpuInfo::current().ok();
    let field = |name: &str| info.as_ref()?.get_field(0, name);
    let name = field("model name").unwrap_or(std::env::consts::ARCH);
    match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => {
            format!("{name} (family {family}, model {model}), {} cores", cores())
        }
        _ => format!("{name}, {} cores", cores()),
    }
}

/// How many KiB the kernel reads ahead on the device that holds `path`: what a random read through a
/// mapping costs when it is not in memory, unless an engine asks otherwise.
pub fn read_ahead_kib(path: &Path) -> Option<u64> {
    let device = std::fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let base = format!("/sys/dev/block/{major}:{minor}");
    // A partition has its queue at the disk it is a part of.
    let read = |queue: &str| std::fs::read_to_string(format!("{base}/{queue}/read_ahead_kb")).ok();
    read("queue").or_else(|| read("../queue"))?.trim().parse().ok()
}

/// The kernel's release.
pub fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

/// Dies with the parent, so that a killed benchmark leaves no child behind.
pub fn die_with_parent() {
    use rustix::process::{Signal, set_parent_process_death_signal};
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// Lets this thread's sleeps end within microseconds; the default slack of 50 µs is half the
/// distance of two throttled writes.
pub fn precise_sleeps() {
    // Refused at worst; then the paced rows show the slack in their latencies.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1000));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date_of(0), "1970-01-01T00:00:00Z");
        assert_eq!(date_of(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(date_of(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date_of(1_311_343_509), "2011-07-22T14:05:09Z");
        assert_eq!(date_of(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(date_of(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn a_directory_that_cannot_be_read_keeps_no_other_from_being_counted() {
        use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
        let dir = tempfile::tempdir().unwrap();
        let name = "a".repeat(255);
        let mut at = open(dir.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        // Its path is longer than the system takes: nobody can read it by that, whatever his rights.
        for _ in 0..20 {
            mkdirat(&at, &name, Mode::RWXU).unwrap();
            at = openat(&at, &name, OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        std::fs::write(dir.path().join("b"), vec![1; 100_000]).unwrap();
        assert!(disk_bytes(dir.path()) >= 100_000);
    }

    #[test]
    fn what_was_deleted_before_the_device_had_it_was_not_written() {
        let io = Process::myself().unwrap().io().unwrap();
        assert_eq!(written(&Io { write_bytes: 16384, cancelled_write_bytes: 12288, ..io }), 4096);
        assert_eq!(written(&Io { write_bytes: 4096, cancelled_write_bytes: 12288, ..io }), 0);
    }

    #[test]
    fn usage_counts_this_process() {
        let before = Usage::now();
        let start = std::time::Instant::now();
        while Usage::now().since(before).cpu_s < 0.02 && start.elapsed().as_secs() < 20 {
            std::hint::spin_loop();
        }
        assert!(Usage::now().since(before).cpu_s >= 0.02);
    }
}
