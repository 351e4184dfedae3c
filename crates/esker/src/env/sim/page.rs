//! Pages: the unit in which dirty data reaches the device, in sectors that are whole or not.

use std::sync::Arc;

use crate::env::HeapPages;

/// The unit of the page cache, in bytes.
pub(super) const PAGE: usize = 4096;
/// What the device writes whole or not at all, in bytes.
pub(super) const SECTOR: usize = 512;

/// The bytes of a page; `None` where they are all zero. Shared between a disk and its images.
pub(super) type Page = Option<Arc<[u8; PAGE]>>;

static ZEROS: [u8; PAGE] = [0; PAGE];

/// The bytes of a page.
pub(super) fn bytes(page: &Page) -> &[u8; PAGE] {
    page.as_deref().unwrap_or(&ZEROS)
}

/// Pages needed for so many bytes.
pub(super) fn count(len: u64) -> usize {
    len.div_ceil(PAGE as u64) as usize
}

/// A copy of page `n` of memory that others may be writing to.
pub(super) fn copy(memory: &HeapPages, n: usize) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    memory.read(n * PAGE, &mut page);
    page
}

/// The page with these bytes: `old` itself when it has them.
pub(super) fn page(bytes_now: &[u8; PAGE], old: &Page) -> Page {
    if bytes(old) == bytes_now {
        old.clone()
    } else if bytes_now == &ZEROS {
        None
    } else {
        Some(Arc::new(*bytes_now))
    }
}
