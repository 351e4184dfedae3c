//! What a move of a cursor passes before it arrives: dead keys, by which it learns of [gaps](super::gaps).

use super::boundary::Boundary;
use super::gaps::Measuring;

/// After so many dead keys in one move a cursor asks whether they are known. It keeps the one before.
pub(super) const ASK_AFTER: u32 = if cfg!(test) { 2 } else { 4 };
/// A step is less likely to be repeated than a search: it has to pass so many times as many to be worth a measurement.
const STEP: u32 = if cfg!(test) { 1 } else { 4 };
/// So many dead keys behind a gap are worth making it longer: the front of a queue moves on by one at each pop.
pub(super) const EXTEND_AFTER: u32 = if cfg!(test) { 1 } else { 3 };
/// Of one move: a comparator that contradicts itself must not make it endless.
pub(super) const MOST_LEAPS: u32 = 10_000;

/// Where a move comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move<'k> {
    /// From before the first key, or behind the last.
    Edge,
    /// From this key.
    Search(&'k [u8]),
    /// From the entry before. Its key is not at hand.
    Step,
}

/// A place among the dead keys of a move, of which nothing was known.
pub(super) struct Learning {
    pub at: Vec<u8>,
    /// Without it the reader is one of the past.
    pub present: Option<Measuring>,
    /// Whether nobody measured at present either.
    pub unknown: bool,
}

/// The dead keys of a move.
pub(super) struct Passed<'k> {
    pub from: Move<'k>,
    pub forward: bool,
    /// Since the last leap, and before.
    pub dead: u32,
    pub before: u32,
    pub leaps: u32,
}

impl<'k> Passed<'k> {
    /// None yet, but for those of the gap where the move began, if it leapt over one.
    #[inline]
    pub fn new(from: Move<'k>, forward: bool, leapt: bool) -> Passed<'k> {
        Passed { from, forward, dead: 0, before: 0, leaps: u32::from(leapt) }
    }

    #[inline]
    pub fn step(forward: bool) -> Passed<'k> {
        Passed::new(Move::Step, forward, false)
    }

    /// One more. Whether to look up what is known: that may begin further on, and asking is not free.
    #[inline]
    pub fn one(&mut self) -> bool {
        self.dead = self.dead.saturating_add(1);
        self.dead >= ASK_AFTER - 1 && (self.dead < ASK_AFTER || self.dead.is_power_of_two())
    }

    /// Whether the walk asked what is known, or was about to.
    #[inline]
    pub fn many(&self) -> bool {
        self.dead >= ASK_AFTER - 1 || self.leaps > 0
    }

    pub fn all(&self) -> u32 {
        self.before.saturating_add(self.dead)
    }

    /// How many of a search they are worth.
    pub fn worth(&self) -> u32 {
        if self.from == Move::Step { self.all() / STEP } else { self.all() }
    }

    /// Where they begin, if that is known; `near` is one of the first of them.
    pub fn start(&self, near: &[u8]) -> Option<Boundary> {
        let key = match self.from {
            Move::Edge => {
                return Some(if self.forward { Boundary::Front } else { Boundary::Back });
            }
            Move::Search(key) => key,
            Move::Step if near.is_empty() => return None,
            Move::Step => near,
        };
        Some(self.side(key))
    }

    /// The near side of a key, from where the move comes.
    pub fn side(&self, key: &[u8]) -> Boundary {
        let key = key.to_vec();
        if self.forward { Boundary::Before(key) } else { Boundary::Behind(key) }
    }
}
