//! Which rows come first in a report. Five groups stand for everything, and a few rows for each: two that were named here
//! before anything was measured, and the worst of the group for Esker, whichever that is; then the worst of all others. A mean of
//! all rows would hide both what is usual and what is bad, and a run of the usual rows alone what is worst: so the suite `first`
//! has those too that earlier runs lost.

/// Engines that Esker is shown beside, where they were measured.
pub(crate) const PEERS: [&str; 3] = ["lmdb", "rocksdb", "leveldb"];
/// Rows shown for a group.
pub(crate) const SHOWN: usize = 3;

/// Rows, by suite and what their case calls them, in which a run before saw Esker behind one of the peers. Whoever sees it in
/// another one adds that, and nothing goes because one run was won.
pub(crate) const LOST: [(&str, &str); 36] = [
    ("core", "fillbatch"),
    ("core", "fillbatch.settled"),
    ("core", "fill100Kseq"),
    ("core", "fill100Kseq.settled"),
    ("core", "fill100Krandom"),
    ("core", "fill100Krandom.settled"),
    ("core", "readseq"),
    ("core", "readseq.second"),
    ("core", "readreverse"),
    ("core", "readreverse.second"),
    ("core", "seekrandom"),
    ("core", "settle"),
    ("core", "disk"),
    ("core", "disk.settled"),
    ("core", "memory"),
    ("core", "memory.mapped"),
    ("core", "memory.dirty"),
    ("core", "reopen"),
    ("core", "open.killed"),
    ("ycsb", "b.settled"),
    ("ycsb", "f.settled"),
    ("motion", "queue"),
    ("motion", "queue1000"),
    ("motion", "seek10.flood"),
    ("motion", "seek50.flood"),
    ("motion", "seek10.gap"),
    ("motion", "scan.ordered"),
    ("motion", "scan.random"),
    ("motion", "reverse.random"),
    ("motion", "reverse.ordered"),
    ("motion", "seek10.overwritten"),
    ("motion", "worst_put"),
    ("motion", "p9999_put"),
    ("motion", "worst_quarter"),
    ("motion", "written_per_byte"),
    ("motion", "settle"),
];

/// Rows that ask an engine for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Reads,
    Writes,
    Scans,
    Mixed,
    Motion,
}

/// How Esker stands in a row, from bad to good.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) enum Stand {
    /// It has no figure, and another engine has.
    Nothing,
    /// So many times as fast as the best of the others.
    Behind(f64),
    /// Nobody can say who is first.
    Alike(f64),
    First(f64),
}

/// A row that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Which of the candidates.
    pub at: usize,
    /// Whether Esker is worse in none of them.
    pub is_worst: bool,
}

impl Group {
    pub const ALL: [Group; 5] =
        [Group::Reads, Group::Writes, Group::Scans, Group::Mixed, Group::Motion];

    /// Its heading.
    pub fn name(self) -> &'static str {
        match self {
            Group::Reads => "Reads",
            Group::Writes => "Writes",
            Group::Scans => "Scans",
            Group::Mixed => "Mixed",
            Group::Motion => "In motion",
        }
    }

    /// The rows that usually stand for it, the most telling first, by what their case calls them. Of the names in
    /// a list the first that was measured is meant: where a row was measured with what it leaves to be done, that one.
    pub fn usual(self) -> [&'static [&'static str]; SHOWN] {
        match self {
            Group::Reads => [
                &["readrandom.settled", "readrandom", "warm", "c"],
                &["readrandom", "cold"],
                &["readmissing.settled", "readmissing"],
            ],
            Group::Writes => [
                &["fillrandom.settled", "fillrandom", "load.settled", "load"],
                &["fillseq.settled", "fillseq"],
                &["overwrite.settled", "overwrite"],
            ],
            Group::Scans => [
                &["readseq.settled", "readseq"],
                &["seekrandom.settled", "seekrandom"],
                &["readreverse.settled", "readreverse"],
            ],
            Group::Mixed => {
                [&["readwhilewriting4", "reads"], &["a.settled", "a"], &["e.settled", "e"]]
            }
            Group::Motion => [&["read.flood"], &["overwrite"], &["scan.gap"]],
        }
    }

    /// The group of a row; none for sizes, times of opening and the like.
    pub fn of(suite: &str, key: &str) -> Option<Group> {
        let name = key.split('.').next().unwrap_or(key);
        match (suite, name) {
            ("motion", _) => Some(Group::Motion),
            ("ycsb", "c") | ("voldemort", "cold" | "warm") => Some(Group::Reads),
            ("ycsb", "a" | "b" | "d" | "e" | "f") | ("symas2014", "reads") => Some(Group::Mixed),
            (_, "readseq" | "readreverse" | "seekrandom") => Some(Group::Scans),
            (_, "load" | "overwrite" | "deleterandom") => Some(Group::Writes),
            (_, name) if name.starts_with("readwhilewriting") => Some(Group::Mixed),
            (_, name) if name.starts_with("fill") => Some(Group::Writes),
            (_, "readrandom" | "readmissing" | "readhot") => Some(Group::Reads),
            _ => None,
        }
    }

    /// Which of its rows are shown, given what each is called and how Esker stands in it: the usual ones in their order, and
    /// the worst behind them unless it is one of them. A name that is there several times means the first.
    pub fn choose(self, candidates: &[(&str, Stand)]) -> Vec<Chosen> {
        let by_stand = |a: &usize, b: &usize| {
            let (a, b) = (candidates[*a].1, candidates[*b].1);
            a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
        };
        let Some(worst) = (0..candidates.len()).min_by(by_stand) else { return Vec::new() };
        let mut shown: Vec<usize> = Vec::new();
        let measured = |name: &&str| candidates.iter().position(|(key, _)| key == name);
        for at in self.usual().iter().filter_map(|names| names.iter().find_map(measured)) {
            if !shown.contains(&at) {
                shown.push(at);
            }
        }
        // What else there is, in the order of the run, where the usual rows are few.
        for at in 0..candidates.len() {
            if shown.len() < SHOWN && !shown.contains(&at) {
                shown.push(at);
            }
        }
        if !shown.contains(&worst) {
            shown.truncate(SHOWN - 1);
            shown.push(worst);
        }
        shown.into_iter().map(|at| Chosen { at, is_worst: at == worst }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Stand::{Alike, Behind, First, Nothing};

    fn names(group: Group, candidates: &[(&str, Stand)]) -> Vec<String> {
        let shown = |c: &Chosen| {
            format!("{}{}", candidates[c.at].0, if c.is_worst { " (worst)" } else { "" })
        };
        group.choose(candidates).iter().map(shown).collect()
    }

    #[test]
    fn the_usual_rows_come_first_and_the_worst_is_always_there() {
        let candidates = [
            ("fillbatch", Behind(0.4)),
            ("fillrandom", First(3.0)),
            ("fillrandom.settled", First(1.2)),
            ("fillseq", First(1.4)),
            ("overwrite", First(2.0)),
            ("fillsync", Alike(0.1)),
        ];
        let shown = names(Group::Writes, &candidates);
        assert_eq!(shown, ["fillrandom.settled", "fillseq", "fillbatch (worst)"]);
        let shown = names(Group::Writes, &candidates[1..5]);
        assert_eq!(shown, ["fillrandom.settled (worst)", "fillseq", "overwrite"]);
    }

    #[test]
    fn a_row_without_a_figure_is_worse_than_any_and_chance_better_than_a_loss() {
        let (loss, chance, win) = (Behind(0.9), Alike(0.2), First(1.1));
        assert!(Nothing < Behind(0.0) && Behind(0.1) < loss && loss < chance && chance < win);
        let all = [("warm", loss), ("readhot", Nothing), ("c", chance), ("cold", win)];
        assert_eq!(names(Group::Reads, &all), ["warm", "cold", "readhot (worst)"]);
    }

    #[test]
    fn what_is_there_is_shown_and_nothing_where_nothing_is() {
        assert_eq!(names(Group::Mixed, &[]), [""; 0]);
        let some = [("d", First(2.0)), ("b", First(1.5)), ("f", First(4.0)), ("a", First(3.0))];
        assert_eq!(names(Group::Mixed, &some), ["a", "d", "b (worst)"]);
        // The same key in several tables: the first of them.
        let twice = [("readseq", First(2.0)), ("readseq", First(1.0)), ("readseq", First(3.0))];
        let at: Vec<usize> = Group::Scans.choose(&twice).iter().map(|c| c.at).collect();
        assert_eq!(at, [0, 1, 2]);
    }

    #[test]
    fn every_usual_row_is_of_its_group() {
        for group in Group::ALL {
            for name in group.usual().concat() {
                let suites = ["core", "ycsb", "voldemort", "symas2014", "motion"];
                assert!(suites.iter().any(|s| Group::of(s, name) == Some(group)), "{name}");
            }
        }
        assert_eq!(Group::of("core", "readwhilewriting4"), Some(Group::Mixed));
        assert_eq!(Group::of("core", "readrandom.limited"), Some(Group::Reads));
        for name in ["disk", "settle", "memory", "reopen", "limit.copy", "writes"] {
            assert_eq!(Group::of("core", name), None, "{name}");
        }
    }
}
