//! WiredTiger, B-tree and LSM, as its tuning guide says: raw keys and values, a session and a
//! cursor a thread, a cache of the memory given that may be mostly dirty before writers have to
//! help, snappy where compression is asked for.
//!
//! Buffered: `transaction_sync=(enabled=true,method=none)`; a commit writes its log records to the
//! operating system, so it survives a killed process. (Without `enabled`, records wait in a buffer
//! of the process, and only class V could be claimed.) Synced: `method=fsync`.
//!
//! Tuning: `bulk` (1, B-tree: ascending writers of an empty store use a bulk cursor, which does not
//! log, hence class V, and shows nothing before the writer is dropped), `leaf_page_max` (bytes), `chunk_size` (bytes, LSM),
//! `wiredtiger.table` (a document's configuration of the table, in the library's words), `defaults` (1: only what the row is
//! about is set).

use super::built::{self, Loaded};
use super::shim::{Shim, WIREDTIGER};
use super::shimmed::{Api, Kind, Setup, Shimmed};
use crate::calls::Call;
use crate::engine::{Class, Config, Sync};
use anyhow::Result;

/// WiredTiger, with LSM trees or B-trees.
pub struct WiredTiger<const LSM: bool>;

/// A WiredTiger store with a B-tree.
pub type BTreeStore = Shimmed<WiredTiger<false>>;
/// A WiredTiger store with an LSM tree.
pub type LsmStore = Shimmed<WiredTiger<true>>;

/// What its settings are called by.
const NAME: &str = "wiredtiger";
const SNAPPY: &str = "libwiredtiger_snappy.so";

/// The library that compresses, as WiredTiger is to load it, if it can be loaded; Debian packs it with WiredTiger.
fn snappy() -> Option<String> {
    let name = match built::WIREDTIGER.is_taken() {
        true => built::WIREDTIGER.dir().join(SNAPPY).to_str()?.to_string(),
        false => SNAPPY.to_string(),
    };
    // SAFETY: loading it runs no more than its own initialisers; WiredTiger would load it next.
    unsafe { libloading::Library::new(&name) }.is_ok().then_some(name)
}

impl<const LSM: bool> Kind for WiredTiger<LSM> {
    const SHIM: Shim = WIREDTIGER;
    const IS_PUT_IN_ORDER: bool = !LSM;

    const CALLS: &'static [(Call, &'static str)] = &[
        (Call::Open, "wiredtiger_open, WT_CONNECTION->open_session, WT_SESSION->create"),
        (Call::Writer, "open_session, open_cursor; for a bulk load with \"bulk\""),
        (Call::Reader, "open_session, open_cursor"),
        (Call::Put, "WT_CURSOR->set_key, set_value, insert, each a transaction by itself"),
        (Call::Delete, "WT_CURSOR->set_key, remove"),
        (Call::BatchPut, "nothing: entries are gathered"),
        (
            Call::BatchCommit,
            "begin_transaction, set_key, set_value and insert for each entry, commit_transaction",
        ),
        (Call::WriterEnd, "WT_SESSION->close, which ends a bulk load"),
        (Call::Get, "WT_CURSOR->reset, set_key, search, get_value"),
        (Call::Renew, "nothing: get resets the cursor before, seek and scan after it"),
        (Call::YieldView, "nothing: no view is held"),
        (Call::Seek, "WT_CURSOR->set_key, search_near, next where that is before the key; reset"),
        (Call::Scan, "WT_CURSOR->reset, then next or prev to the first; reset"),
        (Call::Entry, "WT_CURSOR->get_key, get_value, then next or prev"),
        (Call::Settle, "WT_SESSION->checkpoint, for an LSM tree compact before it"),
        (Call::Compact, "WT_SESSION->compact and checkpoint, of a B-tree that will only be read"),
        (Call::SetMemory, "WT_CONNECTION->close, wiredtiger_open with the other cache_size"),
        (Call::Close, "WT_CONNECTION->close"),
    ];

    fn loaded() -> &'static Loaded<Api> {
        static LOADED: Loaded<Api> = Loaded::new();
        &LOADED
    }

    fn setup(config: &Config) -> Result<Setup> {
        // Not for an LSM tree: its bulk cursor stores values as they are, but its reads take a byte
        // off those that begin as its mark for a deleted key does (two bytes of 0x14).
        let bulk = !LSM && config.is_on(NAME, "bulk")?;
        let (class, sync) = match config.sync {
            Sync::Buffered => (Class::K, "enabled=true,method=none"),
            Sync::Synced => (Class::F, "enabled=true,method=fsync"),
        };
        let snappy = config.compression.then(snappy).flatten();
        let compression = match (config.compression, snappy.is_some()) {
            (false, _) => "compression off",
            (true, true) => "snappy",
            (true, false) => "compression off, because libwiredtiger_snappy.so is not installed",
        };
        // It keeps 128 buffers for its log, each a tenth of a log file and at most 256 KiB.
        let share = if config.larger_than_memory { 16 } else { 4 };
        let log_file = (config.memory / share).clamp(1 << 20, 32 << 20);
        let mut connection = format!(
            "create,cache_size={},session_max=256,log=(enabled=true,file_max={log_file}),\
             transaction_sync=({sync}),checkpoint=(log_size=256MB),eviction=(threads_max=4),\
             eviction_dirty_target=60,eviction_dirty_trigger=80",
            // The least that it takes.
            config.memory.max(1 << 20)
        );
        let defaults = config.as_it_comes(NAME)?;
        if defaults {
            connection =
                format!("create,session_max=256,log=(enabled=true),transaction_sync=({sync})");
        }
        let mut table = "key_format=u,value_format=u".to_string();
        // A page is read as a whole: small ones where few of them stay in the cache.
        let document = config.setting(NAME, "table");
        let small = config.larger_than_memory || config.memory < config.expected_bytes / 2;
        let small = (small && document.is_none() && !defaults).then_some(4096);
        if config.larger_than_memory && !defaults && !LSM {
            // Its manual: for workloads that are updates or point queries for the most part, as these are.
            table += ",access_pattern_hint=random";
        }
        table.extend(document.map(|words| format!(",{words}")));
        if let Some(bytes) = config.number(NAME, "leaf_page_max")?.or(small) {
            table += &format!(",leaf_page_max={bytes}");
        }
        if LSM && !defaults {
            // Several chunks, being filled, written and merged, share the cache.
            let chunk = config.memory / 8;
            let chunk = config.number(NAME, "chunk_size")?.unwrap_or(chunk);
            let chunk = chunk.clamp(512 << 10, (config.memory / 4).clamp(512 << 10, 500 << 20));
            table += &format!(
                ",type=lsm,lsm=(chunk_size={chunk},bloom_bit_count=10,bloom_hash_count=7)"
            );
        }
        if LSM && defaults {
            table += ",type=lsm";
        }
        if let Some(name) = &snappy {
            connection += &format!(",extensions=[\"{name}\"]");
            table += ",block_compressor=snappy";
            // The usual unit of 4 KiB is as much as a small page has unpacked.
            if small.is_some() {
                table += ",allocation_size=512";
            }
        }
        let loads = match defaults {
            true => "",
            false => "; more cache for loads before rows that have less memory than data",
        };
        let ascending = if bulk { ", bulk cursor for ascending keys (not logged)" } else { "" };
        // Where the library lies on this machine is nobody's setting.
        let shown = snappy.as_ref().map(|name| connection.replace(name.as_str(), SNAPPY));
        let shown = shown.as_ref().unwrap_or(&connection);
        Ok(Setup {
            words: format!("{compression}; {shown}; {table}{ascending}{loads}"),
            connection,
            table,
            page_size: 0,
            bulk,
            class: if bulk { Class::V } else { class },
            compresses: snappy.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(change: impl FnOnce(&mut Config)) -> String {
        let mut config = crate::conformance::config(Sync::Buffered, false);
        config.memory = 128 << 20;
        change(&mut config);
        <WiredTiger<false> as Kind>::setup(&config).unwrap().table
    }

    #[test]
    fn pages_are_small_where_few_stay_in_the_cache() {
        assert!(!table(|_| ()).contains("leaf_page_max"));
        assert!(table(|config| config.memory = 4 << 20).ends_with("leaf_page_max=4096"));
        let larger = table(|config| config.larger_than_memory = true);
        assert!(larger.ends_with("access_pattern_hint=random,leaf_page_max=4096"), "{larger}");
        let packed = table(|config| (config.memory, config.compression) = (4 << 20, true));
        // Without the library that packs, nothing is.
        assert_eq!(packed.contains("snappy"), packed.contains("allocation_size=512"), "{packed}");
        let of_document = table(|config| {
            config.memory = 4 << 20;
            config
                .tuning
                .insert("wiredtiger.table".into(), "leaf_page_max=16KB,checksum=off".into());
        });
        assert!(
            of_document.ends_with("value_format=u,leaf_page_max=16KB,checksum=off"),
            "{of_document}"
        );
    }
}
