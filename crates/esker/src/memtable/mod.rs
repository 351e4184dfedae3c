//! The memtable.

pub(crate) mod index;
