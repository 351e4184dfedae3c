//! Which descriptors a store's files have.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::Path;

/// Opens a file by none of the three descriptors that everybody writes to without a look. A program that has closed its standard
/// streams, as services do, gives their numbers to whatever is opened next, and its messages would go into the manifest. `/dev/null`
/// takes them first, as in SQLite and in programs of Rust.
pub(super) fn open_apart(options: &fs::OpenOptions, path: &Path) -> io::Result<fs::File> {
    let is_low = |file: &fs::File| file.as_raw_fd() <= 2;
    while let Ok(null) = fs::File::open("/dev/null")
        && is_low(&null)
    {
        let _ = null.into_raw_fd();
    }
    let file = options.open(path)?;
    // Where there is no such device, or somebody has closed a stream just now.
    if is_low(&file) { Ok(rustix::io::fcntl_dupfd_cloexec(&file, 3)?.into()) } else { Ok(file) }
}
