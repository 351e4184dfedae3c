//! What another store's library gives: entries in ascending order, and what is known beside them.

use crate::error::{Error, Report, Result, shown};
use crate::merge::{Entries, Run, Tag, VALUE};

/// A source that is open.
pub struct Opened {
    /// What it has.
    pub entries: Entries,
    /// About how many, where that is known.
    pub total: Option<u64>,
    /// What is worth knowing.
    pub report: Report,
}

/// Entries as a library hands them over.
pub(crate) trait Walk {
    /// Replaces key and value with the next entry; false at the end.
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool>;
}

/// The tag of an entry that is the only one of its key.
pub(crate) const ONLY: Tag = VALUE;

/// A walk whose keys ascend by their bytes; another order, and a key that comes twice, is refused.
pub(crate) struct Ascending<W> {
    walk: W,
    key: Vec<u8>,
    value: Vec<u8>,
    last: Vec<u8>,
    begun: bool,
    /// Who speaks of what, for messages.
    whose: String,
}

impl<W: Walk + 'static> Ascending<W> {
    pub fn entries(walk: W, whose: String) -> Entries {
        let (key, value, last) = (Vec::new(), Vec::new(), Vec::new());
        Entries::new(Box::new(Ascending { walk, key, value, last, begun: false, whose }))
    }
}

impl<W: Walk> Run for Ascending<W> {
    fn advance(&mut self) -> Result<bool> {
        std::mem::swap(&mut self.key, &mut self.last);
        if !self.walk.next(&mut self.key, &mut self.value)? {
            return Ok(false);
        }
        let (key, whose) = (shown(&self.key), &self.whose);
        if self.begun && self.last == self.key {
            return Err(Error::Refused(format!(
                "{whose}: the key {key} has several values, and a keyspace has one for each key"
            )));
        }
        if self.begun && self.last > self.key {
            return Err(Error::Refused(format!(
                "{whose}: its keys are not in the order of their bytes: {key} comes behind {}; the \
                 program that made it has an order of its own",
                shown(&self.last)
            )));
        }
        self.begun = true;
        Ok(true)
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn tag(&self) -> Tag {
        ONLY
    }

    fn value(&self) -> &[u8] {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given(Vec<&'static str>);

    impl Walk for Given {
        fn next(&mut self, key: &mut Vec<u8>, _: &mut Vec<u8>) -> Result<bool> {
            if self.0.is_empty() {
                return Ok(false);
            }
            key.clear();
            key.extend(self.0.remove(0).bytes());
            Ok(true)
        }
    }

    #[test]
    fn order_and_repeats() {
        let all = |keys: &[&'static str]| -> Result<Vec<_>> {
            Ascending::entries(Given(keys.to_vec()), "x".into()).collect()
        };
        assert_eq!(all(&["", "a", "b"]).unwrap().len(), 3);
        assert!(all(&["", ""]).unwrap_err().to_string().contains("several values"));
        let error = all(&["a", "c", "b"]).unwrap_err().to_string();
        assert!(error.contains("\"b\" comes behind \"c\""), "{error}");
    }
}
