//! Merging: what to merge next, and how fast.
//!
//! Deciding and doing are apart. [`picker`] and [`pacing`] are pure: they see numbers and key
//! ranges, return a plan or a duration, and are tested without files or clocks
//! (`docs/design/merging.md`).

pub(crate) mod clusters;
pub(crate) mod pacing;
pub(crate) mod picker;
pub(crate) mod pressure;
pub(crate) mod versions;
pub(crate) mod weight;

#[cfg(test)]
mod brake_tests;
#[cfg(test)]
mod pacing_tests;
#[cfg(test)]
mod pressure_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
