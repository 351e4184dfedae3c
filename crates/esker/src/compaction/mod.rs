//! Flushes and compactions: which tables are written anew, and the writing.
//!
//! Deciding and doing are apart. Pure, tested without files or clocks (`docs/design/compaction.md`):
//!
//! - [`picker`]: what to compact next;
//! - [`overlap`]: in which parts that share no key;
//! - [`guards`]: where tables end, so that there are such parts;
//! - [`version_filter`]: which versions of a key stay.
//!
//! The work:
//!
//! - [`background`]: the thread;
//! - [`turns`]: what is most urgent, and which keyspace is next;
//! - [`schedule`]: asks the picker about a keyspace; [`room`]: whether the disk has room for its plan, and what is done
//!   where it has none;
//! - [`flush`]: memtables into tables;
//! - [`manual`]: a range, or all that is due, by the user's order;
//! - [`job`]: reads the [`inputs`], has the [`outputs`] written, with a [`dictionary`], and installs them;
//!   [`repeats`] estimates how much of them is written over older entries.

pub(crate) mod background;
mod dictionary;
pub(crate) mod flush;
mod guards;
mod inputs;
pub(crate) mod job;
pub(crate) mod manual;
mod outputs;
pub(crate) mod overlap;
pub(crate) mod picker;
mod repeats;
mod room;
pub(crate) mod schedule;
mod turns;
pub(crate) mod version_filter;

#[cfg(test)]
mod picker_tests;
#[cfg(test)]
mod room_tests;
#[cfg(test)]
mod simulation;
