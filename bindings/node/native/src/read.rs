//! Reading single keys.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Buffer, Either};
use napi_derive::napi;

use crate::bytes::{Given, Value, copied};
use crate::error::{Fail, Outcome};
use crate::handle::Handle;
use crate::snapshot::Snapshot;
use crate::store::{Open, Store};
use crate::task::{Job, Reply, pooled, sync};

/// A value, where there is one.
type Found = Option<Value<Vec<u8>>>;
type MaybeSnapshot = Option<Handle<Snapshot>>;

fn of(snapshot: &MaybeSnapshot) -> Option<&Snapshot> {
    snapshot.as_ref().map(|handle| &*handle.0)
}

/// Copied by whoever reads it, so that no other thread waits for the disk.
fn value(found: Option<esker::Slice>, as_string: bool) -> Outcome<Found> {
    let found = found.map(|slice| copied(&slice)).transpose()?;
    Ok(found.map(|bytes| Value { bytes, as_string }))
}

/// The open store, where a read may run on this thread; `here` is whether the program lets it.
fn in_place(store: &Store, here: bool) -> Option<Arc<Open>> {
    if !here {
        return None;
    }
    store.opened().ok().filter(|open| open.reads().is_allowed())
}

#[napi(catch_unwind)]
pub fn get(
    env: Env,
    store: Handle<Store>,
    key: Given,
    as_string: bool,
    snapshot: MaybeSnapshot,
    here: bool,
) -> napi::Result<Reply<Found>> {
    if let Some(open) = in_place(&store.0, here) {
        let read = || value(read_now(&open, &key, &snapshot)?, as_string);
        return sync(&env, || open.reads().timed(read)).map(Either::A);
    }
    Ok(Either::B(pooled(move || {
        key.key()?;
        let call = store.0.call()?;
        let view = call.view(of(&snapshot))?;
        Ok(Box::new(move || {
            let _call = call;
            value(view.get(key.key()?)?, as_string)
        }))
    })))
}

fn read_now(open: &Open, key: &Given, snapshot: &MaybeSnapshot) -> Outcome<Option<esker::Slice>> {
    let key = key.key()?;
    Ok(match of(snapshot) {
        None => open.db().get(key)?,
        snapshot => open.view(snapshot)?.get(key)?,
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
        let found = read_now(&*store.0.opened()?, &key, &snapshot)?;
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
pub fn has(
    env: Env,
    store: Handle<Store>,
    key: Given,
    snapshot: MaybeSnapshot,
    here: bool,
) -> napi::Result<Reply<bool>> {
    if let Some(open) = in_place(&store.0, here) {
        let read = || Ok(open.view(of(&snapshot))?.contains_key(key.key()?)?);
        return sync(&env, || open.reads().timed(read)).map(Either::A);
    }
    Ok(Either::B(pooled(move || {
        key.key()?;
        let call = store.0.call()?;
        let view = call.view(of(&snapshot))?;
        Ok(Box::new(move || {
            let _call = call;
            Ok(view.contains_key(key.key()?)?)
        }))
    })))
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
