//! Esker for Node.js: the native part of the npm package.
//!
//! JavaScript holds stores, walks and snapshots by handles ([`handle`]). What may wait runs in the pool of libuv, and what may
//! take long in a thread of its own ([`task`]); single reads and writes run on the thread of the event loop until one of them
//! waited ([`in_place`]). Many entries go over in
//! one buffer ([`packed`]). No panic comes to Node: each function that it calls catches them.
//! `unsafe` is in [`handle`] and [`bytes`] alone.

#![cfg_attr(test, allow(dead_code, reason = "Node calls it, by what is left out of tests"))]

mod bytes;
mod error;
mod handle;
mod in_place;
mod maintenance;
mod open;
mod packed;
mod read;
mod registry;
mod snapshot;
mod store;
mod task;
mod walk;
mod write;
