//! Writing: single keys, and batches that JavaScript packed.

use esker::{Durability, WriteBatch};
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;

use crate::bytes::Given;
use crate::error::Outcome;
use crate::handle::Handle;
use crate::packed;
use crate::store::Store;
use crate::task::{Job, pooled};

/// Writes a batch in the pool; `sync` that was not given is as the store was opened.
fn write(
    store: &Store,
    sync: Option<bool>,
    fill: impl FnOnce(&mut WriteBatch) -> Outcome<()>,
) -> Outcome<Box<dyn FnOnce() -> Outcome<()> + Send>> {
    let call = store.call()?;
    let mut batch = WriteBatch::new();
    fill(&mut batch)?;
    Ok(Box::new(move || {
        let db = call.db();
        match sync {
            None => db.write(batch)?,
            Some(true) => db.write_with(batch, Durability::Synced)?,
            Some(false) => db.write_with(batch, Durability::Buffered)?,
        }
        Ok(())
    }))
}

#[napi(catch_unwind)]
pub fn put(
    store: Handle<Store>,
    key: Given,
    value: Given,
    sync: Option<bool>,
) -> AsyncTask<Job<()>> {
    pooled(move || {
        write(&store.0, sync, |batch| {
            batch.put(key.key()?, value.value()?);
            Ok(())
        })
    })
}

#[napi(catch_unwind)]
pub fn del(store: Handle<Store>, key: Given, sync: Option<bool>) -> AsyncTask<Job<()>> {
    pooled(move || {
        write(&store.0, sync, |batch| {
            batch.delete(key.key()?);
            Ok(())
        })
    })
}

/// Writes what `operations` begins with, `len` bytes of it. It is read before this returns.
#[napi(catch_unwind)]
pub fn write_packed(
    store: Handle<Store>,
    operations: &[u8],
    len: u32,
    sync: Option<bool>,
) -> AsyncTask<Job<()>> {
    pooled(move || {
        write(&store.0, sync, |batch| packed::read_operations(operations, len as usize, batch))
    })
}
