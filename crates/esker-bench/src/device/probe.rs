//! What a wait for the device takes when nothing else is done.

use crate::measure::{Recorder, Timing, Until};
use anyhow::Result;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes written before each wait: a small entry, with what a log adds to it.
const BYTES: usize = 128;
/// Waits of a [`probe`], and the time after which it is content with fewer.
const OPS: u64 = 200;
const LONGEST: Duration = Duration::from_millis(300);

/// A few waits in a directory, for the figure beside a row.
pub fn probe(dir: &Path) -> Result<Recorder> {
    let file = dir.join("probe");
    let recorder = fdatasync(&file, OPS, Some(Instant::now() + LONGEST));
    // Removed whatever came of it; what cannot be is removed with the directory.
    let _ = std::fs::remove_file(file);
    recorder
}

/// Writes and waits for the device, in a new file whose blocks are all there and written.
pub fn fdatasync(path: &Path, ops: u64, deadline: Option<Instant>) -> Result<Recorder> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(&vec![1; (ops as usize * BYTES).max(1 << 20)])?;
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    let mut recorder = Recorder::new(Timing::Every);
    recorder.run(Until::ops_or(ops, deadline), || {
        file.write_all(&[2; BYTES])?;
        Ok(file.sync_data()?)
    })?;
    Ok(recorder)
}
