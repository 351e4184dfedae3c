//! The device under the stores: what a wait for it takes, and one that is slower than it is.
//!
//! Where the machine's own answers within microseconds, rows of synced writes say nothing of machines whose
//! device does not. `--sync-delay MS` makes each wait take so much longer, for all engines and for the machine's
//! limit alike, by a library of C that is preloaded into the processes that measure.

mod probe;
mod slow;

pub use probe::{fdatasync, probe};
pub use slow::{apply, words};

use crate::engine::Unsupported;
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// What is known of the device beside a row of synced writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Microseconds of an `fdatasync` just before and after the row, in the same directory: the median.
    pub fdatasync_us: f64,
    /// How often the row's operations waited, each on average; known with a `--sync-delay` only.
    pub waits_per_op: Option<f64>,
}

/// Counts waits from now on, where there is somebody to count them.
#[derive(Debug, Clone, Copy)]
pub struct Waits(Option<u64>);

impl Waits {
    /// From here.
    pub fn count() -> Waits {
        Waits(slow::waits())
    }

    /// Those since then for each of `ops` operations.
    ///
    /// # Errors
    /// Operations that promise to wait for a device that is made slower, and never did as far as can be seen: an
    /// engine that asks the kernel itself would be measured on the device as it is.
    pub fn per_op(self, ops: u64) -> Result<Option<f64>> {
        let (Some(before), Some(now)) = (self.0, slow::waits()) else { return Ok(None) };
        if now == before {
            let why = "the engine waits for the device by calls of its own, which --sync-delay does not reach";
            return Err(Unsupported::new(why).into());
        }
        Ok(Some((now - before) as f64 / ops.max(1) as f64))
    }
}
