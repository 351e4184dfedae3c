//! Writing: single keys, and batches that JavaScript packed.

use esker::{Durability, WriteBatch};
use napi::Env;
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::bytes::Given;
use crate::error::Outcome;
use crate::handle::Handle;
use crate::packed;
use crate::store::{Call, Store};
use crate::task::{self, Reply, pooled};

/// Writes a batch; `sync` that was not given is as the store was opened. At once, where `here` lets it and nothing waits for the device.
fn write(
    env: &Env,
    store: &Store,
    sync: Option<bool>,
    here: bool,
    fill: impl FnOnce(&mut WriteBatch) -> Outcome<()>,
) -> napi::Result<Reply<()>> {
    let work = move |call: Call| -> Outcome<_> {
        let mut batch = WriteBatch::new();
        fill(&mut batch)?;
        Ok(move || {
            let db = call.db();
            match sync {
                None => db.write(batch)?,
                Some(true) => db.write_with(batch, Durability::Synced)?,
                Some(false) => db.write_with(batch, Durability::Buffered)?,
            }
            Ok(())
        })
    };
    match store.call() {
        Ok(call) if here && !call.waits(sync) && call.writes().is_allowed() => {
            let open = call.opened();
            task::sync(env, || open.writes().timed(work(call)?)).map(Either::A)
        }
        call => Ok(Either::B(pooled(move || Ok(Box::new(work(call?)?))))),
    }
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
