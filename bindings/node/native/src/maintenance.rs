//! What looks after a store: sizes, compactions, checkpoints, verification and repair.

use std::collections::HashMap;
use std::path::PathBuf;

use esker::{Db, Finding, Options};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Object};
use napi_derive::napi;

use crate::bytes::Given;
use crate::handle::Handle;
use crate::open::compression;
use crate::store::Store;
use crate::task::{Job, in_thread, pooled, sync};

/// Bytes on the disk from `start` on and before `end`, about.
#[napi(catch_unwind)]
pub fn approximate_size(store: Handle<Store>, start: Given, end: Given) -> AsyncTask<Job<f64>> {
    pooled(move || {
        let call = store.0.call()?;
        Ok(Box::new(move || Ok(call.db().approximate_size(start.value()?..end.value()?)? as f64)))
    })
}

#[napi(catch_unwind)]
pub fn compact_range<'env>(
    env: &'env Env,
    store: Handle<Store>,
    start: Given,
    end: Given,
) -> napi::Result<Object<'env>> {
    in_thread(env, move || {
        let call = store.0.call()?;
        Ok(Box::new(move || Ok(call.db().compact_range(start.value()?..=end.value()?)?)))
    })
}

#[napi(catch_unwind)]
pub fn flush<'env>(env: &'env Env, store: Handle<Store>) -> napi::Result<Object<'env>> {
    in_thread(env, move || {
        let call = store.0.call()?;
        Ok(Box::new(move || Ok(call.db().flush()?)))
    })
}

/// Makes everything that was written durable.
#[napi(catch_unwind)]
pub fn sync_log(store: Handle<Store>) -> AsyncTask<Job<()>> {
    pooled(move || {
        let call = store.0.call()?;
        Ok(Box::new(move || Ok(call.db().sync()?)))
    })
}

#[napi(catch_unwind)]
pub fn resume<'env>(env: &'env Env, store: Handle<Store>) -> napi::Result<Object<'env>> {
    in_thread(env, move || {
        let call = store.0.call()?;
        Ok(Box::new(move || Ok(call.db().resume()?)))
    })
}

#[napi(catch_unwind)]
pub fn checkpoint<'env>(
    env: &'env Env,
    store: Handle<Store>,
    location: String,
) -> napi::Result<Object<'env>> {
    in_thread(env, move || {
        let call = store.0.call()?;
        Ok(Box::new(move || Ok(call.db().checkpoint(location)?)))
    })
}

#[napi(catch_unwind)]
pub fn property(env: Env, store: Handle<Store>, name: String) -> napi::Result<Option<String>> {
    sync(&env, || Ok(store.0.opened()?.db().property(&name)))
}

/// Figures of the store, by name.
#[napi(catch_unwind)]
pub fn stats(env: Env, store: Handle<Store>) -> napi::Result<HashMap<String, f64>> {
    sync(&env, || {
        let s = store.0.opened()?.db().stats();
        let figures = [
            ("sequence", s.sequence),
            ("logSegments", s.log_segments as u64),
            ("logBytes", s.log_bytes),
            ("blobBytes", s.blob_bytes),
            ("blobGarbageBytes", s.blob_garbage_bytes),
            ("pinnedBytes", s.pinned_bytes),
            ("tableBytes", s.table_bytes),
            ("diskBytes", s.disk_bytes),
            ("memoryBudget", s.memory_budget),
            ("memoryUsed", s.memory_used),
            ("bytesWritten", s.bytes_written),
            ("logBytesWritten", s.log_bytes_written),
            ("compactionBytesRead", s.compaction_bytes_read),
            ("compactionBytesWritten", s.compaction_bytes_written),
            ("compactions", s.compactions),
            ("logSyncs", s.log_syncs),
            ("writeStallNs", s.write_stall_ns),
            ("snapshots", s.snapshots as u64),
            ("openFiles", s.open_files as u64),
            ("mappings", s.mappings as u64),
        ];
        Ok(figures.into_iter().map(|(name, figure)| (name.to_string(), figure as f64)).collect())
    })
}

fn told(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

/// What a verification found.
#[napi(object, object_from_js = false)]
pub struct Verified {
    /// Files that were read.
    pub files: f64,
    /// Their bytes.
    pub bytes: f64,
    /// Entries in them.
    pub entries: f64,
    /// What is wrong, a line each.
    pub problems: Vec<String>,
}

#[napi(catch_unwind)]
pub fn verify<'env>(env: &'env Env, location: String) -> napi::Result<Object<'env>> {
    in_thread(env, move || {
        Ok(Box::new(move || {
            let found = Db::verify_path(PathBuf::from(location))?;
            Ok(Verified {
                files: found.files as f64,
                bytes: found.bytes as f64,
                entries: found.entries as f64,
                problems: told(&found.problems),
            })
        }))
    })
}

/// What a repair did.
#[napi(object, object_from_js = false)]
pub struct Repaired {
    /// Whether anything had to be done.
    pub changed: bool,
    /// Tables that the store has now.
    pub tables: f64,
    /// Entries in them.
    pub entries: f64,
    /// What was wrong, a line each.
    pub problems: Vec<String>,
    /// What could not be saved, a line each.
    pub lost: Vec<String>,
    /// What could not be looked at, a line each.
    pub unchecked: Vec<String>,
}

/// How to write the tables of a repaired store; what is missing is the library's own default.
#[napi(object, object_to_js = false)]
pub struct RepairOptions {
    /// `none`, `lz4` or `zstd`.
    pub compression: Option<String>,
    /// Bytes of a block.
    pub block_size: Option<f64>,
}

#[napi(catch_unwind)]
pub fn repair<'env>(
    env: &'env Env,
    location: String,
    options: RepairOptions,
) -> napi::Result<Object<'env>> {
    in_thread(env, move || {
        let mut engine = Options::new();
        if let Some(name) = &options.compression {
            engine = engine.compression(compression(name)?);
        }
        if let Some(bytes) = options.block_size {
            engine = engine.block_size(bytes as usize);
        }
        Ok(Box::new(move || {
            let done = engine.repair(PathBuf::from(location))?;
            Ok(Repaired {
                changed: done.changed,
                tables: done.tables as f64,
                entries: done.entries as f64,
                problems: told(&done.problems),
                lost: told(&done.lost),
                unchecked: told(&done.unchecked),
            })
        }))
    })
}

/// Removes a store. Files that are not its own stay.
#[napi(catch_unwind)]
pub fn destroy<'env>(env: &'env Env, location: String) -> napi::Result<Object<'env>> {
    in_thread(env, move || {
        Ok(Box::new(move || match Db::destroy(PathBuf::from(location)) {
            // There is none to remove, and nothing was touched.
            Err(esker::Error::NotAStore { .. }) => Ok(()),
            done => Ok(done?),
        }))
    })
}
