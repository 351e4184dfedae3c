//! Memory shared with a file.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustix::mm::Advice;

#[cfg(test)]
use super::heap::HeapPages;

/// The page size assumed; on systems with larger pages some advice is refused, which harms nobody.
const PAGE: usize = 4096;

/// Advice that Linux alone has.
#[cfg(any(target_os = "linux", target_os = "android"))]
const POPULATE_WRITE: Option<Advice> = Some(Advice::LinuxPopulateWrite);
#[cfg(any(target_os = "linux", target_os = "android"))]
const POPULATE_READ: Option<Advice> = Some(Advice::LinuxPopulateRead);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const POPULATE_WRITE: Option<Advice> = None;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const POPULATE_READ: Option<Advice> = None;

/// A mapping of the start of a file. Writes through it reach the page cache at once and survive
/// the end of the process; only a sync makes them survive a power cut.
///
/// The bytes are shared: nothing here stops two writers, so the type hands out raw pointers and
/// each user states why its accesses do not race.
pub(crate) struct Map {
    ptr: *mut u8,
    len: usize,
    /// Keeps the memory alive.
    _owner: Owner,
}

enum Owner {
    Read(#[expect(dead_code, reason = "held for its drop")] memmap2::Mmap),
    Write(#[expect(dead_code, reason = "held for its drop")] Arc<memmap2::MmapRaw>),
    #[cfg(test)]
    Heap(#[expect(dead_code, reason = "held for its drop")] Arc<HeapPages>),
}

// SAFETY: the pointer is to memory owned by `_owner`, which may be used from any thread; all
// access is through unsafe code that states its own exclusion.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    pub(super) fn read_only(map: memmap2::Mmap) -> Map {
        Map { ptr: map.as_ptr().cast_mut(), len: map.len(), _owner: Owner::Read(map) }
    }

    pub(super) fn writable(map: Arc<memmap2::MmapRaw>) -> Map {
        Map { ptr: map.as_mut_ptr(), len: map.len(), _owner: Owner::Write(map) }
    }

    /// A map of the first `len` bytes of heap memory; `None` when there are fewer.
    #[cfg(test)]
    pub(crate) fn heap(pages: &Arc<HeapPages>, len: usize) -> Option<Map> {
        if len > pages.len() {
            return None;
        }
        Some(Map { ptr: pages.as_ptr(), len, _owner: Owner::Heap(Arc::clone(pages)) })
    }

    /// Length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first byte. Writing through it is allowed for writable maps only.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// All bytes.
    ///
    /// # Safety
    /// Nobody writes to the file or through another mapping of it while the slice lives. True of
    /// tables, which are complete before they are mapped and never written again.
    #[inline]
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is mapped for `len` bytes as long as `self` lives; the caller
        // excludes writers.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }

    /// A part of the bytes, `None` when it is not wholly inside.
    ///
    /// # Safety
    /// Nobody writes to this part while the slice lives. True of a log record once its frame is
    /// published: bytes before the end of the log are never written again while anyone can name
    /// them.
    #[inline]
    pub(crate) unsafe fn slice(&self, offset: usize, len: usize) -> Option<&[u8]> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: in bounds as just checked; the caller excludes writers.
        Some(unsafe { std::slice::from_raw_parts(self.ptr.add(offset), len) })
    }

    /// Tells the kernel that accesses will be random, so that a fault reads one page and not
    /// megabytes. A hint: errors are of no consequence.
    pub(crate) fn advise_random(&self) {
        self.advise(Advice::Random);
    }

    /// Faults a range in for writing: no page of it costs a fault afterwards, and all of it is
    /// dirty, so that the next sync writes it. The contents stay. For writable maps; a range that
    /// reaches beyond the map is cut. An error says only that the faults will come one by one.
    pub(crate) fn populate_write(&self, offset: usize, len: usize) -> io::Result<()> {
        if !self.is_mapping() {
            return Ok(());
        }
        let start = offset & !(PAGE - 1);
        let end = offset.saturating_add(len).min(self.len);
        if start >= end {
            return Ok(());
        }
        let advice = POPULATE_WRITE.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: the range is mapped and owned by `self`, its start is on a page boundary, and
        // this advice does not change what the memory holds.
        unsafe { rustix::mm::madvise(self.ptr.add(start).cast(), end - start, advice)? };
        Ok(())
    }

    /// Tells the kernel that the page at `offset` was used, which it does not notice by itself under
    /// [`advise_random`](Map::advise_random). For pages that are in memory: one that is not is read,
    /// but later than by a fault, as the kernel gathers requests until the call is over.
    pub(crate) fn mark_used(&self, offset: usize) -> io::Result<()> {
        let start = offset & !(PAGE - 1);
        if start >= self.len || !self.is_mapping() {
            return Ok(());
        }
        let len = PAGE.min(self.len - start);
        let advice = POPULATE_READ.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: the range is mapped and owned by `self`, its start is on a page boundary, and
        // this advice does not change what the memory holds.
        unsafe { rustix::mm::madvise(self.ptr.add(start).cast(), len, advice)? };
        Ok(())
    }

    /// Whether the memory is a mapping of a file; a test's may be plain memory.
    fn is_mapping(&self) -> bool {
        match self._owner {
            Owner::Read(_) | Owner::Write(_) => true,
            #[cfg(test)]
            Owner::Heap(_) => false,
        }
    }

    fn advise(&self, advice: Advice) {
        if self.len > 0 && self.is_mapping() {
            // SAFETY: the range is mapped and owned by `self`; this advice does not change what
            // the memory holds.
            let _ = unsafe { rustix::mm::madvise(self.ptr.cast(), self.len, advice) };
        }
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} bytes)", self.len)
    }
}
