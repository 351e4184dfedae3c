//! Bringing the machine to rest between two engines: what one has written and not yet on the device is not to be written while
//! the next is measured.

use procfs::{Current, Meminfo};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// Pages that wait to be written are few below this: a machine has some at all times.
const FEW_BYTES: u64 = 16 << 20;
/// The shortest wait on a machine that does not come to rest.
const PATIENCE_MIN: Duration = Duration::from_millis(50);

/// Waits, and how that went.
#[derive(Debug)]
pub struct Rest {
    most: Duration,
    patience: Patience,
}

impl Rest {
    /// Waits so long at most.
    pub fn new(most: Duration) -> Self {
        Rest { most, patience: Patience(most) }
    }
    /// Writes what the file system of `root` owes the device and waits until the whole machine owes little; whether it came to
    /// rest.
    pub fn bring(&mut self, root: &Path) -> bool {
        if let Ok(dir) = File::open(root) {
            // What cannot be written shows in the wait.
            let _ = rustix::fs::syncfs(&dir);
        }
        let came = wait(self.patience.0, pages_to_write);
        self.patience = self.patience.after(came, self.most);
        came
    }
}

/// How long to wait. Where others write all the time, waiting for them in vain before every case would take hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Patience(Duration);

impl Patience {
    fn after(self, came: bool, most: Duration) -> Patience {
        let next = if came { self.0 * 2 } else { self.0 / 2 };
        Patience(next.clamp(PATIENCE_MIN.min(most), most))
    }
}

fn wait(patience: Duration, to_write: impl Fn() -> Option<u64>) -> bool {
    let end = Instant::now() + patience;
    loop {
        // Where nobody says how many there are, the sync has to do.
        if to_write().is_none_or(|bytes| bytes <= FEW_BYTES) {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Bytes of the page cache that are not on their devices yet.
fn pages_to_write() -> Option<u64> {
    let memory = Meminfo::current().ok()?;
    Some(memory.dirty + memory.writeback)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn it_waits_until_little_is_left_and_no_longer_than_it_has_patience() {
        let left = Cell::new(40u64 << 20);
        let falling = || Some(left.replace(left.get().saturating_sub(8 << 20)));
        assert!(wait(Duration::from_secs(60), falling));
        assert!(left.get() <= FEW_BYTES);
        assert!(!wait(Duration::from_millis(30), || Some(1 << 30)));
        assert!(wait(Duration::ZERO, || None));
    }

    #[test]
    fn patience_goes_where_waiting_is_in_vain_and_comes_back() {
        let most = Duration::from_secs(4);
        let mut patience = Patience(most);
        for _ in 0..10 {
            patience = patience.after(false, most);
        }
        assert_eq!(patience, Patience(PATIENCE_MIN));
        for _ in 0..10 {
            patience = patience.after(true, most);
        }
        assert_eq!(patience, Patience(most));
    }

    #[test]
    fn the_kernel_says_how_much_is_to_be_written() {
        assert!(pages_to_write().is_some_and(|bytes| bytes < 1 << 50));
    }
}
