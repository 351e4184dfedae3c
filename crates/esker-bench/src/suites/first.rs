//! Only the rows that a report begins with: of the other suites those that stand for their groups, as they are there.

use super::{Base, Section, core, motion, ycsb};
use crate::first::Group;
use crate::plan::Row;
use std::collections::HashSet;

pub(super) fn sections(base: &Base) -> Vec<Section> {
    let mut wanted: Vec<(Group, &str)> = Vec::new();
    for group in Group::ALL {
        wanted.extend(group.usual().iter().map(|names| (group, names[0])));
    }
    let all = [core::sections(base), ycsb::sections(base), motion::sections(base)].concat();
    all.into_iter().filter_map(|section| only(section, &mut wanted)).collect()
}

/// What is wanted of a section, and the limits of that; each row in the first section that has it.
fn only(mut section: Section, wanted: &mut Vec<(Group, &str)>) -> Option<Section> {
    let suite = section.suite;
    for case in section.cases.iter_mut().filter(|case| !case.id.is_machine()) {
        case.rows.retain(|row| {
            let is_it =
                |w: &(Group, &str)| w.1 == row.key && Group::of(suite, &row.key) == Some(w.0);
            let at = wanted.iter().position(is_it);
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
