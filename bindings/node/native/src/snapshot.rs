//! Explicit snapshots.

use std::sync::{Arc, Mutex};

use napi::Env;
use napi_derive::napi;

use crate::error::{Fail, Outcome};
use crate::handle::{Handle, Held};
use crate::store::{Store, lock};
use crate::task::sync;

/// A snapshot until it is closed.
pub struct Snapshot(Mutex<Option<esker::Snapshot>>);

impl Held for Snapshot {
    const NAME: &'static str = "snapshot";
}

impl Snapshot {
    /// Does something with it, unless it is closed.
    pub fn with<T>(&self, work: impl FnOnce(&esker::Snapshot) -> T) -> Outcome<T> {
        lock(&self.0).as_ref().map(work).ok_or(Fail::SnapshotClosed)
    }
}

#[napi(catch_unwind)]
pub fn snapshot_new(env: Env, store: Handle<Store>) -> napi::Result<Handle<Snapshot>> {
    sync(&env, || {
        let snapshot = store.0.call()?.db().snapshot();
        Ok(Handle(Arc::new(Snapshot(Mutex::new(Some(snapshot))))))
    })
}

#[napi(catch_unwind)]
pub fn snapshot_close(env: Env, snapshot: Handle<Snapshot>) -> napi::Result<()> {
    sync(&env, || {
        drop(lock(&snapshot.0.0).take());
        Ok(())
    })
}
