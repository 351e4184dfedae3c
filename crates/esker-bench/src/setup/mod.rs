//! `--setup`: installs or builds the engines that are asked for and missing. What is there already stays; what
//! fails says why, and the rest goes on.

mod alone;
mod command;
#[cfg(target_arch = "x86_64")]
mod crc32c;
mod outcome;
mod packages;
mod program;
mod recipe;
mod shims;

use crate::engines::places::setup_dir;
use crate::external;
use alone::Alone;
use anyhow::{Context, Result, bail};
use outcome::{Outcome, Place};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// Does what these engines need and says what was done; an error when something failed.
pub fn run(engines: &[String], source: Option<&Path>) -> Result<()> {
    let place = Place { dir: setup_dir(), engines, source };
    std::fs::create_dir_all(&place.dir)
        .with_context(|| format!("cannot make {}", place.dir.display()))?;
    let _alone = Alone::in_dir(&place.dir, || {
        say("another set-up is at work there; this one waits for it")
    })?;
    let start = Instant::now();
    say(&format!("engines are built into {}", place.dir.display()))?;
    let failed = Mutex::new(0);
    let tell = |lines: Vec<(String, Outcome)>| -> Result<()> {
        // Held while it is said, so that lines of parts done at once do not mix.
        let mut failed = failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (what, outcome) in lines {
            let told = match outcome {
                Outcome::Present(how) => format!("already there ({how})"),
                Outcome::Installed(how) => format!("installed ({how})"),
                Outcome::Failed(why) => {
                    *failed += 1;
                    format!("failed: {}", why.replace('\n', "\n    "))
                }
            };
            say(&format!("  {what}: {told}"))?;
        }
        Ok(())
    };
    // Said before, as each may take minutes.
    say("packages ...")?;
    tell(packages::install(&place))?;
    say("libraries, forks of LevelDB and engines that are crates ...")?;
    // At once: some wait for a registry, or keep one core busy with one file.
    std::thread::scope(|scope| {
        let (place, tell) = (&place, &tell);
        let wanted = recipe::ALL.iter().filter(|recipe| place.wants(recipe.built.name));
        let making = wanted.map(|recipe| scope.spawn(move || tell(vec![recipe.follow(place)])));
        let mut jobs: Vec<_> = making.collect();
        if external::NAMES.iter().any(|name| place.wants(name)) {
            jobs.push(scope.spawn(|| tell(program::build(place))));
        }
        jobs.into_iter().try_for_each(|job| job.join().expect("no part of it panics"))
    })?;
    // After the libraries that they are compiled with.
    say("shims ...")?;
    tell(shims::compile(&place))?;
    say(&format!("done in {} s", start.elapsed().as_secs()))?;
    let failed = failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if failed > 0 {
        bail!("{failed} could not be installed, as said above; the rest is there");
    }
    Ok(())
}

fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
