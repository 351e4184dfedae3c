//! What systems do each in their own way: setting space aside, giving it back, and what a sync covers.

use std::fs::File;
use std::io;
use std::sync::Arc;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use linux::{allocate, punch};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) use others::{allocate, punch};

/// Has the system begin to write a range to the device, where it can be asked to; there is no safe wrapper of the call.
pub(super) fn begin_sync(file: &File, offset: u64, len: u64) {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;

        use nix::libc::{SYNC_FILE_RANGE_WRITE, sync_file_range};
        let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) else { return };
        // SAFETY: the call touches no memory of ours, and the descriptor is open as long as `file` is.
        unsafe { sync_file_range(file.as_raw_fd(), offset, len, SYNC_FILE_RANGE_WRITE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, offset, len);
}

/// The writable mappings of a file. What was written through them is data to the kernel on Linux; on
/// other systems a sync of the file need not write their pages, so that they are kept here.
#[derive(Debug, Default)]
pub(super) struct WritableMappings(
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    parking_lot::Mutex<Vec<std::sync::Weak<memmap2::MmapRaw>>>,
);

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::{Errno, retry_on_intr};

    use super::*;

    /// Sets space aside for the first `len` bytes; false where the file system cannot.
    pub fn allocate(file: &File, len: u64) -> io::Result<bool> {
        reserve(file, FallocateFlags::empty(), 0, len)
    }

    /// Gives the space of a range back; false where the file system cannot.
    pub fn punch(file: &File, offset: u64, len: u64) -> io::Result<bool> {
        reserve(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
    }

    fn reserve(file: &File, flags: FallocateFlags, offset: u64, len: u64) -> io::Result<bool> {
        match retry_on_intr(|| fallocate(file, flags, offset, len)) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    impl WritableMappings {
        pub fn note(&self, _: &Arc<memmap2::MmapRaw>) {}

        /// Makes data and length durable.
        pub fn sync(&self, file: &File) -> io::Result<()> {
            file.sync_data()
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod others {
    use std::sync::Weak;

    use super::*;

    #[cfg(not(target_vendor = "apple"))]
    pub fn allocate(_: &File, _: u64) -> io::Result<bool> {
        Ok(false)
    }

    #[cfg(not(target_vendor = "apple"))]
    pub fn punch(_: &File, _: u64, _: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Only a file without a byte of its own: the call reserves behind the end, fills no hole, and
    /// would cut a longer file.
    #[cfg(target_vendor = "apple")]
    pub fn allocate(file: &File, len: u64) -> io::Result<bool> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};
        if file.metadata()?.len() > 0 {
            return Ok(false);
        }
        match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len)) {
            Ok(()) => Ok(true),
            Err(Errno::NOTSUP | Errno::OPNOTSUPP | Errno::INVAL) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    #[cfg(target_vendor = "apple")]
    pub fn punch(file: &File, offset: u64, len: u64) -> io::Result<bool> {
        use std::os::fd::AsRawFd;

        use nix::libc::{EINVAL, ENOTSUP, ENOTTY, F_PUNCHHOLE, fcntl, fpunchhole_t, off_t};
        let range = |n: u64| off_t::try_from(n).map_err(|_| io::ErrorKind::InvalidInput);
        let hole = fpunchhole_t {
            fp_flags: 0,
            reserved: 0,
            fp_offset: range(offset)?,
            fp_length: range(len)?,
        };
        // SAFETY: the call reads `hole`, which outlives it, and touches no other memory of ours.
        if unsafe { fcntl(file.as_raw_fd(), F_PUNCHHOLE, &raw const hole) } == 0 {
            return Ok(true);
        }
        let e = io::Error::last_os_error();
        match e.raw_os_error() {
            // Also for a range that is not of whole blocks of the file system.
            Some(ENOTSUP | ENOTTY | EINVAL) => Ok(false),
            _ => Err(e),
        }
    }

    impl WritableMappings {
        pub fn note(&self, map: &Arc<memmap2::MmapRaw>) {
            let mut maps = self.0.lock();
            maps.retain(|m| m.strong_count() > 0);
            maps.push(Arc::downgrade(map));
        }

        /// Makes data and length durable: pages of mappings first, then the file. The standard
        /// library's call is `F_FULLFSYNC` on macOS, where `fdatasync` leaves data in the drive's
        /// cache.
        pub fn sync(&self, file: &File) -> io::Result<()> {
            let maps: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
            maps.iter().try_for_each(|m| m.flush())?;
            file.sync_data()
        }
    }
}
