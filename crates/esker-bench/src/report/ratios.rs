//! How Esker stands in every row: where it is behind first, the worst on top.

use super::format;
use super::model::{Model, Row, Section};
use super::palette;
use super::record::Record;
use super::standing::Standing;
use crate::interval::WIDE;
use crate::results::OURS;

/// How Esker stands in a row, in the order in which rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// It has no figure: failed or cannot do it.
    Without,
    Behind,
    /// Nobody can say who is first: neither a win nor a loss.
    Alike,
    First,
    /// No peer of its class has a figure.
    Alone,
}

/// A row and how Esker stands in it.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub section: &'a Section,
    pub row: &'a Row,
    pub rank: Rank,
    pub standing: Option<Standing>,
}

/// All rows, the worst on top.
pub(crate) fn places(model: &Model) -> Vec<Place<'_>> {
    let mut places: Vec<Place<'_>> = model.rows().map(|(s, row)| Place::of(s, row)).collect();
    let ratio = |p: &Place<'_>| p.standing.as_ref().map_or(f64::INFINITY, |s| s.ratio);
    places.sort_by(|a, b| a.rank.cmp(&b.rank).then(ratio(a).total_cmp(&ratio(b))));
    places
}

/// Rows that are shown apart, before all others.
const WORST: usize = 10;

/// The rows in which Esker is worst, and how many of those in which it is not first are left.
pub(crate) fn worst(model: &Model) -> (Vec<Place<'_>>, usize) {
    let mut all = places(model);
    all.retain(|place| place.rank <= Rank::Alike);
    let left = all.len().saturating_sub(WORST);
    all.truncate(WORST);
    (all, left)
}

/// What stands over them.
pub(crate) fn worst_heading(left: usize) -> String {
    let more = match left {
        0 => String::new(),
        n => format!("; it is not first in {n} more"),
    };
    format!("The rows in which Esker is worst, beside the best of all engines of its class{more}")
}

impl Rank {
    /// What rows of it have in common.
    pub fn title(self) -> &'static str {
        match self {
            Rank::Without => "Esker has no figure",
            Rank::Behind => "Another engine is first",
            Rank::Alike => "Esker and the best of the others cannot be told apart",
            Rank::First => "Esker is first",
            Rank::Alone => {
                "Not compared: no peer of the same class, or a rate that all are held to"
            }
        }
    }
}

impl<'a> Place<'a> {
    fn of(section: &'a Section, row: &'a Row) -> Place<'a> {
        let standing = row.standing();
        let rank = match &standing {
            Some(s) if s.alike() => Rank::Alike,
            Some(s) if s.ratio < 1.0 => Rank::Behind,
            Some(_) => Rank::First,
            None if row.of(OURS).and_then(Record::figure).is_some() => Rank::Alone,
            None => Rank::Without,
        };
        Place { section, row, rank, standing }
    }

    /// The row's name, and where it stands.
    pub fn name(&self) -> String {
        format!("{} ({})", self.row.name, self.section.place())
    }

    /// Esker's figure with its interval, or why there is none.
    pub fn own(&self) -> String {
        self.row.shown(OURS).unwrap_or_else(|| "not measured".to_string())
    }

    /// The best of the others, with its interval.
    pub fn theirs(&self) -> Option<String> {
        let peer = &self.standing.as_ref()?.peer;
        Some(format!("{} {}", palette::shown(peer), self.row.shown(peer)?))
    }

    /// Esker's share of the machine's limit, where the row has one.
    pub fn of_limit(&self) -> Option<String> {
        let share = self.row.of(OURS).filter(|r| r.figure().is_some())?.ratio_limit?;
        Some(match self.row.unit.more_is_better() {
            true => format::of_limit(share),
            false => format!("{} raw", format::ratio(share)),
        })
    }

    /// What there is to say of the figure: its interval where that is wide, the note, the failure.
    pub fn remark(&self) -> String {
        let mut remarks = Vec::new();
        let ours = self.row.of(OURS);
        if let Some(record) = ours {
            if let (Some(absent), Some(why)) = (record.absent(), record.reason()) {
                let named = why.starts_with(absent);
                remarks.push(if named { why.to_string() } else { format!("{absent}: {why}") });
            }
            remarks.extend(record.note.clone());
            remarks.extend(record.device());
            // What is not compared, because less is promised, and why it has it easier.
            let others = self.row.records.iter().filter(|r| r.class != record.class);
            remarks.extend(others.filter_map(|r| {
                let (class, note) = (r.class.as_deref()?, r.note.as_deref()?);
                Some(format!("{}, class {class}: {note}", palette::shown(&r.engine)))
            }));
        }
        let peer = self.standing.as_ref().and_then(|s| self.row.of(&s.peer));
        let wide = |record: &Record| {
            let width = record.width().filter(|width| *width > WIDE)?;
            Some(format!("{} {}", palette::shown(&record.engine), format::percent(width)))
        };
        let wide: Vec<String> = ours.into_iter().chain(peer).filter_map(wide).collect();
        if !wide.is_empty() {
            remarks.push(format!("unsure, repetitions differ: {}", wide.join(", ")));
        }
        remarks.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_row_comes_first() {
        let record = |engine: &str, row: &str, value: Option<f64>| Record {
            engine: engine.into(),
            row: row.into(),
            value,
            failed: value.is_none().then(|| "lost data".to_string()),
            ..Record::default()
        };
        let model = Model::new(vec![
            record(OURS, "good", Some(20.0)),
            record("lmdb", "good", Some(10.0)),
            record(OURS, "bad", Some(8.0)),
            record("lmdb", "bad", Some(10.0)),
            record(OURS, "worse", Some(5.0)),
            record("lmdb", "worse", Some(10.0)),
            record(OURS, "broken", None),
            record("lmdb", "broken", Some(10.0)),
            record(OURS, "alone", Some(1.0)),
            Record { runs: Some(vec![8.0, 9.0, 11.0]), ..record(OURS, "alike", Some(9.0)) },
            Record { runs: Some(vec![10.0, 12.0, 14.0]), ..record("lmdb", "alike", Some(12.0)) },
            Record { runs: Some(vec![8.0, 9.0, 9.5]), ..record(OURS, "behind", Some(9.0)) },
            Record { runs: Some(vec![10.0, 12.0, 14.0]), ..record("lmdb", "behind", Some(12.0)) },
        ]);
        let places = places(&model);
        let names = |list: &[&Place<'_>]| -> Vec<String> {
            list.iter().map(|p| p.row.name.clone()).collect()
        };
        let of = |rank: Rank| places.iter().filter(|p| p.rank == rank).collect::<Vec<_>>();
        assert_eq!(names(&of(Rank::Behind)), ["worse", "behind", "bad"]);
        assert_eq!(names(&of(Rank::Alike)), ["alike"], "neither a win nor a loss");
        assert_eq!(names(&of(Rank::First)), ["good"]);
        assert_eq!(names(&of(Rank::Without)), ["broken"]);
        assert_eq!(names(&of(Rank::Alone)), ["alone"]);
        assert_eq!(of(Rank::Without)[0].remark(), "failed: lost data");
        let (worst, left) = worst(&model);
        assert_eq!(
            (names(&worst.iter().collect::<Vec<_>>()), left),
            (["broken", "worse", "behind", "bad", "alike"].map(String::from).to_vec(), 0)
        );
        assert_eq!(worst[4].own(), "9/s (8/s to 11/s)");
        assert_eq!(worst[4].theirs().as_deref(), Some("LMDB 12/s (10/s to 14/s)"));
    }
}
