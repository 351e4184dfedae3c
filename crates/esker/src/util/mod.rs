//! Small helpers that know nothing of the store.

mod prefetch;
pub(crate) mod sync;

pub(crate) use prefetch::prefetch;

/// A value on a cache line of its own (two, as processors fetch lines in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub T);

/// Numbers of files and runs, sizes and sequences stay at or below this, so that adding to one
/// cannot overflow. A file whose name has a higher number is none of a store's.
pub(crate) const MAX_NUMBER: u64 = u64::MAX >> 2;

/// A store whose next file has a number from here on is not opened for writing: it could not number
/// its files for long. No store comes here by making files; one damaged or made up may.
pub(crate) const MAX_NEXT_FILE: u64 = MAX_NUMBER - (1 << 40);
