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
