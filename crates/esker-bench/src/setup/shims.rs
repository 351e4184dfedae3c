//! The shims of engines whose C interface is methods in structs. They would be compiled at their
//! first use too; here a compiler that is missing is told before anything is measured.

use super::outcome::{Outcome, Place};
use crate::engines;
use crate::engines::shim::{self, Shim};
use anyhow::Result;

/// Compiles those that are missing, or are of another version of their library.
pub fn compile(place: &Place) -> Vec<(String, Outcome)> {
    let outcome = |shim: &Shim| Outcome::of(compile_one(shim, place));
    let wanted = shim::ALL.iter().filter(|shim| place.wants(shim.engine()));
    wanted.map(|shim| (shim.engine().to_string(), outcome(shim))).collect()
}

fn compile_one(shim: &Shim, place: &Place) -> Result<Outcome> {
    if !shim.is_in(&place.dir) {
        shim.build(&place.dir)?;
        return Ok(Outcome::Installed(engines::version(shim.engine())?));
    }
    match engines::version(shim.engine()) {
        Ok(version) => Ok(Outcome::Present(version)),
        Err(_) => {
            shim.build(&place.dir)?;
            // This process has loaded the old one and cannot ask.
            Ok(Outcome::Installed("compiled anew".to_string()))
        }
    }
}
