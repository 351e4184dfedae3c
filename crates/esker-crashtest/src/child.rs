//! The process that is killed: opens the store and lets each thread play its script. It says what is
//! done on its standard output, and nothing else counts.

use std::path::Path;

use esker::{Compression, KeyspaceOptions, Options};
pub use esker_trust::Message;
use esker_trust::{Rng, Script, Space, play};

use crate::store::{Writer, name};

/// Options of a cycle: small, so that everything happens often.
pub fn options(seed: u64, cycle: u64) -> Options {
    let mut rng = Rng::new(seed ^ cycle.rotate_left(32));
    let compression = [Compression::None, Compression::Lz4, Compression::Zstd];
    Options::new()
        .memory(1 << 20)
        .segment_size(rng.pick(&[64, 128, 256, 1024]) << 10)
        .blob_threshold(1000)
        .compression(*rng.pick(&compression))
        .paranoid_checks(rng.one_in(3))
        .flush_on_close(!rng.one_in(4))
}

/// Opens the store in `dir` and writes until killed, each thread from its number in `first` on.
/// `checkpoints` is where copies go.
pub fn run(
    dir: &Path,
    checkpoints: &Path,
    seed: u64,
    cycle: u64,
    first: &[u32],
) -> esker::Result<()> {
    // The other threads, and a kill, would cover it up.
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        tell(info);
        std::process::exit(101);
    }));
    let db = options(seed, cycle).open(dir)?;
    if db.keyspace(&name(Space::Other)).is_err() {
        db.create_keyspace(&name(Space::Other), KeyspaceOptions::new())?;
    }
    Message::Opened.say();
    std::thread::scope(|scope| {
        for (thread, first) in (0u8..).zip(first) {
            let db = &db;
            scope.spawn(move || {
                let own = db.keyspace(&name(Space::Own(thread))).is_ok();
                let mut writer = Writer::new(db, checkpoints, thread);
                if let Err(e) = play(&mut writer, Script::Whole(seed), thread, *first, own) {
                    // With this the parent knows that it was no kill.
                    eprintln!("thread {thread}: {e}");
                    std::process::exit(1);
                }
            });
        }
    });
    Ok(())
}
