//! Adapters of stores that are crates, one a file: each called as its own manual calls it fastest.
//! The traits are those of [`esker_bench::engine`]; the program around them is
//! `esker-bench-engines`, which `esker bench` starts for their rows.

pub mod bf_tree;
pub mod fjall;
mod gather;
pub mod libmdbx;
pub mod redb;
pub mod sled;
mod versions;
mod walk;
