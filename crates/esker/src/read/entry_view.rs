//! The entry that a cursor is on, between two of its moves.

use std::ptr::NonNull;

/// Key and value of an entry, found once: each look at them is then a look at two words, whatever the walk is over.
pub(super) struct EntryView {
    key: NonNull<[u8]>,
    value: NonNull<[u8]>,
}

// SAFETY: bytes that nobody writes to while this stands for them may be looked at from any thread.
unsafe impl Send for EntryView {}

impl EntryView {
    /// # Safety
    /// Both stay where they are, and nobody writes to them, as long as the result is asked for them.
    #[inline]
    pub(super) unsafe fn new(key: &[u8], value: &[u8]) -> EntryView {
        EntryView { key: NonNull::from(key), value: NonNull::from(value) }
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        // SAFETY: what `new` was promised.
        unsafe { self.key.as_ref() }
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        // SAFETY: what `new` was promised.
        unsafe { self.value.as_ref() }
    }
}
