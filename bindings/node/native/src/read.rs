//! Reading single keys.

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Buffer};
use napi_derive::napi;

use crate::bytes::{Given, Value, copied};
use crate::error::{Fail, Outcome};
use crate::handle::Handle;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::task::{Job, pooled, sync};

/// A value, where there is one.
type Found = Option<Value<Vec<u8>>>;
type MaybeSnapshot = Option<Handle<Snapshot>>;

fn of(snapshot: &MaybeSnapshot) -> Option<&Snapshot> {
    snapshot.as_ref().map(|handle| &*handle.0)
}

#[napi(catch_unwind)]
pub fn get(
    store: Handle<Store>,
    key: Given,
    as_string: bool,
    snapshot: MaybeSnapshot,
) -> AsyncTask<Job<Found>> {
    pooled(move || {
        key.key()?;
        let call = store.0.call()?;
        let view = call.view(of(&snapshot))?;
        Ok(Box::new(move || {
            let call = call;
            let found = view.get(key.key()?)?;
            // Copied here, so that it is this thread that waits for the disk.
            let found = found.map(|slice| copied(&slice)).transpose()?;
            drop(call);
            Ok(found.map(|bytes| Value { bytes, as_string }))
        }))
    })
}

#[napi(catch_unwind)]
pub fn get_sync(
    env: Env,
    store: Handle<Store>,
    key: Given,
    as_string: bool,
    snapshot: MaybeSnapshot,
) -> napi::Result<Option<Value<esker::Slice>>> {
    sync(&env, || {
        let key = key.key()?;
        let open = store.0.opened()?;
        let found = match of(&snapshot) {
            None => open.db().get(key)?,
            snapshot => open.view(snapshot)?.get(key)?,
        };
        Ok(found.map(|bytes| Value { bytes, as_string }))
    })
}

#[napi(catch_unwind)]
pub fn get_many(
    store: Handle<Store>,
    keys: Vec<Given>,
    as_string: bool,
    snapshot: MaybeSnapshot,
) -> AsyncTask<Job<Vec<Found>>> {
    pooled(move || {
        let call = store.0.call()?;
        let view = call.view(of(&snapshot))?;
        Ok(Box::new(move || {
            let _call = call;
            let keys = keys.iter().map(Given::key).collect::<Outcome<Vec<&[u8]>>>()?;
            let mut values = Vec::new();
            values.try_reserve_exact(keys.len()).map_err(|_| Fail::NoMemory(keys.len()))?;
            for found in view.multi_get(&keys)? {
                let bytes = found.map(|slice| copied(&slice)).transpose()?;
                values.push(bytes.map(|bytes| Value { bytes, as_string }));
            }
            Ok(values)
        }))
    })
}

#[napi(catch_unwind)]
pub fn has(store: Handle<Store>, key: Given, snapshot: MaybeSnapshot) -> AsyncTask<Job<bool>> {
    pooled(move || {
        key.key()?;
        let call = store.0.call()?;
        let view = call.view(of(&snapshot))?;
        Ok(Box::new(move || {
            let _call = call;
            Ok(view.contains_key(key.key()?)?)
        }))
    })
}

/// A byte for each key: 1 where there is a value.
#[napi(catch_unwind)]
pub fn has_many(
    store: Handle<Store>,
    keys: Vec<Given>,
    snapshot: MaybeSnapshot,
) -> AsyncTask<Job<Buffer>> {
    pooled(move || {
        let call = store.0.call()?;
        let view = call.view(of(&snapshot))?;
        Ok(Box::new(move || {
            let _call = call;
            let found = keys.iter().map(|key| Ok(u8::from(view.contains_key(key.key()?)?)));
            Ok(found.collect::<Outcome<Vec<u8>>>()?.into())
        }))
    })
}
