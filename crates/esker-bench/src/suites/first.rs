//! Only the rows that a report begins with: of the other suites those that stand for their groups, and those that Esker lost in
//! earlier runs, as they are there.

use super::{Base, Section, core, motion, ycsb};
use crate::first::{Group, LOST};
use crate::plan::Row;
use std::collections::HashSet;

pub(super) fn sections(base: &Base) -> Vec<Section> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for group in Group::ALL {
        wanted.extend(group.usual().iter().map(|names| Wanted::OfGroup(group, names[0])));
    }
    wanted.extend(LOST.map(|(suite, key)| Wanted::OfSuite(suite, key)));
    let all = [core::sections(base), ycsb::sections(base), motion::sections(base)].concat();
    all.into_iter().filter_map(|section| only(section, &mut wanted)).collect()
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

/// What is wanted of a section, and the limits of that; each row in the first section that has it.
fn only(mut section: Section, wanted: &mut Vec<Wanted>) -> Option<Section> {
    for case in section.cases.iter_mut().filter(|case| !case.id.is_machine()) {
        case.rows.retain(|row| {
            let at = wanted.iter().position(|wanted| wanted.is(row));
            at.map(|at| wanted.remove(at)).is_some()
        });
    }
    let of_engines = section.cases.iter().filter(|case| !case.id.is_machine());
    let rows: Vec<&Row> = of_engines.flat_map(|case| &case.rows).collect();
    if rows.is_empty() {
        return None;
    }
    let limits: HashSet<&'static str> =
        rows.into_iter().filter_map(|row| Some(row.limit?.0)).collect();
    for case in section.cases.iter_mut().filter(|case| case.id.is_machine()) {
        case.rows.retain(|row| limits.contains(row.key.as_str()));
    }
    section.cases.retain(|case| !case.rows.is_empty());
    Some(section)
}
