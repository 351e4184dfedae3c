//! What a store must keep, whoever made it: one harness for kills and for damage.
//!
//! [`harm`] has the ways to damage files. Nothing here knows a store, Esker neither: its own tests may
//! depend on this crate.

pub mod harm;
mod rng;

pub use rng::{Rng, mix};
