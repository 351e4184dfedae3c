//! Esker: an embedded, ordered, persistent key-value store.
#![allow(dead_code, unused_imports)] // while it is being built

mod db;
mod env;
mod error;
mod key;
mod memtable;
mod options;

pub use db::*;
pub use error::{Error, Result};
pub use key::{Comparator, KeyOrder, MAX_KEY_LEN, MAX_VALUE_LEN};
pub use options::{Compression, Durability, KeyspaceOptions, Options};
