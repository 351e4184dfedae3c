//! Every target, from its seeds.

use std::fs;
use std::path::{Path, PathBuf};

use super::testing::{drive, number};
use super::{seeds, target};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// Writes the seeds that are committed: `ESKER_FUZZ_WRITE_SEEDS=1`. Otherwise nothing.
#[test]
fn seeds_are_written_when_asked_for() {
    if number("ESKER_FUZZ_WRITE_SEEDS").is_none() {
        return;
    }
    for target in super::TARGETS {
        let dir = corpus().join(target.name);
        fs::create_dir_all(&dir).unwrap();
        for (n, seed) in seeds::of(target.name).iter().enumerate() {
            fs::write(dir.join(format!("seed-{n:02}")), seed).unwrap();
        }
    }
}

macro_rules! drive {
    ($($name:ident)*) => { $(
        #[test]
        #[cfg_attr(miri, ignore = "opens real files")]
        fn $name() {
            drive(target(stringify!($name)).expect("a target of this name"), &corpus());
        }
    )* };
}

drive! { log manifest edit table block point_index packed_value batch store operations }
