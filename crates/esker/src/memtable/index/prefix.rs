//! The bytes that all keys of a node begin with.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;

use crate::util::abbreviated_key::{common_prefix, first_bytes, word_at};
use crate::util::sync::{AtomicU32, AtomicU64, atomics};

const WORDS: usize = 4;
/// So many bytes of a prefix are kept in the node; the rest of a longer one are read from a key.
pub(super) const INLINE: usize = 8 * WORDS;

/// A prefix in a node. Changes only inside the node's sequence lock.
#[repr(C)]
pub(super) struct Prefix {
    len: AtomicU32,
    words: [AtomicU64; WORDS],
}

/// A prefix in hand.
#[derive(Clone, Copy)]
pub(super) struct PrefixCopy {
    pub(super) len: usize,
    /// Big-endian, zero after `len`.
    words: [u64; WORDS],
}

impl Prefix {
    pub(super) fn new() -> Prefix {
        Prefix { len: AtomicU32::new(0), words: atomics![AtomicU64::new(0); WORDS] }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Relaxed) as usize
    }

    /// Where `key` lies, in byte order, against the keys with this prefix: `Equal` when it has the
    /// prefix itself. `any` gives one of the node's keys, for a prefix longer than fits.
    #[inline]
    pub(super) fn side<'a>(&self, key: &[u8], any: impl FnOnce() -> &'a [u8]) -> Ordering {
        let len = self.len();
        let inline = len.min(INLINE);
        let mut at = 0;
        while at < inline {
            let word = self.words[at / 8].load(Relaxed);
            let mine = word_at(key, at) & first_bytes(inline - at);
            if mine != word {
                return mine.cmp(&word);
            }
            at += 8;
        }
        if key.len() < inline {
            return Ordering::Less;
        }
        if len > INLINE { side_of_rest(key, any(), len) } else { Ordering::Equal }
    }

    pub(super) fn load(&self) -> PrefixCopy {
        PrefixCopy { len: self.len(), words: [0, 1, 2, 3].map(|i| self.words[i].load(Relaxed)) }
    }

    pub(super) fn store(&self, copy: &PrefixCopy) {
        self.len.store(copy.len as u32, Relaxed);
        for (word, &value) in self.words.iter().zip(&copy.words) {
            word.store(value, Relaxed);
        }
    }
}

/// Compares the bytes from INLINE to `len`. While a reader's node is being changed `any` may be
/// shorter than `len`; the answer is thrown away then.
#[cold]
fn side_of_rest(key: &[u8], any: &[u8], len: usize) -> Ordering {
    let end = len.min(any.len()).max(INLINE);
    let rest = any.get(INLINE..end).unwrap_or(&[]);
    key[INLINE..end.min(key.len())].cmp(rest)
}

impl PrefixCopy {
    /// The first `len` bytes of `key`.
    pub(super) fn of(key: &[u8], len: usize) -> PrefixCopy {
        debug_assert!(len <= key.len());
        let word = |i: usize| word_at(key, 8 * i) & first_bytes(len.saturating_sub(8 * i));
        PrefixCopy { len, words: [0, 1, 2, 3].map(word) }
    }

    /// How many bytes of it `key` begins with.
    pub(super) fn shared_with<'a>(&self, key: &[u8], any: impl FnOnce() -> &'a [u8]) -> usize {
        let most = self.len.min(key.len());
        if self.len > INLINE {
            return common_prefix(key, any()).min(most);
        }
        for (i, &word) in self.words.iter().enumerate() {
            let differ = (word_at(key, 8 * i) & first_bytes(self.len.saturating_sub(8 * i))) ^ word;
            if differ != 0 {
                return (8 * i + differ.leading_zeros() as usize / 8).min(most);
            }
        }
        most
    }

    /// The eight bytes from `at` on, zeros after the prefix. Only for a prefix that fits.
    fn word(&self, at: usize) -> u64 {
        let (i, shift) = (at / 8, 8 * (at % 8));
        let next = self.words.get(i + 1).copied().unwrap_or(0);
        match self.words.get(i) {
            Some(word) if shift == 0 => *word,
            Some(word) => word << shift | next >> (64 - shift),
            None => 0,
        }
    }

    /// Keeps `len` bytes. Returns a word that holds the cut-off bytes first (eight at most).
    pub(super) fn shorten<'a>(&mut self, len: usize, any: impl FnOnce() -> &'a [u8]) -> u64 {
        let cut = first_bytes(self.len - len);
        let word = if self.len > INLINE { word_at(any(), len) } else { self.word(len) };
        for (i, word) in self.words.iter_mut().enumerate() {
            *word &= first_bytes(len.saturating_sub(8 * i));
        }
        self.len = len;
        word & cut
    }
}
