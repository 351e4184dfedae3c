//! The commands, one file each: its flags, its examples and what it does.

pub(crate) mod bench;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod count;
pub(crate) mod del;
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod keyspaces;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod put;
pub(crate) mod repair;
pub(crate) mod scan;
pub(crate) mod stats;
pub(crate) mod verify;
