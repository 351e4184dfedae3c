//! Writing: single keys, and batches that JavaScript packed.

use esker::{Durability, WriteBatch};
use napi::Env;
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::bytes::Given;
use crate::error::Outcome;
use crate::handle::Handle;
use crate::packed;
use crate::store::Store;
use crate::task::{self, Reply, pooled};

/// Batches up to so many bytes may be written at once: writing more keeps the event loop waiting for longer than it takes to read
/// and copy them, which is done there in any case.
const SHORT_BYTES: usize = 16 << 10;

/// Writes a batch; `sync` that was not given is as the store was opened. At once, where `here` lets it, it is short and nothing
/// waits for the device.
fn write(
    env: &Env,
    store: &Store,
    sync: Option<bool>,
    here: bool,
    fill: impl FnOnce(&mut WriteBatch) -> Outcome<()>,
) -> napi::Result<Reply<()>> {
    let (call, batch) = task::sync(env, || {
        let call = store.call()?;
        let mut batch = WriteBatch::new();
        fill(&mut batch)?;
        Ok((call, batch))
    })?;
    let is_short = batch.byte_len() <= SHORT_BYTES;
    let here = here && is_short && !call.waits(sync) && call.writes().is_allowed();
    let open = call.opened();
    let work = move || {
        let db = call.db();
        match sync {
            None => db.write(batch)?,
            Some(true) => db.write_with(batch, Durability::Synced)?,
            Some(false) => db.write_with(batch, Durability::Buffered)?,
        }
        Ok(())
    };
    if here {
        return task::sync(env, || open.writes().timed(work)).map(Either::A);
    }
    Ok(Either::B(pooled(move || Ok(Box::new(work)))))
}

#[napi(catch_unwind)]
pub fn put(
    env: Env,
    store: Handle<Store>,
    key: Given,
    value: Given,
    sync: Option<bool>,
    here: bool,
) -> napi::Result<Reply<()>> {
    write(&env, &store.0, sync, here, |batch| {
        batch.put(key.key()?, value.value()?);
        Ok(())
    })
}

#[napi(catch_unwind)]
pub fn del(
    env: Env,
    store: Handle<Store>,
    key: Given,
    sync: Option<bool>,
    here: bool,
) -> napi::Result<Reply<()>> {
    write(&env, &store.0, sync, here, |batch| {
        batch.delete(key.key()?);
        Ok(())
    })
}

/// Writes what `operations` begins with, `len` bytes of it. It is read before this returns.
#[napi(catch_unwind)]
pub fn write_packed(
    env: Env,
    store: Handle<Store>,
    operations: &[u8],
    len: u32,
    sync: Option<bool>,
    here: bool,
) -> napi::Result<Reply<()>> {
    write(&env, &store.0, sync, here, |batch| {
        packed::read_operations(operations, len as usize, batch)
    })
}
