//! Berkeley DB 5.3 as its reference guide tunes it: a B-tree in a transactional environment, a
//! cache of the memory given, bulk puts and bulk reads, room for the locks of large batches.
//!
//! Buffered: `DB_TXN_WRITE_NOSYNC`; a commit hands its log records to the operating system. Synced:
//! a commit waits for the device.
//!
//! Where one thread has the store to itself there are no locks, and handles are its own (no `DB_INIT_LOCK`, no `DB_THREAD`).

use super::built::Loaded;
use super::shim::{BDB, Shim};
use super::shimmed::{Api, Kind, Setup, Shimmed};
use crate::calls::Call;
use crate::engine::{Class, Config, Sync};
use anyhow::Result;

/// Bytes of a page that holds about eight entries, or 0 for the library's choice, the block of the file system, which
/// is 4 KiB or more. A page that holds two or three is empty for a quarter.
fn page_for(entry_bytes: u64) -> u32 {
    match entry_bytes * 8 {
        0..=4096 => 0,
        4097..=8192 => 8192,
        _ => 16384,
    }
}

/// Berkeley DB.
pub struct Bdb;

/// A Berkeley DB store.
pub type BdbStore = Shimmed<Bdb>;

impl Kind for Bdb {
    const SHIM: Shim = BDB;
    // DB->compact was seen to leave more log than it saved pages.
    const IS_PUT_IN_ORDER: bool = false;

    const CALLS: &'static [(Call, &'static str)] = &[
        (
            Call::Open,
            "DB_ENV->open with DB_INIT_TXN, LOG, MPOOL, for threads LOCK; DB->open, DB_BTREE",
        ),
        (Call::Writer, "nothing of the library"),
        (Call::Reader, "nothing of the library"),
        (Call::Put, "DB->put, each a transaction by DB_AUTO_COMMIT; txn_checkpoint when due"),
        (Call::Delete, "DB->del, likewise"),
        (Call::BatchPut, "nothing: entries are gathered"),
        (
            Call::BatchCommit,
            "txn_begin, DB->put with DB_MULTIPLE_KEY, DB_TXN->commit; txn_checkpoint when due",
        ),
        (Call::WriterEnd, "nothing"),
        (Call::Get, "DB->get into a buffer of the reader (DB_DBT_USERMEM)"),
        (Call::Seek, "DB->cursor, DBC->get with DB_SET_RANGE, DBC->close"),
        (
            Call::Scan,
            "DB->cursor, DBC->get with DB_FIRST and DB_MULTIPLE_KEY, or with DB_LAST; DBC->close",
        ),
        (
            Call::Entry,
            "forward scans: the next of the buffer, DBC->get for a full one; else DBC->get",
        ),
        (Call::Renew, "nothing: each read sees what is newest"),
        (Call::YieldView, "nothing: no view is held"),
        (Call::Settle, "DB_ENV->txn_checkpoint with DB_FORCE"),
        (Call::Compact, "nothing: settling was all"),
        (Call::SetMemory, "nothing: the memory stays"),
        (Call::Close, "DB->close, txn_checkpoint, DB_ENV->close"),
    ];

    fn loaded() -> &'static Loaded<Api> {
        static LOADED: Loaded<Api> = Loaded::new();
        &LOADED
    }

    fn setup(config: &Config) -> Result<Setup> {
        let page_size = page_for(config.entry_bytes);
        let (class, commit) = match config.sync {
            Sync::Buffered => (Class::K, "DB_TXN_WRITE_NOSYNC"),
            Sync::Synced => (Class::F, "full sync"),
        };
        let threads = if config.shared { "locks for 50,000 pages" } else { "one thread, no locks" };
        // As in bdb.c.
        let log_mib = (config.memory >> 22).clamp(10, 64);
        let page = if page_size == 0 { "default".to_string() } else { page_size.to_string() };
        Ok(Setup {
            connection: String::new(),
            table: String::new(),
            page_size,
            bulk: false,
            class,
            compresses: false,
            words: format!(
                "BTREE in a private transactional environment, {commit}, cache {} MiB, page size \
                 {page}, logs of {log_mib} MiB removed after a checkpoint every 256 MiB, bulk put per \
                 batch, bulk reads forwards, {threads}",
                config.memory >> 20
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;

    #[test]
    fn a_page_holds_about_eight_entries() {
        assert_eq!((page_for(116), page_for(512)), (0, 0));
        assert_eq!((page_for(513), page_for(1016), page_for(1024)), (8192, 8192, 8192));
        assert_eq!((page_for(1025), page_for(100_016)), (16384, 16384));
        let mut config = crate::conformance::config(Sync::Buffered, false);
        config.entry_bytes = 1016;
        assert_eq!(Bdb::setup(&config).unwrap().page_size, 8192);
    }

    #[test]
    fn one_thread_alone_is_served_without_locks() {
        if BdbStore::version().is_err() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut config = crate::conformance::config(Sync::Buffered, false);
        config.shared = false;
        crate::conformance::check::<BdbStore>(dir.path(), &config).unwrap();
    }
}
