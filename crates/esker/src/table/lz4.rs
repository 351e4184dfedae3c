//! LZ4 blocks of single values.
//!
//! Decoding is `lz4_flex`'s, and so is coding long values without a dictionary. The rest is ours,
//! because most values are short: a general coder makes and clears its hash table, and hashes the
//! whole dictionary again, for every value, which costs up to six times what a value of 100 bytes
//! does. Here the dictionary's table is made once, and the value's own table is never cleared:
//! positions keep growing from value to value, and those of earlier values are too small to be
//! taken. The format is LZ4's own: any decoder reads it, given the dictionary.

use crate::util::abbreviated_key::common_prefix;

/// log2 of the entries of the value's hash table.
const HASH_BITS: u32 = 12;
/// log2 of the entries of a dictionary's hash table: twice the positions of the longest.
const DICT_BITS: u32 = 14;
/// Shortest match.
const MIN_MATCH: usize = 4;
/// The format: the last match begins this far before the end of the value, or further,
const LAST_MATCH: usize = 12;
/// and so many bytes at the end are literals.
const LAST_LITERALS: usize = 5;
/// Matches reach back this far.
const MAX_OFFSET: usize = 65_535;
/// Longer values without a dictionary are the library's: what its table costs is little beside them.
const LONG: usize = 4096;
/// Room behind a value that is unpacked: with less the decoder copies the last bytes one by one, and of a
/// short value most bytes are the last.
const BEHIND: usize = 32;

/// A dictionary made ready for packing: 32 KiB and its bytes, which unpacking needs nothing of.
pub(super) struct Lz4Dictionary {
    bytes: Vec<u8>,
    /// Where four bytes of this hash last occur, plus 1; 0 for nowhere.
    table: Vec<u16>,
}

impl Lz4Dictionary {
    /// Only the last 64 KiB can be referred to; matches are looked for there.
    pub fn new(bytes: &[u8]) -> Lz4Dictionary {
        let mut table = vec![0; 1 << DICT_BITS];
        let near = near(bytes);
        for at in 0..(near.len() + 1).saturating_sub(MIN_MATCH) {
            table[hash(load(near, at), DICT_BITS)] = (at + 1) as u16;
        }
        Lz4Dictionary { bytes: near.to_vec(), table }
    }
}

/// What of a dictionary can be referred to.
fn near(dict: &[u8]) -> &[u8] {
    &dict[dict.len().saturating_sub(MAX_OFFSET)..]
}

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b))
}

#[inline(always)]
fn hash(four: u32, bits: u32) -> usize {
    (four.wrapping_mul(2_654_435_761) >> (32 - bits)) as usize
}

/// Packs values; keeps its hash table between them.
pub(super) struct Lz4Encoder {
    /// `base` plus where four bytes of this hash last occurred in the value that has this base.
    table: Vec<u32>,
    base: u32,
}

impl Default for Lz4Encoder {
    fn default() -> Self {
        Lz4Encoder { table: Vec::new(), base: 1 }
    }
}

impl Lz4Encoder {
    /// Appends `value` packed to `out`; false (and anything behind `out`'s end) when it would take
    /// more than `max` bytes.
    pub fn compress(
        &mut self,
        value: &[u8],
        dict: Option<&Lz4Dictionary>,
        max: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if dict.is_none() && value.len() > LONG {
            return pack_alone(value, max, out);
        }
        self.prepare(value.len());
        let limit = out.len() + max;
        let compressed = self.pack_with(value, dict, limit, out);
        // Whatever came of it: no place of this value may be taken for one of the next.
        self.base += value.len() as u32;
        compressed && out.len() <= limit
    }

    fn pack_with(
        &mut self,
        value: &[u8],
        dict: Option<&Lz4Dictionary>,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut anchor = 0;
        let mut at = 0;
        // Every 64 fruitless looks make the steps longer by one: noise is passed quickly.
        let mut looks = 64;
        while at + LAST_MATCH <= value.len() {
            let Some((distance, len, back)) = self.find(value, at, anchor, dict) else {
                at += looks >> 6;
                looks += 1;
                continue;
            };
            let start = at - back;
            put_sequence(out, &value[anchor..start], Some((distance, len)));
            at = start + len;
            anchor = at;
            looks = 64;
            if out.len() > limit {
                return false;
            }
            // A place inside the match, so that what repeats right after it is found.
            if at + LAST_MATCH <= value.len() {
                let place = at - 2;
                self.table[hash(load(value, place), HASH_BITS)] = self.base + place as u32;
            }
        }
        put_sequence(out, &value[anchor..], None);
        true
    }

    fn prepare(&mut self, len: usize) {
        if self.table.is_empty() || (self.base as usize) + len > u32::MAX as usize - 1 {
            self.table.clear();
            self.table.resize(1 << HASH_BITS, 0);
            self.base = 1;
        }
    }

    /// A match for the bytes at `at`: its distance, its length, and how far before `at` it starts
    /// (not before `anchor`).
    #[inline(always)]
    fn find(
        &mut self,
        value: &[u8],
        at: usize,
        anchor: usize,
        dict: Option<&Lz4Dictionary>,
    ) -> Option<(usize, usize, usize)> {
        let four = load(value, at);
        let place = &mut self.table[hash(four, HASH_BITS)];
        let candidate = std::mem::replace(place, self.base + at as u32);
        let end = value.len() - LAST_LITERALS;
        if candidate >= self.base {
            let from = (candidate - self.base) as usize;
            if at - from <= MAX_OFFSET && load(value, from) == four {
                let len = 4 + common_prefix(&value[at + 4..end], &value[from + 4..]);
                let from = if at - from < len { in_a_run(value, at, from, len) } else { from };
                let back = common_end(&value[anchor..at], &value[..from]);
                return Some((at - from, len + back, back));
            }
        }
        let dict = dict?;
        let from = usize::from(dict.table[hash(four, DICT_BITS)]).checked_sub(1)?;
        let distance = at + dict.bytes.len() - from;
        if distance > MAX_OFFSET || load(&dict.bytes, from) != four {
            return None;
        }
        let len = 4 + common_prefix(&value[at + 4..end], &dict.bytes[from + 4..]);
        let back = common_end(&value[anchor..at], &dict.bytes[..from]);
        Some((distance, len + back, back))
    }
}

/// Where a match at `at` that goes on into itself had better come from. One byte over and over also comes from the byte
/// before: the decoder fills that in at once, where it copies what repeats in another way byte by byte.
fn in_a_run(value: &[u8], at: usize, from: usize, len: usize) -> usize {
    let byte = value[at - 1];
    if value[at..at + len].iter().all(|b| *b == byte) { at - 1 } else { from }
}

/// Packs a value without a dictionary.
fn pack_alone(value: &[u8], max: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(value.len()), 0);
    let compressed = lz4_flex::block::compress_into(value, &mut out[start..]);
    let n = compressed.unwrap_or(usize::MAX);
    out.truncate(start.saturating_add(n));
    n <= max
}

/// Length of what `a` and `b` end with in common.
#[inline(always)]
fn common_end(a: &[u8], b: &[u8]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Literals, then a match of (distance, length).
#[inline(always)]
fn put_sequence(out: &mut Vec<u8>, literals: &[u8], copy: Option<(usize, usize)>) {
    let lit = literals.len();
    let len = copy.map_or(0, |(_, len)| len - MIN_MATCH);
    out.push((lit.min(15) << 4 | len.min(15)) as u8);
    put_rest(out, lit);
    out.extend_from_slice(literals);
    if let Some((distance, _)) = copy {
        out.extend_from_slice(&(distance as u16).to_le_bytes());
        put_rest(out, len);
    }
}

/// What a length has beyond the 15 of the token.
#[inline(always)]
fn put_rest(out: &mut Vec<u8>, len: usize) {
    if len >= 15 {
        let mut rest = len - 15;
        while rest >= 255 {
            out.push(255);
            rest -= 255;
        }
        out.push(rest as u8);
    }
}

/// Replaces `out` with the value that was packed; false when the packed bytes are not those of a value of
/// this length. By itself, so that it is compiled alike whoever calls it: inlined, it left out what it calls itself for each match.
#[inline(never)]
pub(super) fn decompress(
    compressed: &[u8],
    dict: Option<&[u8]>,
    len: usize,
    out: &mut Vec<u8>,
) -> bool {
    out.resize(len + BEHIND, 0);
    let n = match dict {
        Some(d) => lz4_flex::block::decompress_into_with_dict(compressed, out, near(d)),
        None => lz4_flex::block::decompress_into(compressed, out),
    };
    out.truncate(len);
    n.is_ok_and(|n| n == len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(value: &[u8], dict: &[u8], e: &mut Lz4Encoder) -> usize {
        let prepared = Lz4Dictionary::new(dict);
        let mut compressed = Vec::new();
        assert!(e.compress(value, Some(&prepared), usize::MAX / 2, &mut compressed));
        let mut out = vec![0xEE; 7];
        assert!(decompress(&compressed, Some(dict), value.len(), &mut out));
        assert_eq!(out, value);
        let mut alone = Vec::new();
        assert!(e.compress(value, None, usize::MAX / 2, &mut alone));
        assert!(decompress(&alone, None, value.len(), &mut out));
        assert_eq!(out, value);
        assert!(!decompress(&alone, None, value.len() + 1, &mut out));
        assert!(value.is_empty() || !decompress(&alone, None, value.len() - 1, &mut out));
        compressed.len()
    }

    #[test]
    fn another_implementation_reads_it() {
        let mut e = Lz4Encoder::default();
        let mut x = 7u64;
        let mut roll = move |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        let dict: Vec<u8> = (0..4000).map(|i| b"the quick brown fox "[i * i % 20]).collect();
        let rounds = if cfg!(miri) { 20 } else { 3000 };
        for i in 0..rounds {
            let n = roll(if i % 50 == 0 && !cfg!(miri) { 200_000 } else { 300 });
            let alphabet = 1 + roll(if i % 3 == 0 { 256 } else { 4 });
            let mut value: Vec<u8> = (0..n).map(|_| roll(alphabet) as u8).collect();
            if i % 4 == 0 && value.len() > 50 {
                let at = roll(3900) as usize;
                let n = roll(50) as usize;
                value[..n].copy_from_slice(&dict[at..at + n]);
            }
            round_trip(&value, &[], &mut e);
            round_trip(&value, &dict, &mut e);
            round_trip(&value, &dict[..roll(50) as usize], &mut e);
        }
        assert!(round_trip(&dict[100..400], &dict, &mut e) < 60);
        assert!(round_trip(&[0; 1000], &[], &mut e) < 20);
        round_trip(&[0; LONG], b"", &mut e);
        round_trip(&[0; LONG + 1], b"", &mut e);
    }

    /// The matches of a packed value: distance and length.
    fn matches(packed: &[u8]) -> Vec<(usize, usize)> {
        fn length(nibble: u8, bytes: &mut impl Iterator<Item = u8>) -> usize {
            let mut len = usize::from(nibble);
            let mut goes_on = nibble == 15;
            while goes_on {
                let more = bytes.next().unwrap();
                len += usize::from(more);
                goes_on = more == 255;
            }
            len
        }
        let mut bytes = packed.iter().copied();
        let mut found = Vec::new();
        while let Some(token) = bytes.next() {
            for _ in 0..length(token >> 4, &mut bytes) {
                bytes.next().unwrap();
            }
            let Some(low) = bytes.next() else { break };
            let distance = u16::from_le_bytes([low, bytes.next().unwrap()]);
            found.push((usize::from(distance), 4 + length(token & 15, &mut bytes)));
        }
        found
    }

    #[test]
    fn one_byte_over_and_over_comes_from_the_byte_before() {
        // The zeros in front of a number are found first, and lie two bytes and more before those behind it.
        let value = |number: u64| [&number.to_be_bytes()[..], &[0; 92]].concat();
        let dict = Lz4Dictionary::new(&value(1));
        let mut e = Lz4Encoder::default();
        for number in (0..300_000).step_by(997) {
            for dict in [None, Some(&dict)] {
                let mut packed = Vec::new();
                assert!(e.compress(&value(number), dict, 100, &mut packed));
                let slow = |&(distance, len): &(usize, usize)| distance > 1 && distance < len;
                let found = matches(&packed);
                assert!(!found.iter().any(slow), "{number}: {found:?}");
            }
            round_trip(&value(number), &value(1), &mut e);
        }
    }

    #[test]
    fn stops_when_it_does_not_pay() {
        let value: Vec<u8> = (0..=255).collect();
        let dict = Lz4Dictionary::new(b"something else");
        for dict in [None, Some(&dict)] {
            assert!(!Lz4Encoder::default().compress(&value, dict, 200, &mut Vec::new()));
        }
    }

    #[test]
    fn a_value_given_up_leaves_no_positions_to_the_next() {
        let mut e = Lz4Encoder::default();
        let dict = Lz4Dictionary::new(b"something else");
        // The first match is found far in, behind more literals than are allowed.
        let mut long: Vec<u8> = (0..40).map(|i| i * 5 + 1).collect();
        long.extend_from_within(0..20);
        assert!(!e.compress(&long, Some(&dict), 30, &mut Vec::new()));
        let short = &long[20..50];
        round_trip(short, b"something else", &mut e);
    }

    #[test]
    fn positions_start_over_before_they_overflow() {
        let mut e = Lz4Encoder::default();
        round_trip(b"some value, some value, some value", &[], &mut e);
        e.base = u32::MAX - 20;
        round_trip(b"some value, some value, some value", &[], &mut e);
        assert!(e.base < 100);
    }
}
