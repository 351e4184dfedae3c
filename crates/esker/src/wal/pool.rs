//! Files that new segments are made from, in place of new files: overwriting one gives the file system nothing to
//! free, and nothing to find.
//!
//! Where freed blocks are discarded at once (`mount -o discard`, without a journal), removing a segment that holes were
//! punched into takes a wait for the device a hole, and the thread that does it is the one that flushes. A flush
//! retires many segments together, so as many files are kept as the log had segments at its longest.

use std::path::PathBuf;
use std::time::Duration;

/// So many files are always kept while somebody writes.
pub(super) const POOL_FILES: usize = 4;
/// More are kept for so long.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// A file that nothing needs.
#[derive(Debug)]
struct PooledFile {
    path: PathBuf,
    bytes: u64,
    since: Duration,
}

/// The files, those that were kept last at the end.
#[derive(Debug, Default)]
pub(super) struct FilePool {
    files: Vec<PooledFile>,
    /// The most segments that the log had since the pool was emptied.
    longest_log: usize,
    /// What was asked for last.
    wanted: Option<u64>,
}

impl FilePool {
    /// The log has so many segments.
    pub(super) fn note_log(&mut self, segments: usize) {
        self.longest_log = self.longest_log.max(segments);
    }

    /// A file for a segment of `bytes`: not a much larger one, which would waste its tail.
    pub(super) fn take(&mut self, bytes: u64) -> Option<(PathBuf, u64)> {
        self.wanted = Some(bytes);
        let at = self.files.iter().rposition(|f| f.bytes >= bytes && !self.is_too_large(f))?;
        let file = self.files.remove(at);
        Some((file.path, file.bytes))
    }

    /// Whether its tail would be wasted on what is wanted: it was a large batch's.
    fn is_too_large(&self, file: &PooledFile) -> bool {
        self.wanted.is_some_and(|wanted| file.bytes > wanted.saturating_mul(2))
    }

    /// Keeps a file. Returns the one that is to be removed for it, where there are enough: one that is too large, or the
    /// smallest, as of the first segments of a burst, before they grew.
    pub(super) fn keep(&mut self, path: PathBuf, bytes: u64, now: Duration) -> Option<PathBuf> {
        self.files.push(PooledFile { path, bytes, since: now });
        if self.files.len() <= self.longest_log.max(POOL_FILES) {
            return None;
        }
        let files = self.files.iter().enumerate();
        let (worst, _) = files.min_by_key(|(_, f)| (!self.is_too_large(f), f.bytes))?;
        Some(self.files.remove(worst).path)
    }

    /// A file that nobody has wanted for long, beside the last few that are not too large.
    pub(super) fn expired(&mut self, now: Duration) -> Option<PathBuf> {
        let many = self.files.len() > POOL_FILES;
        let oldest = self.files.iter().position(|f| many || self.is_too_large(f))?;
        let since = self.files[oldest].since;
        (now.saturating_sub(since) >= KEPT_FOR).then(|| self.files.remove(oldest).path)
    }

    /// Lets go of all.
    pub(super) fn empty(&mut self) -> Vec<PathBuf> {
        self.longest_log = 0;
        self.files.drain(..).map(|f| f.path).collect()
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Bytes of all.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(pool: &mut FilePool, number: u64, bytes: u64, second: u64) -> Option<PathBuf> {
        pool.keep(PathBuf::from(number.to_string()), bytes, Duration::from_secs(second))
    }

    #[test]
    fn as_many_files_are_kept_as_the_log_had_segments() {
        let mut pool = FilePool::default();
        let kept =
            |pool: &mut FilePool| (0..20).filter(|&n| keep(pool, n, 10, 0).is_none()).count();
        assert_eq!(kept(&mut pool), POOL_FILES);
        assert_eq!(pool.empty().len(), POOL_FILES);
        pool.note_log(12);
        pool.note_log(3);
        assert_eq!(kept(&mut pool), 12);
        assert_eq!((pool.len(), pool.bytes()), (12, 120));
        // A burst ago.
        pool.empty();
        assert_eq!(kept(&mut pool), POOL_FILES);
    }

    #[test]
    fn a_file_goes_that_is_small_or_that_nobody_wanted_for_long() {
        let mut pool = FilePool::default();
        pool.note_log(6);
        for n in 0..6 {
            assert_eq!(keep(&mut pool, n, 100 - n, n), None);
        }
        assert_eq!(keep(&mut pool, 6, 100, 6), Some(PathBuf::from("5")));
        assert_eq!(pool.take(200), None);
        assert_eq!(pool.take(40), None);
        assert_eq!(pool.take(100), Some((PathBuf::from("6"), 100)));
        // The one that was kept last of those that fit.
        assert_eq!(pool.take(50), Some((PathBuf::from("4"), 96)));
        assert_eq!(keep(&mut pool, 7, 100, 7), None);
        assert_eq!(pool.expired(Duration::from_secs(4)), None);
        assert_eq!(pool.expired(Duration::from_secs(5)), Some(PathBuf::from("0")));
        // The last few stay.
        assert_eq!(pool.expired(Duration::from_secs(500)), None);
        assert_eq!(pool.len(), POOL_FILES);
    }

    /// Four batches of hundreds of megabytes took all places: each file of the usual size was the smallest, and removed.
    #[test]
    fn files_of_large_batches_stayed_for_good() {
        let mut pool = FilePool::default();
        assert_eq!(pool.take(1000), None);
        for n in 0..4 {
            assert_eq!(keep(&mut pool, n, 1000, 0), None);
        }
        assert_eq!(pool.take(10), None);
        assert_eq!(keep(&mut pool, 4, 10, 1), Some(PathBuf::from("0")));
        assert_eq!(pool.expired(Duration::from_secs(4)), None);
        for n in 1..4 {
            let expired = pool.expired(Duration::from_secs(5 + n));
            assert_eq!(expired, Some(PathBuf::from(n.to_string())));
        }
        assert_eq!(pool.expired(Duration::from_secs(500)), None);
        assert_eq!(pool.take(10), Some((PathBuf::from("4"), 10)));
    }
}
