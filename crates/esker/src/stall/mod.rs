//! Write stalls: how long a write waits for flushes that do not keep up.
//!
//! [`throttle`] decides, a pure function of the debt; [`backpressure`] keeps its inputs, cheap to ask; [`delay_write`] is
//! where a write waits; [`cost`] says what bytes count for; [`readers`] says how much searches would gain from fewer sources (`docs/design/compaction.md`, `motion.md`).

pub(crate) mod backpressure;
pub(crate) mod cost;
mod delay_write;
pub(crate) mod readers;
pub(crate) mod throttle;

#[cfg(test)]
mod backpressure_tests;
#[cfg(test)]
mod slowdown_tests;
#[cfg(test)]
mod throttle_tests;
