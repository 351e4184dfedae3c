//! Where nodes live: chunks that never move and are freed together with the index.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

/// A cache line; every node starts on one.
const ALIGN: usize = 64;
/// Small, because a store may have many keyspaces with a few keys each.
const FIRST_CHUNK: usize = 4 << 10;
/// From this size on a chunk is one huge page where the system has them.
const LAST_CHUNK: usize = 2 << 20;

/// A bump allocator.
pub(super) struct Arena {
    chunks: Vec<(NonNull<u8>, Layout)>,
    /// Bytes used of the last chunk.
    used: usize,
    bytes: usize,
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena { chunks: Vec::new(), used: 0, bytes: 0 }
    }

    /// Bytes of all chunks.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Moves `node` to a place of its own. It is freed with the arena and never dropped.
    pub(super) fn alloc<T>(&mut self, node: T) -> *const T {
        const { assert!(align_of::<T>() <= ALIGN && !std::mem::needs_drop::<T>()) };
        let size = size_of::<T>().next_multiple_of(ALIGN);
        let room = self.chunks.last().map_or(0, |(_, layout)| layout.size() - self.used);
        if room < size {
            self.grow(size);
        }
        let Some((chunk, _)) = self.chunks.last() else { unreachable!("grow adds a chunk") };
        // SAFETY: `used + size` lies within the last chunk, which `grow` made sure of.
        let place = unsafe { chunk.as_ptr().add(self.used) }.cast::<T>();
        self.used += size;
        // SAFETY: the place is aligned (chunk and sizes are multiples of ALIGN), large enough and
        // handed out to nobody else.
        unsafe { ptr::write(place, node) };
        place
    }

    /// Each chunk doubles what there is, up to the largest.
    fn grow(&mut self, size: usize) {
        let want = self.bytes.next_power_of_two().clamp(FIRST_CHUNK, LAST_CHUNK);
        assert!(size <= want);
        let align = if want == LAST_CHUNK { LAST_CHUNK } else { ALIGN };
        let Ok(layout) = Layout::from_size_align(want, align) else {
            unreachable!("sizes are powers of two")
        };
        // SAFETY: the layout is not empty.
        let chunk = unsafe { alloc(layout) };
        let Some(chunk) = NonNull::new(chunk) else { handle_alloc_error(layout) };
        if want == LAST_CHUNK {
            use_huge_page(chunk, want);
        }
        self.chunks.push((chunk, layout));
        self.used = 0;
        self.bytes += want;
    }
}

/// Asks for one page instead of 512: a descent then misses the page table's cache less often.
fn use_huge_page(chunk: NonNull<u8>, size: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is ours, and this advice leaves its contents alone. A refusal does no
        // harm.
        let _ = unsafe { madvise(chunk.as_ptr().cast(), size, Advice::LinuxHugepage) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (chunk, size);
}

impl Drop for Arena {
    fn drop(&mut self) {
        for &(chunk, layout) in &self.chunks {
            // SAFETY: allocated by `grow` with this layout.
            unsafe { dealloc(chunk.as_ptr(), layout) };
        }
    }
}
