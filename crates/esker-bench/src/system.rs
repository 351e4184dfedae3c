//! What the operating system tells: processor time, disk, the machine.

use serde::{Deserialize, Serialize};
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
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let [written_bytes, read_bytes] = device_bytes(&io);
        Usage { cpu_s: cpu_seconds(), written_bytes, read_bytes }
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

/// Bytes written and read, of `/proc/self/io`. The kernel counts a page as written when it becomes dirty, and counts apart
/// those of files that were cut off or deleted before the device had them.
fn device_bytes(io: &str) -> [u64; 2] {
    let field = |name: &str| {
        let line = io.lines().find_map(|l| l.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0u64)
    };
    let written = field("write_bytes:").saturating_sub(field("cancelled_write_bytes:"));
    [written, field("read_bytes:")]
}

/// Processor time of all threads, those that ended included.
fn cpu_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let at = clock_gettime(ClockId::ProcessCPUTime);
    at.tv_sec as f64 + at.tv_nsec as f64 / 1e9
}

/// Bytes free, to us, on the file system that holds `dir`.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

/// Writes a directory's files to the device and drops them from the page cache, as if the machine
/// had been started again.
pub fn make_cold(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.metadata()?.is_dir() {
            make_cold(&entry.path())?;
            continue;
        }
        let file = std::fs::File::open(entry.path())?;
        file.sync_all()?;
        #[cfg(target_os = "linux")]
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

/// Writes a directory's files to the device, so that none of their pages is dirty.
pub fn write_back(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            write_back(&entry.path())?;
            continue;
        }
        match std::fs::File::open(entry.path()) {
            Ok(file) => file.sync_all()?,
            // A file that an engine deleted meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
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

/// Bytes that a directory's files occupy: blocks, so that holes cost nothing and preallocation does.
pub fn disk_bytes(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let mut bytes = 0;
    for entry in entries.flatten() {
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes += disk_bytes(&entry.path()),
            Ok(meta) => bytes += std::os::unix::fs::MetadataExt::blocks(&meta) * 512,
            // A file that an engine deleted meanwhile.
            Err(_) => {}
        }
    }
    bytes
}

/// The processor's name, or what is known of it.
pub fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|l| l.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let name = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_string());
    match (field("cpu family"), field("model\t")) {
        (Some(family), Some(model)) => {
            format!("{name} (family {family}, model {model}), {cores} cores")
        }
        _ => format!("{name}, {cores} cores"),
    }
}

/// How many KiB the kernel reads ahead on the device that holds `path`: what a random read through a
/// mapping costs when it is not in memory, unless an engine asks otherwise.
pub fn read_ahead_kib(path: &Path) -> Option<u64> {
    let device = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).ok()?);
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
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

/// Lets this thread's sleeps end within microseconds; the default slack of 50 µs is half the
/// distance of two throttled writes.
pub fn precise_sleeps() {
    #[cfg(target_os = "linux")]
    {
        // Refused at worst; then the paced rows show the slack in their latencies.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1000));
    }
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
    fn what_was_deleted_before_the_device_had_it_was_not_written() {
        let io = "rchar: 1\nwchar: 9\nread_bytes: 8192\nwrite_bytes: 16384\ncancelled_write_bytes: 12288\n";
        assert_eq!(device_bytes(io), [4096, 8192]);
        assert_eq!(device_bytes(""), [0, 0], "where the system does not tell");
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
