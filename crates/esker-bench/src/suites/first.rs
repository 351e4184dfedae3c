//! Only the rows that a report begins with: of the other suites those that stand for their groups, and those that Esker lost in
//! earlier runs, as they are there.

use super::{Base, Section, core, motion, ycsb};
use crate::first::{Group, LOST};
use crate::plan::Row;

pub(super) fn sections(base: &Base) -> Vec<Section> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for group in Group::ALL {
        wanted.extend(group.usual().iter().map(|names| Wanted::OfGroup(group, names[0])));
    }
    wanted.extend(LOST.map(|(suite, key)| Wanted::OfSuite(suite, key)));
    let all = [core::sections(base), ycsb::sections(base), motion::sections(base)].concat();
    // Each row in the first section that has it.
    let mut is_wanted = |row: &Row| {
        let at = wanted.iter().position(|wanted| wanted.is(row));
        at.map(|at| wanted.remove(at)).is_some()
    };
    all.into_iter().filter_map(|section| section.only(&mut is_wanted, |_| false)).collect()
}

/// A row, by what its case calls it.
enum Wanted {
    OfGroup(Group, &'static str),
    OfSuite(&'static str, &'static str),
}

impl Wanted {
    fn is(&self, row: &Row) -> bool {
        match self {
            Wanted::OfGroup(group, key) => {
                row.key == *key && Group::of(&row.suite, key) == Some(*group)
            }
            Wanted::OfSuite(suite, key) => row.key == *key && row.suite == *suite,
        }
    }
}
