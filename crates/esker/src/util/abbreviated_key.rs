//! Abbreviated keys: eight bytes of a key, behind a prefix that all keys around it share, as a number that
//! sorts like the key. Memtables, blocks, block indexes and runs search these first; only where two are equal
//! do the keys themselves decide.

use crate::key::KeyOrder;

/// The eight bytes of `bytes` from `at` on as a big-endian number, zeros after the end.
#[inline]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
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
pub(crate) fn first_bytes(n: usize) -> u64 {
    if n >= 8 { !0 } else { !(!0 >> (8 * n)) }
}

/// Whether a key begins with these bytes. Prefixes are short: a call to compare memory costs more.
#[inline]
pub(crate) fn begins_with(key: &[u8], prefix: &[u8]) -> bool {
    let n = prefix.len();
    let Some(key) = key.get(..n) else { return false };
    let (Some(tail), Some(key_tail)) = (prefix.last_chunk::<8>(), key.last_chunk::<8>()) else {
        return key.iter().zip(prefix).all(|(a, b)| a == b);
    };
    // From the end: what is shared by chance is at the beginning. Up to sixteen bytes two words are all.
    key_tail == tail && (n <= 16 && key.first_chunk::<8>() == prefix.first_chunk() || key == prefix)
}

/// Length of what two strings begin with in common.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= n {
        let differing = u64::from_le_bytes(a[at..at + 8].try_into().unwrap_or_default())
            ^ u64::from_le_bytes(b[at..at + 8].try_into().unwrap_or_default());
        if differing != 0 {
            return at + differing.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < n && a[at] == b[at] {
        at += 1;
    }
    at
}

/// How the heads of an order are made.
///
/// Heads of different value sort as their keys do; equal heads say nothing (zeros after the end of
/// a key look like zero bytes). In the reverse order they are complemented. A custom order gives
/// every key the head 0 and shares no prefix, which leaves every decision to the comparator.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    keep: u64,
    pub(crate) flip: u64,
}

impl Heads {
    pub(crate) fn new(order: &KeyOrder) -> Heads {
        match order {
            KeyOrder::Bytewise => Heads { keep: !0, flip: 0 },
            KeyOrder::Reverse => Heads { keep: !0, flip: !0 },
            KeyOrder::Custom(_) => Heads { keep: 0, flip: 0 },
        }
    }

    /// Whether bytes say something about the order.
    #[inline]
    pub(crate) fn of_bytes(self) -> bool {
        self.keep != 0
    }

    /// The head of `key` in a node whose prefix has `prefix_len` bytes.
    #[inline]
    pub(crate) fn head(self, key: &[u8], prefix_len: usize) -> u64 {
        (word_at(key, prefix_len) & self.keep) ^ self.flip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_sort_as_keys_do_and_prefixes_are_found() {
        // Miri takes minutes for what others take no time for: fewer bytes and places, all lengths.
        let (lasts, step): (&[u8], _) =
            if cfg!(miri) { (&[0, 0xFF], 3) } else { (&[0, 1, 0x7F, 0xFF], 1) };
        let keys: Vec<Vec<u8>> = (0..20usize)
            .flat_map(|n| {
                lasts.iter().map(move |last| {
                    let mut key = vec![0xA0; n];
                    key.push(*last);
                    key
                })
            })
            .chain([Vec::new()])
            .collect();
        for a in &keys {
            for b in &keys {
                let shared = a.iter().zip(b).take_while(|(x, y)| x == y).count();
                assert_eq!(common_prefix(a, b), shared, "{a:?} {b:?}");
                assert_eq!(begins_with(a, b), a.starts_with(b), "{a:?} {b:?}");
                for at in (0..=shared).step_by(step) {
                    let heads = [KeyOrder::Bytewise, KeyOrder::Reverse].map(|order| {
                        let heads = Heads::new(&order);
                        heads.head(a, at).cmp(&heads.head(b, at))
                    });
                    assert_eq!(heads[0], heads[1].reverse());
                    assert!(heads[0].is_eq() || heads[0] == a.cmp(b), "{a:?} {b:?} from {at}");
                }
                assert!(
                    word_at(a, 99) == 0
                        && first_bytes(a.len()).count_ones() as usize == 8 * a.len().min(8)
                );
            }
        }
    }
}
