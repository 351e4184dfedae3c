//! Memory primitives of the read path: loads, short comparisons and copies.

use std::cmp::Ordering;

use crate::util::abbreviated_key::first_bytes;

/// Bytes that may be read past the end of any record: the file's footer lies behind the last
/// block and is longer than this, so a 16-byte load that starts inside a block stays mapped.
pub(super) const SLACK: usize = 16;

/// A little-endian `u16`.
///
/// # Safety
/// Two bytes from `p` on are readable.
#[inline(always)]
pub(super) unsafe fn load_u16(p: *const u8) -> u16 {
    // SAFETY: the caller's promise; the read needs no alignment.
    u16::from_le(unsafe { p.cast::<u16>().read_unaligned() })
}

/// A little-endian `u32`.
///
/// # Safety
/// Four bytes from `p` on are readable.
#[inline(always)]
pub(super) unsafe fn load_u32(p: *const u8) -> u32 {
    // SAFETY: the caller's promise; the read needs no alignment.
    u32::from_le(unsafe { p.cast::<u32>().read_unaligned() })
}

/// A little-endian `u64`.
///
/// # Safety
/// Eight bytes from `p` on are readable.
#[inline(always)]
pub(super) unsafe fn load_u64(p: *const u8) -> u64 {
    // SAFETY: the caller's promise; the read needs no alignment.
    u64::from_le(unsafe { p.cast::<u64>().read_unaligned() })
}

/// The first word of table memory as [`word_at`](crate::util::abbreviated_key::word_at) gives it, without a branch per length.
///
/// # Safety
/// `len` bytes from `p` on are readable and [`SLACK`] more.
#[inline(always)]
pub(super) unsafe fn head_at(p: *const u8, len: usize) -> u64 {
    // SAFETY: eight bytes are within the slack.
    let all = u64::from_be_bytes(unsafe { p.cast::<[u8; 8]>().read_unaligned() });
    all & first_bytes(len)
}

/// Whether two strings are equal. Keys are short: two overlapping loads beat a call of `memcmp`.
#[inline(always)]
pub(super) fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let n = a.len();
    if n > 16 {
        return a == b;
    }
    let (a, b) = (a.as_ptr(), b.as_ptr());
    // SAFETY: every load lies within the first `n` bytes of its string.
    unsafe {
        if n >= 8 {
            let first = load_u64(a) ^ load_u64(b);
            let last = load_u64(a.add(n - 8)) ^ load_u64(b.add(n - 8));
            (first | last) == 0
        } else if n >= 4 {
            let first = load_u32(a) ^ load_u32(b);
            let last = load_u32(a.add(n - 4)) ^ load_u32(b.add(n - 4));
            (first | last) == 0
        } else if n >= 2 {
            let first = load_u16(a) ^ load_u16(b);
            let last = load_u16(a.add(n - 2)) ^ load_u16(b.add(n - 2));
            (first | last) == 0
        } else {
            n == 0 || *a == *b
        }
    }
}

/// Compares table bytes with a searched string whose first word is given.
///
/// # Safety
/// `len` bytes from `p` on are readable and [`SLACK`] more.
#[inline(always)]
pub(super) unsafe fn compare(p: *const u8, len: usize, with: &[u8], with_head: u64) -> Ordering {
    // SAFETY: the caller's promise.
    let here = unsafe { head_at(p, len) };
    if here != with_head {
        return here.cmp(&with_head);
    }
    if len <= 8 || with.len() <= 8 {
        // Equal heads: up to the shorter length, or up to zeros that stand for nothing, all is
        // equal; but zeros may also be bytes of their own, so the rest has to be looked at.
        // SAFETY: the caller's promise.
        return unsafe { std::slice::from_raw_parts(p, len) }.cmp(with);
    }
    // SAFETY: `len > 8`, and the caller's promise.
    unsafe { std::slice::from_raw_parts(p.add(8), len - 8) }.cmp(&with[8..])
}

/// Copies `len` bytes in steps of 16, so up to 15 bytes more are read and written.
///
/// # Safety
/// `len + SLACK` bytes are readable from `from` and writable at `to`; the two do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_over(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: each step starts below `len` (or at 0) and is within the slack.
    unsafe {
        to.cast::<[u8; 16]>().write_unaligned(from.cast::<[u8; 16]>().read_unaligned());
        let mut at = 16;
        while at < len {
            let chunk = from.add(at).cast::<[u8; 16]>().read_unaligned();
            to.add(at).cast::<[u8; 16]>().write_unaligned(chunk);
            at += 16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::abbreviated_key::word_at;

    #[test]
    fn short_comparisons_agree_with_slices() {
        // Miri takes a minute for all lengths.
        let around_words = [0, 1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 39];
        let strings: Vec<Vec<u8>> = (0..40usize)
            .filter(|n| !cfg!(miri) || around_words.contains(n))
            .flat_map(|n| {
                let zeros = vec![0; n];
                let mut last = zeros.clone();
                if let Some(b) = last.last_mut() {
                    *b = 1;
                }
                let mut first = zeros.clone();
                if let Some(b) = first.first_mut() {
                    *b = 200;
                }
                [zeros, last, first]
            })
            .collect();
        for a in &strings {
            let mut padded = a.clone();
            padded.extend([0xAA; SLACK]);
            for b in &strings {
                assert_eq!(equal(a, b), a == b);
                // SAFETY: the copy has the slack.
                let got = unsafe { compare(padded.as_ptr(), a.len(), b, word_at(b, 0)) };
                assert_eq!(got, a.cmp(b), "{a:?} {b:?}");
            }
            let mut to = vec![0; a.len() + SLACK];
            // SAFETY: both sides have the slack.
            unsafe { copy_over(padded.as_ptr(), to.as_mut_ptr(), a.len()) };
            assert_eq!(&to[..a.len()], a);
        }
    }
}
