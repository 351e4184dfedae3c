//! Random changes of inputs, for the runs without libFuzzer.

use crate::util::Rng;

/// Numbers at the edges of what a field may say.
const EDGES: [u64; 14] = [
    0,
    1,
    7,
    0x7F,
    0x80,
    0xFF,
    0xFFFF,
    1 << 16,
    0x7FFF_FFFF,
    0xFFFF_FFF8,
    0xFFFF_FFFF,
    u64::MAX >> 2,
    u64::MAX - 7,
    u64::MAX,
];

/// Changes `input` in one to five ways; `other` is another input to take pieces of.
pub(super) fn mutate(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    for _ in 0..1 + rng.below(5) {
        let len = input.len();
        let at = rng.below(len);
        match rng.below(10) {
            0 | 1 if len > 0 => input[at] ^= 1 << rng.below(8),
            2 if len > 0 => input[at] = rng.next() as u8,
            3 | 4 if len > 0 => {
                let width = [1, 2, 3, 4, 8][rng.below(5)].min(len - at);
                let edge = EDGES[rng.below(EDGES.len())].to_le_bytes();
                input[at..at + width].copy_from_slice(&edge[..width]);
            }
            5 => input.truncate(at),
            6 => {
                let n = 1 + rng.below(32);
                let bytes: Vec<u8> = (0..n).map(|_| rng.next() as u8).collect();
                input.splice(at..at, bytes);
            }
            7 if len > 0 => {
                let end = (at + 1 + rng.below(64)).min(len);
                input.drain(at..end);
            }
            8 if !other.is_empty() => {
                let from = rng.below(other.len());
                let piece = &other[from..(from + 1 + rng.below(300)).min(other.len())];
                let end = if rng.below(2) == 0 { at } else { (at + piece.len()).min(len) };
                input.splice(at..end, piece.iter().copied());
            }
            _ if len > 0 => {
                let end = (at + 1 + rng.below(64)).min(len);
                let piece = input[at..end].to_vec();
                let to = rng.below(len);
                input.splice(to..to, piece);
            }
            _ => input.push(rng.next() as u8),
        }
        input.truncate(1 << 20);
    }
}
