//! Small helpers that know nothing of the store.

pub(crate) mod abbreviated_key;
mod atomic_bits;
pub(crate) mod forks;
mod prefetch;
#[cfg(any(test, feature = "fuzzing"))]
mod rng;
pub(crate) mod sync;
mod varint;

pub(crate) use atomic_bits::AtomicBits;
pub(crate) use prefetch::prefetch;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use rng::Rng;
pub(crate) use varint::{get_varint, put_varint, varint_len};

/// What a panic says. What is no text is not dropped, as that might panic again.
pub(crate) fn panic_message(panic: Box<dyn std::any::Any + Send>) -> String {
    let panic = match panic.downcast::<String>() {
        Ok(text) => return *text,
        Err(panic) => panic,
    };
    panic.downcast::<&str>().map_or_else(
        |panic| {
            std::mem::forget(panic);
            "unknown cause".to_owned()
        },
        |text| text.to_string(),
    )
}

/// What a buffer keeps of its memory, however little is in it next.
const KEPT: usize = 1 << 20;

/// A buffer that is to hold `len` bytes next, and had far more, gives most of its memory back: a cursor that lives for
/// long may meet one large value.
#[inline]
pub(crate) fn shrink_for(buf: &mut Vec<u8>, len: usize) {
    if buf.capacity() > KEPT && len < buf.capacity() / 8 {
        buf.clear();
        buf.shrink_to(KEPT.max(len));
    }
}

/// Runs something at the end of a scope, also when that is left by a panic.
pub(crate) struct AtEnd<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A value on a cache line of its own (two, as processors fetch lines in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub T);

/// The sum of numbers that a file may have made up: it stops at the greatest there is.
pub(crate) fn sum_of(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, u64::saturating_add)
}

/// Numbers of files and runs, sizes and sequences stay at or below this, so that adding to one
/// cannot overflow. A file whose name has a higher number is none of a store's.
pub(crate) const MAX_NUMBER: u64 = u64::MAX >> 2;

/// A store whose next file has a number from here on is not opened for writing: it could not number
/// its files for long. No store comes here by making files; one damaged or made up may.
pub(crate) const MAX_NEXT_FILE: u64 = MAX_NUMBER - (1 << 40);
/// The same of the last sequence.
pub(crate) const MAX_LAST_SEQ: u64 = MAX_NUMBER - (1 << 56);
