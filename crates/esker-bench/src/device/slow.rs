//! The library that makes a device slower (`shim/device.c`): put before a process, and asked from inside it.

use crate::engines::shim::DEVICE;
use anyhow::{Context, Result};
use std::process::Command;
use std::sync::OnceLock;

/// Where the library looks for the delay.
const DELAY: &str = "ESKER_BENCH_SYNC_DELAY_US";
const PRELOAD: &str = "LD_PRELOAD";

/// Makes waits of a process that is to be started take so many milliseconds more.
///
/// # Errors
/// No library can be compiled here, or preloaded.
pub fn apply(command: &mut Command, delay_ms: f64) -> Result<()> {
    if delay_ms <= 0.0 {
        return Ok(());
    }
    let mut preload = DEVICE.made().context("--sync-delay")?.into_os_string();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    command.env(PRELOAD, preload).env(DELAY, format!("{:.0}", delay_ms * 1000.0));
    Ok(())
}

/// What it means for whoever reads a result.
pub fn words(delay_ms: f64) -> Option<String> {
    (delay_ms > 0.0).then(|| format!("each wait for the device made {delay_ms} ms longer"))
}

/// How many waits of this process were made longer; `None` where none is.
pub fn waits() -> Option<u64> {
    static COUNT: OnceLock<Option<unsafe extern "C" fn() -> u64>> = OnceLock::new();
    let find = || {
        let process = libloading::os::unix::Library::this();
        // SAFETY: the name is that of the one function of `device.c`, whose `unsigned long` has 64 bits
        // wherever Linux programs of 64 bits run.
        let symbol = unsafe { process.get::<unsafe extern "C" fn() -> u64>(b"esker_bench_waits") };
        symbol.ok().map(|symbol| *symbol)
    };
    // SAFETY: it reads a counter; a preloaded library is never unloaded.
    (*COUNT.get_or_init(find)).map(|count| unsafe { count() })
}
