//! How an engine stands in a row: beside the best of the others that promise the same, as far as chance lets anybody say.

use super::format;
use super::model::Row;
use super::palette;
use super::record::Record;
use crate::interval::{self, ALIKE};
use crate::plan::{Bound, Unit};
use crate::results::OURS;

/// When figures of which one has no interval name nobody the first, behind when those with intervals do.
pub(crate) const OR_NEAR: &str = "or one has none and the figures reach into each other or, but for sizes of files, are within a tenth";

/// An engine beside the best of the others in its class.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// Times better than the best peer; above 1 is first.
    pub ratio: f64,
    /// What that says.
    pub bound: Bound,
    pub peer: String,
    /// Whether that is more than chance: not where their intervals overlap, or both are too small to count, or either was measured
    /// too few times for an interval and they are near each other; unknown where they are not, and it was.
    pub told_apart: Option<bool>,
}

impl Standing {
    /// Whether neither can be called better.
    pub fn alike(&self) -> bool {
        self.told_apart == Some(false)
    }

    /// The ratio, or that there is none.
    pub fn shown(&self) -> String {
        if self.alike() { ALIKE.to_string() } else { format::bounded(self.ratio, self.bound) }
    }

    /// "0.62× of LMDB".
    pub fn sentence(&self) -> String {
        let peer = palette::shown(&self.peer);
        match self.alike() {
            true => format!("Esker and {peer} {ALIKE}"),
            false => format!("Esker: {} of {peer}", self.shown()),
        }
    }
}

impl Unit {
    /// How many times better `a` is than `b`; two figures that are none are alike.
    pub(crate) fn times_better(self, a: f64, b: f64) -> f64 {
        if a == b { 1.0 } else { self.ratio(a, b) }
    }
}

impl Row {
    /// Esker beside the best peer of its class; nothing where all are held to the same rate.
    pub fn standing(&self) -> Option<Standing> {
        self.standing_among(&|_| true)
    }

    /// The same where only some of the others count.
    pub fn standing_among(&self, counts: &dyn Fn(&str) -> bool) -> Option<Standing> {
        // Sizes and times have no target either, and are compared all the same.
        let is_held = self.of(OURS)?.target == Some(0.0) && self.unit == Unit::OpsPerSecond;
        if is_held { None } else { self.beside_the_best(OURS, counts) }
    }

    /// An engine beside the best peer of its class, of those that count.
    pub fn beside_the_best(&self, engine: &str, counts: &dyn Fn(&str) -> bool) -> Option<Standing> {
        let ours = self.of(engine)?;
        let value = ours.figure()?;
        let others = self.records.iter().filter(|r| r.engine != engine && counts(&r.engine));
        let peers = others.filter(|r| r.class == ours.class);
        let peers: Vec<(f64, &Record)> = peers.filter_map(|r| Some((r.figure()?, r))).collect();
        let sign = if self.unit.more_is_better() { -1.0 } else { 1.0 };
        let best = peers.iter().min_by(|a, b| (sign * a.0).total_cmp(&(sign * b.0)));
        let &(theirs, peer) = best?;
        let ratio = self.unit.times_better(value, theirs);
        let alike = |&(theirs, peer): &(f64, &Record)| {
            let both = ours.reach().zip(peer.reach());
            let overlap = both.is_some_and(|(a, b)| !interval::apart(a, b, self.unit.least()));
            overlap || self.is_near(ours, peer, self.unit.times_better(value, theirs))
        };
        // Who is first is so beside all others; who is behind the best is that, whomever else it may be beside.
        let is_alike = alike(&(theirs, peer)) || ratio >= 1.0 && peers.iter().any(alike);
        let bound = self.unit.bound(value, theirs);
        let told_apart = match is_alike || bound == Bound::Neither {
            true => Some(false),
            false => ours.interval().and(peer.interval()).map(|_| true),
        };
        Some(Standing { ratio, bound, peer: peer.engine.clone(), told_apart })
    }

    /// Whether two figures, one of them drawn too few times for an interval, are no further apart than draws of one engine
    /// often are.
    fn is_near(&self, a: &Record, b: &Record, ratio: f64) -> bool {
        let few = a.interval().and(b.interval()).is_none();
        few && !self.repeats_itself() && (1.0 / interval::NEAR..=interval::NEAR).contains(&ratio)
    }

    /// Whether each draw comes to nearly the same: files have their sizes, where speed and memory are chance too.
    fn repeats_itself(&self) -> bool {
        self.unit == Unit::Bytes && self.key().split('.').next() == Some("disk")
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
