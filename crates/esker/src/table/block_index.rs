//! The block index: the first key of each block, cut down to eight bytes in a dense array.
//!
//! A head is the first eight bytes of a key behind the prefix all keys of the table share, as a
//! big-endian number; under the reverse order its complement, so that heads always ascend. Equal
//! heads decide nothing: then the blocks' own first keys are asked. A custom order has no heads.

use std::cmp::Ordering;

use super::memory;
use crate::key::KeyOrder;
use crate::util::abbreviated_key::Heads;
use crate::util::prefetch;

/// The block index of an open table, in its mapping.
pub(super) struct BlockIndex {
    heads: *const u8,
    pages: *const u8,
    /// Number of blocks, at least 1.
    pub blocks: u32,
    /// What all keys of the table begin with.
    pub prefix: Vec<u8>,
}

// SAFETY: the pointers are to read-only memory of the table that owns this.
unsafe impl Send for BlockIndex {}
// SAFETY: as above.
unsafe impl Sync for BlockIndex {}

/// On which side of the heads a key lies, or what its own head is.
#[derive(Clone, Copy)]
enum Side {
    BeforeAll,
    AfterAll,
    At(u64),
    /// There are no heads.
    Unknown,
}

/// How far a search among the heads has come: that of the key belongs at `base`, or at one of the `len - 1` places behind it.
#[derive(Clone, Copy)]
pub(super) struct HeadSearch {
    side: Side,
    base: u32,
    len: u32,
}

impl HeadSearch {
    /// Whether there is another step to take.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.len > 1
    }
}

/// Bytes of the section.
pub(super) fn section_len(order: &KeyOrder, blocks: u32) -> u64 {
    let each = if order.equal_means_same_bytes() { 12 } else { 4 };
    u64::from(blocks) * each
}

impl BlockIndex {
    /// Checks the section (whose checksum is right) and refers to it.
    ///
    /// # Safety
    /// `section` stays mapped and unchanged as long as the result lives.
    pub unsafe fn new(
        section: &[u8],
        order: &KeyOrder,
        blocks: u32,
        data_pages: u32,
        prefix: Vec<u8>,
    ) -> Result<BlockIndex, &'static str> {
        if section.len() as u64 != section_len(order, blocks) || blocks == 0 {
            return Err("block index: length");
        }
        let (heads, pages) = section.split_at(section.len() - 4 * blocks as usize);
        let f = BlockIndex { heads: heads.as_ptr(), pages: pages.as_ptr(), blocks, prefix };
        if f.page(0) != 0 || f.page(blocks - 1) >= data_pages {
            return Err("block index: pages");
        }
        if (1..blocks).any(|i| f.page(i) <= f.page(i - 1)) {
            return Err("block index: pages out of order");
        }
        if !heads.is_empty() && (1..blocks).any(|i| f.head(i) < f.head(i - 1)) {
            return Err("block index: heads out of order");
        }
        Ok(f)
    }

    /// First page of block `i`, below `blocks`.
    #[inline(always)]
    pub fn page(&self, i: u32) -> u32 {
        debug_assert!(i < self.blocks);
        // SAFETY: `new` saw that there are so many; the caller keeps to them.
        unsafe { memory::load_u32(self.pages.add(4 * i as usize)) }
    }

    #[inline(always)]
    fn head(&self, i: u32) -> u64 {
        debug_assert!(i < self.blocks);
        // SAFETY: as for `page`.
        unsafe { memory::load_u64(self.heads.add(8 * i as usize)) }
    }

    /// Where in the section head and page of block `i` are, in bytes. (Under a custom order there is
    /// no head; its place is then that of some page.)
    pub fn places(&self, i: u32) -> [u64; 2] {
        let pages = self.pages as u64 - self.heads as u64;
        [pages / u64::from(self.blocks) * u64::from(i), pages + 4 * u64::from(i)]
    }

    /// Begins a search for a block. It goes on in [steps](BlockIndex::narrow), each of which looks at heads that were
    /// asked for before it: whoever searches several tables takes a step in each in turn.
    pub fn search(&self, order: &KeyOrder, key: &[u8]) -> HeadSearch {
        let side = match order.equal_means_same_bytes() {
            true => self.side(order, key),
            false => Side::Unknown,
        };
        let len = if matches!(side, Side::At(_)) { self.blocks } else { 0 };
        HeadSearch { side, base: 0, len }
    }

    /// A step of a search that [goes on](HeadSearch::goes_on): three comparisons. No branch depends on the data.
    pub fn narrow(&self, search: &mut HeadSearch) {
        let Side::At(head) = search.side else { return };
        for _ in 0..3 {
            if search.len <= 1 {
                break;
            }
            let half = search.len / 2;
            search.base = std::hint::select_unpredictable(
                self.head(search.base + half - 1) < head,
                search.base + half,
                search.base,
            );
            search.len -= half;
        }
        match search.goes_on() {
            true => self.prefetch_middles(search.base, search.len),
            false => prefetch(self.pages.wrapping_add(4 * search.base as usize)),
        }
    }

    /// Ends a search: the block in which the first entry at or after `key` is, or whose successor begins with it:
    /// the last one that begins before `key`. With `or_equal`, the last one that begins at or
    /// before it. 0 when there is none. `compare_first` compares the first key of a block with
    /// `key`; it is asked only where heads do not decide.
    ///
    /// A block that cannot be read compares with nothing, and the search passes it. Where what is wanted may be in
    /// one, that is the block found: unless the one before it `reaches` so far that it is there.
    pub fn found(
        &self,
        mut search: HeadSearch,
        or_equal: bool,
        compare_first: impl Fn(u32) -> Option<Ordering>,
        reaches: impl FnOnce(u32) -> bool,
    ) -> u32 {
        while search.goes_on() {
            self.narrow(&mut search);
        }
        let (mut from, mut to) = match search.side {
            Side::BeforeAll => return 0,
            Side::AfterAll => return self.blocks - 1,
            Side::Unknown => (0, self.blocks),
            Side::At(head) => {
                let from = search.base + u32::from(self.head(search.base) < head);
                (from, self.equal_to(head, from))
            }
        };
        let before = |side: Ordering| side.is_lt() || or_equal && side.is_eq();
        // The last `to` that cannot be read: on which side of it the key is, is then not known.
        let mut lost = u32::MAX;
        while from < to {
            let middle = from + (to - from) / 2;
            // The first from the middle on that can be read decides.
            match (middle..to).find_map(|i| Some((i, compare_first(i)?))) {
                Some((i, side)) if before(side) => from = i + 1,
                Some((i, _)) if i == middle => to = middle,
                _ => (to, lost) = (middle, middle),
            }
        }
        match from {
            0 => 0,
            _ if from == lost && !reaches(from - 1) => from,
            _ => from - 1,
        }
    }

    /// Whether block `i` stands here as one that begins with `key`. Of a custom order's keys nothing does.
    pub fn is_for(&self, i: u32, order: &KeyOrder, key: &[u8]) -> bool {
        let side = || self.side(order, key);
        order.is_custom() || matches!(side(), Side::At(head) if head == self.head(i))
    }

    /// The end of those that have this head, of which `from` would be the first.
    fn equal_to(&self, head: u64, from: u32) -> u32 {
        let mut to = from;
        while to < self.blocks && self.head(to) == head {
            // Equal heads are few; where they are not, leap.
            if to - from >= 8 {
                let Some(next) = head.checked_add(1) else { return self.blocks };
                let mut search = HeadSearch { side: Side::At(next), base: 0, len: self.blocks };
                while search.goes_on() {
                    self.narrow(&mut search);
                }
                return search.base + u32::from(self.head(search.base) < next);
            }
            to += 1;
        }
        to
    }

    fn side(&self, order: &KeyOrder, key: &[u8]) -> Side {
        let common = self.prefix.len().min(key.len());
        let side = key[..common].cmp(&self.prefix[..common]);
        let side = if side.is_eq() && common < self.prefix.len() { Ordering::Less } else { side };
        let side = if matches!(order, KeyOrder::Reverse) { side.reverse() } else { side };
        match side {
            Ordering::Less => Side::BeforeAll,
            Ordering::Greater => Side::AfterAll,
            Ordering::Equal => Side::At(Heads::new(order).head(key, common)),
        }
    }

    /// Asks for the heads that the first three steps of a search may look at.
    #[inline]
    pub fn prefetch(&self) {
        self.prefetch_middles(0, self.blocks);
    }

    /// The same among `len` heads from `from` on. Where they lie in few cache lines, for all of these.
    #[inline]
    fn prefetch_middles(&self, from: u32, len: u32) {
        let ask = |i: u32| prefetch(self.heads.wrapping_add(8 * i as usize));
        if len >= 64 {
            (1..8u64).for_each(|k| ask(from + (u64::from(len) * k / 8) as u32));
        } else {
            (0..len).step_by(8).for_each(|i| ask(from + i));
        }
    }
}
