//! Berkeley DB 5.3 as its reference guide tunes it: a B-tree in a transactional environment, a
//! cache of the memory given, bulk puts and bulk reads, room for the locks of large batches.
//!
//! Buffered: `DB_TXN_WRITE_NOSYNC`; a commit hands its log records to the operating system. Synced:
//! a commit waits for the device.
//!
//! Tuning: `page_size` (bytes).

use super::shim::{BDB, Shim};
use super::shimmed::{Kind, Loaded, Setup, Shimmed};
use crate::calls::Call;
use crate::engine::{Class, Config, Sync};
use anyhow::{Result, ensure};

/// Berkeley DB.
pub struct Bdb;

/// A Berkeley DB store.
pub type BdbStore = Shimmed<Bdb>;

impl Kind for Bdb {
    const SHIM: Shim = BDB;
    // DB->compact was seen to leave more log than it saved pages.
    const IS_PUT_IN_ORDER: bool = false;

    const CALLS: &'static [(Call, &'static str)] = &[
        (Call::Open, "DB_ENV->open with DB_INIT_TXN, LOG, LOCK, MPOOL; DB->open, DB_BTREE"),
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

    fn loaded() -> &'static Loaded {
        static LOADED: Loaded = Loaded::new();
        &LOADED
    }

    fn setup(config: &Config) -> Result<Setup> {
        let page_size = super::tuned(config, "page_size")?.unwrap_or(0);
        ensure!(
            page_size == 0 || (page_size.is_power_of_two() && (512..=65536).contains(&page_size)),
            "--set page_size={page_size}: a power of two from 512 to 65536"
        );
        let (class, commit) = match config.sync {
            Sync::Buffered => (Class::K, "DB_TXN_WRITE_NOSYNC"),
            Sync::Synced => (Class::F, "full sync"),
        };
        let page = if page_size == 0 { "default".to_string() } else { page_size.to_string() };
        Ok(Setup {
            connection: String::new(),
            table: String::new(),
            page_size: page_size as u32,
            bulk: false,
            class,
            compresses: false,
            words: format!(
                "BTREE in a private transactional environment, {commit}, cache {} MiB, page size \
                 {page}, logs of 64 MiB removed after a checkpoint every 256 MiB, bulk put per \
                 batch, bulk reads forwards, locks for 50,000 pages",
                config.memory >> 20
            ),
        })
    }
}
