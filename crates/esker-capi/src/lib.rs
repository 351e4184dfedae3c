//! The C interface: what `include/esker.h` declares, which is made from this crate.
//!
//! Each function checks what it is given, calls the engine, and turns what comes back into a code and,
//! where there is one, an error object. Nothing here decides anything about stores. [`ffi`] has what
//! all functions share: handles that begin with a mark, arguments that may be NULL, and the one place
//! where panics end.
//!
//! Every exported function is `unsafe`: it relies on the caller for what the head of the header says,
//! which is that pointers are NULL or point to what their types say, and that handles are used as their
//! types allow.

#![expect(non_camel_case_types, reason = "the names that C programs see")]
#![expect(
    clippy::missing_safety_doc,
    reason = "the head of the header has the rules of all functions"
)]

// In the order in which the header has them, which is that of a program: each apart, as sorting them would mix it up.
mod ffi;

pub mod error;

pub mod text;

pub mod comparator;

pub mod options;

pub mod db;

pub mod keyspace;

pub mod value;

pub mod read;

pub mod write;

pub mod batch;

pub mod snapshot;

pub mod cursor;

pub mod bulk_load;

pub mod stats;

pub mod maintenance;
