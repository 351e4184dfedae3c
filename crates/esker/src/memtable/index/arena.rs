//! Where nodes live: chunks that never move and are freed together with the index.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use memmap2::{MmapMut, MmapOptions};

/// A cache line; every node starts on one.
const ALIGN: usize = 64;
/// Small, because a store may have many keyspaces with a few keys each.
const FIRST_CHUNK: usize = 1 << 10;
/// From this size on a chunk is one huge page where the system has them.
const LAST_CHUNK: usize = 2 << 20;
/// From this size on a chunk is asked of the system, and goes back to it with the index. An allocator
/// would keep it: after a load as much as the indexes had taken stayed with the process.
const MAPPED: usize = 128 << 10;

/// Memory that stays where it is.
struct Chunk {
    start: NonNull<u8>,
    size: usize,
    /// What it lies in, unless it came from the allocator.
    mapping: Option<MmapMut>,
}

/// A bump allocator.
pub(super) struct Arena {
    chunks: Vec<Chunk>,
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
        let room = self.chunks.last().map_or(0, |chunk| chunk.size - self.used);
        if room < size {
            self.grow(size);
        }
        let Some(chunk) = self.chunks.last() else { unreachable!("grow adds a chunk") };
        // SAFETY: `used + size` lies within the last chunk, which `grow` made sure of.
        let place = unsafe { chunk.start.as_ptr().add(self.used) }.cast::<T>();
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
        self.chunks.push(Chunk::mapped(want).unwrap_or_else(|| Chunk::allocated(want)));
        self.used = 0;
        self.bytes += want;
    }
}

impl Chunk {
    /// A chunk in a mapping of its own; `None` when it is too small for one, or there is none.
    fn mapped(size: usize) -> Option<Chunk> {
        if size < MAPPED || cfg!(miri) {
            return None;
        }
        // Twice the size holds an aligned one; what is never touched takes no memory. The pages of a
        // smaller one come all at once, which is cheaper than one by one: most of them will be used.
        let align = if size == LAST_CHUNK { LAST_CHUNK } else { 0 };
        let mut options = MmapOptions::new();
        if align == 0 {
            options.populate();
        }
        let mut mapping = options.len(size + align).map_anon().ok()?;
        let at = if align == 0 { 0 } else { mapping.as_ptr().align_offset(align) };
        let start = NonNull::from(mapping.get_mut(at..at + size)?).cast();
        if size == LAST_CHUNK {
            use_huge_page(start, size);
        }
        Some(Chunk { start, size, mapping: Some(mapping) })
    }

    fn allocated(size: usize) -> Chunk {
        let layout = Chunk::layout(size);
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Chunk { start, size, mapping: None }
    }

    fn layout(size: usize) -> Layout {
        match Layout::from_size_align(size, ALIGN) {
            Ok(layout) => layout,
            Err(_) => unreachable!("sizes are powers of two"),
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.mapping.is_none() {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.start.as_ptr(), Chunk::layout(self.size)) };
        }
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
