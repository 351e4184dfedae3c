//! Small helpers that know nothing of the store.

/// A value on a cache line of its own (two, as processors fetch lines in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub T);
