//! What durability costs on this machine: buffered and synced writes, alone and together.
//!
//! ```sh
//! cargo run --release --example durability [DIR]
//! ```

use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use esker::{Db, Durability};

fn main() -> esker::Result<()> {
    // Not the temporary directory: that is often in memory, where a sync costs nothing.
    let path = std::env::args_os().nth(1).map_or_else(|| "durability.db".into(), PathBuf::from);
    let db = Db::open(&path)?;
    for (durability, threads, writes) in [
        (Durability::Buffered, 1, 100_000u32),
        (Durability::Synced, 1, 500),
        (Durability::Synced, 16, 4_000),
    ] {
        let syncs = db.stats().log_syncs;
        let start = Instant::now();
        thread::scope(|scope| {
            let writers: Vec<_> = (0..threads)
                .map(|t| {
                    let db = db.clone();
                    scope.spawn(move || {
                        (0..writes / threads).try_for_each(|n| {
                            db.put_with(format!("{t:02}/{n:08}"), [0; 100], durability)
                        })
                    })
                })
                .collect();
            writers.into_iter().try_for_each(|w| w.join().expect("a writer panicked"))
        })?;
        let rate = f64::from(writes) / start.elapsed().as_secs_f64();
        let syncs = db.stats().log_syncs - syncs;
        println!("{durability:?}, {threads} threads: {rate:.0} writes a second, {syncs} syncs");
    }
    db.close()?;
    Db::destroy(&path)
}
