//! What of a damaged table's entries is lost, by reason, in as few lines as one reads.
//!
//! A lost dictionary takes an entry here and there out of a table, millions of them perhaps: neither memory nor
//! report may grow with their number.

use crate::error::Finding;

/// Where the entries lost for a reason lie is told place by place up to so many places.
const PLACES: usize = 4;
/// So many reasons are told apart in one table.
const REASONS: usize = 8;

/// Entries that are lost, with none between them that is saved; or more than one such place.
struct Stretch {
    from: Vec<u8>,
    to: Vec<u8>,
    entries: u64,
    places: u64,
}

struct Reason {
    why: String,
    places: Vec<Stretch>,
}

/// The losses of one table, in the order of its keys.
#[derive(Default)]
pub(super) struct Losses {
    reasons: Vec<Reason>,
    /// The reason whose last place goes on if the next entry is lost for it too.
    open: Option<usize>,
}

impl Losses {
    /// The next entry is saved.
    pub(super) fn saved(&mut self) {
        self.open = None;
    }

    /// The next entry is lost.
    pub(super) fn lost(&mut self, key: &[u8], why: String) {
        let known = self.reasons.iter().position(|r| r.why == why);
        let at = known.unwrap_or(self.reasons.len()).min(REASONS);
        if at == self.reasons.len() {
            let why = if at < REASONS { why } else { format!("other reasons, the first: {why}") };
            self.reasons.push(Reason { why, places: Vec::new() });
        }
        let goes_on = self.open.replace(at) == Some(at);
        self.reasons[at].add(key, goes_on);
    }

    /// What to report of the table `name`.
    pub(super) fn findings(&self, name: &str) -> impl Iterator<Item = Finding> {
        let all = self.reasons.iter().flat_map(|r| r.places.iter().map(|p| (&r.why, p)));
        all.map(move |(why, place)| {
            let what = match (place.entries, place.places) {
                (1, _) => why.clone(),
                (n, 1) => format!("{why} ({n} entries)"),
                (n, places) => format!("{why} ({n} entries, in {places} places)"),
            };
            Finding::new(name, what).keys(&place.from, &place.to)
        })
    }
}

impl Reason {
    fn add(&mut self, key: &[u8], goes_on: bool) {
        if let Some(last) = self.places.last_mut().filter(|p| goes_on || p.places > 1) {
            last.places += u64::from(!goes_on);
            last.entries += 1;
            last.to = key.to_vec();
            return;
        }
        self.places.push(Stretch { from: key.to_vec(), to: key.to_vec(), entries: 1, places: 1 });
        if self.places.len() > PLACES {
            self.places = vec![Stretch {
                from: self.places[0].from.clone(),
                to: key.to_vec(),
                entries: self.places.iter().map(|p| p.entries).sum(),
                places: self.places.len() as u64,
            }];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines about a table whose entries are saved (`.`) or lost for a reason of this letter.
    fn lines(entries: impl IntoIterator<Item = char>) -> Vec<String> {
        let mut losses = Losses::default();
        for (i, c) in entries.into_iter().enumerate() {
            match c {
                '.' => losses.saved(),
                why => losses.lost(format!("{i:02}").as_bytes(), why.to_string()),
            }
        }
        losses.findings("t").map(|f| f.to_string()).collect()
    }

    #[test]
    fn a_few_places_are_told_one_by_one() {
        let told = lines("a..aaa.b.a".chars());
        assert_eq!(told.len(), 4, "{told:#?}");
        assert!(told[1].contains("a (3 entries)"), "{told:#?}");
    }

    #[test]
    fn a_lost_dictionary_was_hundreds_of_lines() {
        let told = lines("d.dd.".chars().cycle().take(500));
        assert_eq!(told.len(), 1, "{told:#?}");
        assert!(told[0].contains("d (300 entries, in 200 places)"), "{told:#?}");
    }

    #[test]
    fn reasons_without_end_are_not_told_apart() {
        let told = lines(('a'..='z').chain('a'..='b'));
        assert_eq!(told.len(), REASONS + 3, "{told:#?}");
        assert!(
            told.iter().any(|l| l.contains("other reasons, the first: i (18 entries)")),
            "{told:#?}"
        );
    }
}
