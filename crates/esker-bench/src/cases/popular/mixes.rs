//! The mixes, as the benchmark's authors give them.

use crate::chains::SETTLED;
use crate::child::Ctx;

/// A mix, in percent; the rest are plain reads.
pub(super) struct Mix {
    pub(super) row: &'static str,
    pub(super) update: u64,
    /// Reads a record and writes it back.
    pub(super) modify: u64,
    pub(super) insert: u64,
    pub(super) scan: u64,
    /// Whether the latest records are the popular ones.
    pub(super) latest: bool,
}

const NONE: Mix = Mix { row: "", update: 0, modify: 0, insert: 0, scan: 0, latest: false };

/// In the order in which they are run.
pub(super) const MIXES: [Mix; 6] = [
    Mix { row: "a", update: 50, ..NONE },
    Mix { row: "b", update: 5, ..NONE },
    Mix { row: "c", ..NONE },
    Mix { row: "f", modify: 50, ..NONE },
    Mix { row: "d", insert: 5, latest: true, ..NONE },
    Mix { row: "e", insert: 5, scan: 95, ..NONE },
];

impl Mix {
    pub(super) fn writes(&self) -> bool {
        self.update + self.modify + self.insert > 0
    }

    pub(super) fn is_wanted(&self, ctx: &Ctx) -> bool {
        ctx.wants(self.row) || ctx.wants(&format!("{}{SETTLED}", self.row))
    }
}
