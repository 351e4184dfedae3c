//! What the store consists of: keyspaces, their sorted runs of tables, where the log starts; and
//! the manifest that makes every change of it durable.
//!
//! | module | idea |
//! |---|---|
//! | [`meta`] | what is known of one table |
//! | [`edit`] | a change, and its bytes |
//! | [`run`] | one keyspace: runs of disjoint tables, newest first, searched and changed purely |
//! | [`state`] | all keyspaces and counters; `state + edit = state` |
//! | [`record`] | framing: what a record looks like in the file, and when damage can be a crash |
//! | [`current`] | the one-line file that names the manifest in force |
//! | [`history`] | which tables came in the place of which, for repair |
//! | [`load`] | reading a manifest back, strictly or as far as it goes |
//! | [`manifest`] | appending, failing for good, starting over in a new file |

mod current;
mod edit;
mod file_bounds;
mod history;
mod load;
mod manifest;
mod meta;
mod record;
mod run;
mod state;
mod wire;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
#[cfg(test)]
pub(crate) mod script;
#[cfg(test)]
mod tests;

pub(crate) use crate::key::{SegmentRef, TableMeta};
pub(crate) use current::refuse_foreign;
pub(crate) use edit::{Change, VersionEdit};
pub(crate) use history::TableHistory;
pub(crate) use load::{Loaded, load, load_prefix, no_current};
pub(crate) use manifest::Manifest;
pub(crate) use meta::HasMeta;
#[cfg(test)]
pub(crate) use record::FORMAT;
pub(crate) use run::{KeyspaceVersion, Run};
pub(crate) use state::{Orders, State};

use crate::util::MAX_NUMBER;

/// Why an edit, a change or a version is refused. Whoever knows the file and the offset makes an
/// [`Error`](crate::Error) of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalid(String);

impl Invalid {
    pub(crate) fn new(what: impl Into<String>) -> Invalid {
        Invalid(what.into())
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
