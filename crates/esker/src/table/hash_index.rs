//! The hash index: a hash table of 64-byte lines that answers "not here" in one cache line and
//! "here" with page and slot. It is the filter too.
//!
//! A line is 16 entries of 32 bits: fingerprint, page, slot, from the top; 0 is no entry. A key
//! belongs to the line its hash picks; what does not fit goes to the next line that has room, and
//! each full line passed on the way is marked as overflowed. The mark costs no bit: a full line
//! whose first entry is larger than its second has overflowed, one that has not keeps the smaller
//! in front.

use super::memory;

/// Entries of a line.
pub(super) const LINE: usize = 16;
/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;
/// Lines are checked against a checksum in chunks of this many bytes, each at its first touch.
pub(super) const CHUNK: usize = 4096;
/// Keys per line when it is built: fewer make misses surer to read one line, more save space.
const LOAD: usize = 12;
/// A key is found at most this many lines behind its own. Hashes that spread as they should stay within some ten;
/// keys made to fall together would make building and reading walk the whole index.
const FARTHEST: usize = 64;

/// How the 32 bits of an entry are split, and how a hash picks line and fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Number of lines; 0 when there is no index.
    pub lines: u32,
    /// Bits of the slot, the lowest.
    pub slot_bits: u8,
    /// Bits of page and slot together; the rest is fingerprint.
    pub place_bits: u8,
}

impl Geometry {
    /// For `keys` keys in slots and pages up to these, or `None` when an entry cannot hold a
    /// fingerprint beside them.
    pub fn choose(keys: usize, max_page: u32, max_slot: u32) -> Option<Geometry> {
        let bits = |max: u32| 32 - max.leading_zeros();
        let place_bits = bits(max_page) + bits(max_slot);
        if keys == 0 || place_bits > 28 {
            return None;
        }
        Some(Geometry {
            lines: u32::try_from(keys.div_ceil(LOAD)).ok()?,
            slot_bits: bits(max_slot) as u8,
            place_bits: place_bits as u8,
        })
    }

    /// Whether the numbers are ones `choose` gives.
    pub fn is_valid(&self) -> bool {
        self.place_bits <= 28 && self.slot_bits <= self.place_bits
    }

    /// The line a key belongs to.
    #[inline(always)]
    pub fn line(&self, hash: u64) -> u32 {
        ((u128::from(hash) * u128::from(self.lines)) >> 64) as u32
    }

    /// The fingerprint, in its place at the top of an entry; never 0. The line comes from the
    /// high bits of the hash, this from the low ones.
    #[inline(always)]
    pub fn fingerprint(&self, hash: u64) -> u32 {
        let shifted = (hash as u32) << self.place_bits;
        if shifted == 0 { 1 << self.place_bits } else { shifted }
    }

    /// Page and slot of an entry.
    #[inline(always)]
    pub fn place(&self, entry: u32) -> (u32, u32) {
        let place = entry & ((1 << self.place_bits) - 1);
        (place >> self.slot_bits, place & ((1 << self.slot_bits) - 1))
    }

    /// An entry.
    pub fn entry(&self, hash: u64, page: u32, slot: u32) -> u32 {
        self.fingerprint(hash) | page << self.slot_bits | slot
    }

    /// Bits of an entry that hold the fingerprint.
    #[inline(always)]
    pub fn mask(&self) -> u32 {
        u32::MAX << self.place_bits
    }

    /// Bytes of all lines.
    pub fn bytes(&self) -> usize {
        self.lines as usize * LINE_BYTES
    }

    /// Number of checked chunks.
    pub fn chunks(&self) -> usize {
        self.bytes().div_ceil(CHUNK)
    }
}

/// A key of the table being built.
#[derive(Clone, Copy)]
pub(super) struct Keyed {
    pub hash: u64,
    pub page: u32,
    pub slot: u32,
}

/// Lays the lines out, or `None` when a key would lie further than [`FARTHEST`] from its line: the table has no
/// index then, and is searched.
pub(super) fn build(keys: &[Keyed], g: &Geometry) -> Option<Vec<u8>> {
    let lines = g.lines as usize;
    let mut table = vec![0u32; lines * LINE];
    let mut used = vec![0u8; lines];
    let mut spilled = Vec::new();
    // Home lines first, so that no key is pushed out by another one's overflow.
    for k in keys {
        let line = g.line(k.hash) as usize;
        let n = used[line] as usize;
        if n < LINE {
            table[line * LINE + n] = g.entry(k.hash, k.page, k.slot);
            used[line] += 1;
        } else {
            spilled.push(*k);
        }
    }
    let mut overflowed = vec![false; lines];
    for k in spilled {
        let mut line = g.line(k.hash) as usize;
        let mut passed = 0;
        while used[line] as usize == LINE {
            if passed == FARTHEST {
                return None;
            }
            overflowed[line] = true;
            line = (line + 1) % lines;
            passed += 1;
        }
        table[line * LINE + used[line] as usize] = g.entry(k.hash, k.page, k.slot);
        used[line] += 1;
    }
    for (line, overflowed) in table.chunks_exact_mut(LINE).zip(overflowed) {
        if line[LINE - 1] != 0 && (line[0] > line[1]) != overflowed {
            line.swap(0, 1);
        }
    }
    Some(table.iter().flat_map(|e| e.to_le_bytes()).collect())
}

/// A line in memory.
#[derive(Clone, Copy)]
pub(super) struct Line(*const u8);

impl Line {
    /// # Safety
    /// 64 bytes from `p` on are readable while the line is used.
    #[inline(always)]
    pub unsafe fn new(p: *const u8) -> Line {
        Line(p)
    }

    /// Entry `i`, below 16.
    #[inline(always)]
    pub fn entry(&self, i: u32) -> u32 {
        debug_assert!(i < LINE as u32);
        // SAFETY: within the 64 bytes.
        unsafe { memory::load_u32(self.0.add(4 * (i as usize & (LINE - 1)))) }
    }

    /// Whether keys of this line may be in the next.
    #[inline(always)]
    pub fn overflowed(&self) -> bool {
        self.entry(15) != 0 && self.entry(0) > self.entry(1)
    }

    /// One bit for each entry with this fingerprint.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub fn matches(&self, fingerprint: u32, mask: u32) -> u32 {
        use std::arch::x86_64::*;
        // SAFETY: SSE2 is part of x86-64; the four loads are within the 64 bytes.
        unsafe {
            let (want, mask) = (_mm_set1_epi32(fingerprint as i32), _mm_set1_epi32(mask as i32));
            let quarter = |i: usize| {
                let entries = _mm_loadu_si128(self.0.add(16 * i).cast());
                _mm_cmpeq_epi32(_mm_and_si128(entries, mask), want)
            };
            let low = _mm_packs_epi32(quarter(0), quarter(1));
            let high = _mm_packs_epi32(quarter(2), quarter(3));
            _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32
        }
    }

    /// One bit for each entry with this fingerprint.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    #[inline(always)]
    pub fn matches(&self, fingerprint: u32, mask: u32) -> u32 {
        (0..LINE as u32).map(|i| u32::from(self.entry(i) & mask == fingerprint) << i).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(bytes: &[u8], g: &Geometry, hash: u64) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut line = g.line(hash);
        for _ in 0..g.lines {
            // SAFETY: the line is one of `bytes`.
            let l = unsafe { Line::new(bytes.as_ptr().add(line as usize * LINE_BYTES)) };
            let mut matches = l.matches(g.fingerprint(hash), g.mask());
            while matches != 0 {
                found.push(g.place(l.entry(matches.trailing_zeros())));
                matches &= matches - 1;
            }
            if !l.overflowed() {
                break;
            }
            line = (line + 1) % g.lines;
        }
        found
    }

    #[test]
    fn every_key_is_found_at_its_place() {
        let n: u64 = if cfg!(miri) { 300 } else { 30_000 };
        // Every other key shares a line with 19, so that overflow runs over several.
        let keys: Vec<Keyed> = (0..n)
            .map(|i| {
                let hash = crate::key::key_hash(&i.to_le_bytes());
                let crowd = crate::key::key_hash(&(i / 40).to_le_bytes());
                let hash = if i % 2 == 0 { hash } else { crowd & !0xffff | hash & 0xffff };
                Keyed { hash, page: (i / 40) as u32, slot: (i % 40) as u32 }
            })
            .collect();
        let g = Geometry::choose(keys.len(), (n / 40) as u32, 39).unwrap();
        let bytes = build(&keys, &g).unwrap();
        assert_eq!(bytes.len(), g.bytes());
        for k in &keys {
            assert!(find(&bytes, &g, k.hash).contains(&(k.page, k.slot)));
        }
    }

    /// Their building took time by the square of their number, and each read walked them.
    #[test]
    fn keys_made_to_fall_together_get_no_index() {
        let keys: Vec<Keyed> = (0..3000)
            .map(|i| Keyed { hash: i << 8, page: i as u32 / 40, slot: i as u32 % 40 })
            .collect();
        let g = Geometry::choose(keys.len(), 75, 39).unwrap();
        assert!(build(&keys, &g).is_none());
        assert!(build(&keys[..1000], &g).is_some(), "63 lines hold them");
    }

    #[test]
    fn too_wide_places_get_no_index() {
        assert_eq!(Geometry::choose(10, u32::MAX, 1023), None);
        assert_eq!(Geometry::choose(0, 1, 1), None);
        let g = Geometry::choose(1, 0, 0).unwrap();
        assert_eq!((g.lines, g.place_bits), (1, 0));
        assert_ne!(g.entry(0, 0, 0), 0);
    }
}
