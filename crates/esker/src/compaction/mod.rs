//! Flushes and compactions: which tables are written anew, and the writing.
//!
//! Deciding and doing are apart. Pure, tested without files or clocks (`docs/design/compaction.md`):
//!
//! - [`picker`]: what to compact next;
//! - [`overlap`]: in which parts that share no key;
//! - [`version_filter`]: which versions of a key stay.
//!
//! The work:
//!
//! - [`background`]: the thread, and what is most urgent;
//! - [`schedule`]: asks the picker about a keyspace, and whether there is room;
//! - [`flush`]: memtables into tables;
//! - [`manual`]: a range, by the user's order;
//! - [`job`]: reads the inputs and writes the tables, with a [`dictionary`].

pub(crate) mod background;
mod dictionary;
pub(crate) mod flush;
pub(crate) mod job;
pub(crate) mod manual;
pub(crate) mod overlap;
pub(crate) mod picker;
pub(crate) mod schedule;
pub(crate) mod version_filter;

#[cfg(test)]
mod picker_tests;
#[cfg(test)]
mod simulation;
