//! Reads and writes the databases of other embedded stores, for moving data to and from Esker.
//!
//! [`leveldb`] reads and writes LevelDB's own files, without its library. [`lmdb`], [`rocksdb`] and
//! [`sqlite`] read by the libraries of these stores, which are found when they are needed. Whatever is read comes as
//! [`Entries`]: keys and values in the order of their bytes, each key once, an entry at a time.
//! Nothing here knows of Esker's store: `esker import` and `esker export` join the two.
//!
//! A source is opened to be read and is never changed. What its files say of lengths and places are
//! claims, which are held against the bytes that are there before memory is taken for them.
#![deny(unsafe_code)]
#![allow(rustdoc::private_intra_doc_links)]

mod error;
mod kind;
pub mod leveldb;
#[allow(unsafe_code, reason = "calls of C")]
mod library;
#[allow(unsafe_code, reason = "calls of C")]
pub mod lmdb;
mod merge;
mod peer;
mod place;
#[allow(unsafe_code, reason = "calls of C")]
pub mod rocksdb;
mod sort;
#[allow(unsafe_code, reason = "calls of C")]
pub mod sqlite;

pub use error::{Error, Lost, Report, Result};
pub use kind::{Kind, kind_of};
pub use merge::Entries;
pub use peer::Opened;
pub use place::Place;
