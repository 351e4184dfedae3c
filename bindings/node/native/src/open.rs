//! Opening and closing, as JavaScript asks for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Compression, Durability, KeyOrder, Options};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Object};
use napi_derive::napi;

use crate::error::{Fail, Outcome};
use crate::handle::Handle;
use crate::store::Store;
use crate::task::{Job, in_thread, pooled, sync};

/// How to open a store; what is missing is the library's own default. The package's scripts check types before they come here.
#[napi(object, object_to_js = false)]
pub struct OpenOptions {
    /// Make the store, and the directories above it, when there is none.
    pub create_if_missing: bool,
    /// Refuse a store that is there.
    pub error_if_exists: bool,
    /// Write nothing.
    pub read_only: bool,
    /// Share the store with other threads of this process that ask for the same.
    pub multithreading: bool,
    /// Verify everything at open.
    pub paranoid_checks: Option<bool>,
    /// Leave nothing in the log to recover.
    pub flush_on_close: Option<bool>,
    /// `none`, `lz4` or `zstd`.
    pub compression: Option<String>,
    /// `buffered` or `synced`.
    pub durability: Option<String>,
    /// Bytes of memory.
    pub memory: Option<f64>,
    /// Bytes of a block.
    pub block_size: Option<f64>,
    /// Bytes of a log segment.
    pub segment_size: Option<f64>,
    /// Bytes from which on a value stays in the log.
    pub blob_threshold: Option<f64>,
}

pub fn compression(name: &str) -> Outcome<Compression> {
    match name {
        "none" => Ok(Compression::None),
        "lz4" => Ok(Compression::Lz4),
        "zstd" => Ok(Compression::Zstd),
        _ => Err(Fail::Invalid(format!("compression is none, lz4 or zstd, not {name:?}"))),
    }
}

fn durability(name: &str) -> Outcome<Durability> {
    match name {
        "buffered" => Ok(Durability::Buffered),
        "synced" => Ok(Durability::Synced),
        _ => Err(Fail::Invalid(format!("durability is buffered or synced, not {name:?}"))),
    }
}

impl OpenOptions {
    fn engine(&self) -> Outcome<Options> {
        let mut o = Options::new()
            .create_if_missing(self.create_if_missing && !self.read_only)
            .error_if_exists(self.error_if_exists)
            .read_only(self.read_only)
            // Level's order. A store in another order is refused.
            .comparator(KeyOrder::Bytewise);
        if let Some(yes) = self.paranoid_checks {
            o = o.paranoid_checks(yes);
        }
        if let Some(yes) = self.flush_on_close {
            o = o.flush_on_close(yes);
        }
        if let Some(name) = &self.compression {
            o = o.compression(compression(name)?);
        }
        if let Some(name) = &self.durability {
            o = o.durability(durability(name)?);
        }
        if let Some(bytes) = self.memory {
            o = o.memory(bytes as u64);
        }
        if let Some(bytes) = self.block_size {
            o = o.block_size(bytes as usize);
        }
        if let Some(bytes) = self.segment_size {
            o = o.segment_size(bytes as u64);
        }
        if let Some(bytes) = self.blob_threshold {
            o = o.blob_threshold(bytes as usize);
        }
        Ok(o)
    }

    /// Makes the directories above the store's, as Level's stores do.
    fn make_parents(&self, path: &Path) -> Outcome<()> {
        if !self.create_if_missing || self.read_only {
            return Ok(());
        }
        let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
            return Ok(());
        };
        std::fs::create_dir_all(parent).map_err(|source| {
            Fail::Engine(esker::Error::Io {
                op: "make the directory".to_string(),
                path: parent.to_path_buf(),
                source: Arc::new(source),
            })
        })
    }
}

#[napi(catch_unwind)]
pub fn store_new(env: Env) -> napi::Result<Handle<Store>> {
    sync(&env, || Ok(Handle(Arc::new(Store::default()))))
}

#[napi(catch_unwind)]
pub fn store_open(
    store: Handle<Store>,
    location: String,
    options: OpenOptions,
) -> AsyncTask<Job<()>> {
    pooled(move || {
        Ok(Box::new(move || {
            let path = PathBuf::from(location);
            let engine = options.engine()?;
            options.make_parents(&path)?;
            let is_synced = options.durability.as_deref() == Some("synced");
            store.0.open(&path, &engine, options.multithreading, is_synced)
        }))
    })
}

/// In a thread of its own, as it waits for the calls that are under way.
#[napi(catch_unwind)]
pub fn store_close(env: &Env, store: Handle<Store>) -> napi::Result<Object<'_>> {
    in_thread(env, move || Ok(Box::new(move || store.0.close())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> OpenOptions {
        OpenOptions {
            create_if_missing: true,
            error_if_exists: false,
            read_only: false,
            multithreading: false,
            paranoid_checks: None,
            flush_on_close: None,
            compression: None,
            durability: None,
            memory: None,
            block_size: None,
            segment_size: None,
            blob_threshold: None,
        }
    }

    #[test]
    fn a_store_in_another_order_is_refused() {
        let path = std::env::temp_dir().join(format!("esker-node-order-{}", std::process::id()));
        let reverse = Options::new().comparator(KeyOrder::Reverse);
        reverse.open(&path).unwrap().close().unwrap();
        let opened = options().engine().unwrap().open(&path);
        assert!(matches!(opened, Err(esker::Error::ComparatorMismatch { .. })), "{opened:?}");
        esker::Db::destroy(&path).unwrap();
    }
}
