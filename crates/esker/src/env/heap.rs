//! Memory that plays a file.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

/// Zeroed, page-aligned heap memory that plays a file: for simulated file systems, and for Miri,
/// which knows no file mappings. All maps of one `HeapPages` share its bytes.
#[derive(Debug)]
pub(crate) struct HeapPages {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: plain memory with no thread affinity; all access is through unsafe code that states its
// own exclusion.
unsafe impl Send for HeapPages {}
// SAFETY: as above.
unsafe impl Sync for HeapPages {}

impl HeapPages {
    /// `len` zero bytes.
    pub(crate) fn new(len: usize) -> Arc<HeapPages> {
        let layout = Self::layout(len);
        // SAFETY: the layout's size is not zero.
        let ptr = unsafe { alloc_zeroed(layout) };
        let Some(ptr) = NonNull::new(ptr) else { handle_alloc_error(layout) };
        Arc::new(HeapPages { ptr, len })
    }

    /// The first byte; valid for reads and writes of `len()` bytes while the pages live.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies from the memory, as a kernel copies from a mapped page: whoever writes to it at the
    /// same time leaves a mixture.
    ///
    /// # Panics
    /// When the range is not inside.
    pub(crate) fn read(&self, at: usize, out: &mut [u8]) {
        assert!(at.checked_add(out.len()).is_some_and(|end| end <= self.len), "out of the memory");
        // SAFETY: in bounds as just checked, and `out` is memory of the caller's own. The engine
        // reads no byte back that it writes at the same time.
        unsafe { self.ptr.as_ptr().add(at).copy_to_nonoverlapping(out.as_mut_ptr(), out.len()) }
    }

    /// Copies into the memory, as a system call that writes to a mapped file does.
    ///
    /// # Panics
    /// When the range is not inside.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        assert!(
            at.checked_add(bytes.len()).is_some_and(|end| end <= self.len),
            "out of the memory"
        );
        // SAFETY: in bounds as just checked, and `bytes` is no part of it: nobody has a slice of
        // bytes that are still to be written.
        unsafe { self.ptr.as_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    fn layout(len: usize) -> Layout {
        // One byte at least: an allocation of nothing is not allowed.
        Layout::from_size_align(len.max(1), 4096).expect("the length of a map is an isize")
    }
}

impl Drop for HeapPages {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { dealloc(self.ptr.as_ptr(), Self::layout(self.len)) }
    }
}
