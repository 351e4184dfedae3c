//! Eight bytes of a key as a number that sorts like the key.

use crate::key::KeyOrder;

/// The eight bytes of `bytes` from `at` on as a big-endian number, zeros after the end.
#[inline]
pub(super) fn word_at(bytes: &[u8], at: usize) -> u64 {
    let len = bytes.len();
    if let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        return u64::from_be_bytes(*word);
    }
    if at >= len {
        return 0;
    }
    if let Some(word) = bytes.last_chunk() {
        // The last eight bytes, moved up so that the byte `at` comes first.
        return u64::from_be_bytes(*word) << (8 * (at + 8 - len));
    }
    let rest = bytes[at..].iter().fold(0, |word, &b| word << 8 | u64::from(b));
    rest << (8 * (8 - (len - at)))
}

/// A mask of the first `n` bytes of a word, all of them from 8 on.
#[inline]
pub(super) fn first_bytes(n: usize) -> u64 {
    if n >= 8 { !0 } else { !(!0 >> (8 * n)) }
}

/// How many leading bytes two keys share.
pub(super) fn shared_len(a: &[u8], b: &[u8]) -> usize {
    let end = a.len().min(b.len());
    let mut at = 0;
    while at < end {
        let differ = word_at(a, at) ^ word_at(b, at);
        if differ != 0 {
            return (at + differ.leading_zeros() as usize / 8).min(end);
        }
        at += 8;
    }
    end
}

/// How the heads of an order are made.
///
/// Heads of different value sort as their keys do; equal heads say nothing (zeros after the end of
/// a key look like zero bytes). In the reverse order they are complemented. A custom order gives
/// every key the head 0 and shares no prefix, which leaves every decision to the comparator.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    keep: u64,
    pub(super) flip: u64,
}

impl Heads {
    pub(super) fn new(order: &KeyOrder) -> Heads {
        match order {
            KeyOrder::Bytewise => Heads { keep: !0, flip: 0 },
            KeyOrder::Reverse => Heads { keep: !0, flip: !0 },
            KeyOrder::Custom(_) => Heads { keep: 0, flip: 0 },
        }
    }

    /// Whether bytes say something about the order.
    #[inline]
    pub(super) fn of_bytes(self) -> bool {
        self.keep != 0
    }

    /// The head of `key` in a node whose prefix has `prefix_len` bytes.
    #[inline]
    pub(super) fn head(self, key: &[u8], prefix_len: usize) -> u64 {
        (word_at(key, prefix_len) & self.keep) ^ self.flip
    }
}
