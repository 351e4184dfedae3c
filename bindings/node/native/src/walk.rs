//! Walks: what iterators and `clear` are made of.
//!
//! A walk sees the store as it was when the walk was made, or as a snapshot does. Making one reads nothing, and neither does seeking: the
//! cursor is placed by the next read, in the pool.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use esker::{Cursor, View, WriteBatch};
use napi::Env;
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;

use crate::bytes::{Given, Value};
use crate::error::{Fail, Outcome};
use crate::handle::{Handle, Held};
use crate::packed::Chunk;
use crate::snapshot::Snapshot;
use crate::store::{Open, Store, lock};
use crate::task::{Job, Reply, here_or_pooled, pooled, sync};

/// Keys that one batch of `clear` deletes, at most.
const CLEAR_KEYS: usize = 4096;
/// Bytes of keys that it deletes, at most (one key more).
const CLEAR_BYTES: usize = 1 << 20;

/// Which keys, and in which direction.
pub struct Range {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    reverse: bool,
}

impl Range {
    fn is_above_low(&self, key: &[u8]) -> bool {
        match &self.low {
            Bound::Included(low) => key >= low.as_slice(),
            Bound::Excluded(low) => key > low.as_slice(),
            Bound::Unbounded => true,
        }
    }

    fn is_below_high(&self, key: &[u8]) -> bool {
        match &self.high {
            Bound::Included(high) => key <= high.as_slice(),
            Bound::Excluded(high) => key < high.as_slice(),
            Bound::Unbounded => true,
        }
    }

    /// Places the cursor on the first entry from which the walk goes.
    fn begin(&self, cursor: &mut Cursor) -> esker::Result<bool> {
        match (self.reverse, &self.low, &self.high) {
            (false, Bound::Unbounded, _) => cursor.first(),
            (false, Bound::Included(low), _) => cursor.seek(low),
            (false, Bound::Excluded(low), _) => {
                Ok(cursor.seek(low)? && (cursor.key() != low.as_slice() || cursor.next()?))
            }
            (true, _, Bound::Unbounded) => cursor.last(),
            (true, _, Bound::Included(high)) => cursor.seek_for_prev(high),
            (true, _, Bound::Excluded(high)) => Ok(cursor.seek_for_prev(high)?
                && (cursor.key() != high.as_slice() || cursor.prev()?)),
        }
    }
}

/// Where the walk goes on.
enum Place {
    Begin,
    Target(Vec<u8>),
    /// Behind the entry that the cursor is on.
    Behind,
    /// At that entry, for which there was no memory.
    On,
    End,
}

/// What is given of each entry.
#[derive(Clone, Copy)]
struct Parts {
    keys: bool,
    values: bool,
    keys_as_strings: bool,
    values_as_strings: bool,
}

struct Steps {
    view: View,
    cursor: Option<Cursor>,
    range: Range,
    place: Place,
    parts: Parts,
}

impl Steps {
    /// Goes to the next entry; `None` at the end.
    fn step(&mut self) -> Outcome<Option<&Cursor>> {
        let (view, values) = (&self.view, self.parts.values);
        let cursor = self
            .cursor
            .get_or_insert_with(|| if values { view.cursor() } else { view.cursor_keys_only() });
        let range = &self.range;
        let on_entry = match (std::mem::replace(&mut self.place, Place::Behind), range.reverse) {
            (Place::Begin, _) => range.begin(cursor)?,
            (Place::Target(target), false) => cursor.seek(target)?,
            (Place::Target(target), true) => cursor.seek_for_prev(target)?,
            (Place::Behind, false) => cursor.next()?,
            (Place::Behind, true) => cursor.prev()?,
            (Place::On, _) => cursor.valid(),
            (Place::End, _) => false,
        };
        let inside =
            |key| if range.reverse { range.is_above_low(key) } else { range.is_below_high(key) };
        if !on_entry || !inside(cursor.key()) {
            self.place = Place::End;
            return Ok(None);
        }
        Ok(Some(cursor))
    }

    /// Entries until there are `count`, or more than `limit_bytes` of them, or `stop` is set. A failure behind some is for the next
    /// call, which meets it again: what can be read is given.
    fn read(&mut self, count: usize, limit_bytes: usize, stop: &AtomicBool) -> Outcome<Vec<u8>> {
        let mut chunk = Chunk::new();
        let (mut read, mut bytes, mut ended) = (0, 0, false);
        while read < count && bytes <= limit_bytes && !stop.load(Ordering::Relaxed) {
            match self.step_into(&mut chunk) {
                Ok(Some(more)) => bytes += more,
                Ok(None) => {
                    ended = true;
                    break;
                }
                Err(_) if read > 0 => break,
                Err(e) => return Err(e),
            }
            read += 1;
        }
        // At most the 32 bits that JavaScript asked for.
        Ok(chunk.finish(read as u32, ended))
    }

    /// Adds the next entry to a chunk, or nothing. How many bytes it has; `None` at the end.
    fn step_into(&mut self, chunk: &mut Chunk) -> Outcome<Option<usize>> {
        let parts = self.parts;
        let Some(cursor) = self.step()? else { return Ok(None) };
        let key = if parts.keys { Some((cursor.key(), parts.keys_as_strings)) } else { None };
        let value =
            if parts.values { Some((cursor.value(), parts.values_as_strings)) } else { None };
        let pushed = chunk.push_all(key.into_iter().chain(value));
        if pushed.is_err() {
            self.place = Place::On;
        }
        Ok(Some(pushed?))
    }

    /// The next keys, as a batch that deletes them.
    fn deletes(&mut self, count: usize) -> Outcome<WriteBatch> {
        let mut batch = WriteBatch::new();
        while batch.len() < count.min(CLEAR_KEYS) && batch.byte_len() < CLEAR_BYTES {
            let Some(cursor) = self.step()? else { break };
            batch.delete(cursor.key());
        }
        Ok(batch)
    }
}

/// A walk until it is closed.
pub struct Walk {
    /// None when closed.
    steps: Mutex<Option<Steps>>,
    stop: AtomicBool,
    open: Arc<Open>,
    number: u64,
}

impl Held for Walk {
    const NAME: &'static str = "walk";
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.open.walk_ends(self.number);
    }
}

impl Walk {
    fn new(open: Arc<Open>, steps: Steps) -> Arc<Walk> {
        Arc::new_cyclic(|walk: &Weak<Walk>| {
            let number = open.walk_begins(walk);
            Walk { steps: Mutex::new(Some(steps)), stop: AtomicBool::new(false), open, number }
        })
    }

    /// Ends it. A read under way stops after the entry that it is at.
    pub fn close(&self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(lock(&self.steps).take());
        self.open.walk_ends(self.number);
    }

    fn with<T>(&self, work: impl FnOnce(&mut Steps) -> Outcome<T>) -> Outcome<T> {
        work(lock(&self.steps).as_mut().ok_or(Fail::WalkClosed)?)
    }
}

/// What to walk over, and what to give. Bounds that are given twice: the inclusive one counts.
#[napi(object, object_to_js = false)]
pub struct WalkOptions {
    /// From this key on.
    pub gte: Option<Given>,
    /// Behind this key.
    pub gt: Option<Given>,
    /// Up to this key.
    pub lte: Option<Given>,
    /// Before this key.
    pub lt: Option<Given>,
    /// From the last key to the first.
    pub reverse: bool,
    /// Give keys.
    pub keys: bool,
    /// Give values.
    pub values: bool,
    /// Keys become strings.
    pub keys_as_strings: bool,
    /// Values become strings.
    pub values_as_strings: bool,
}

/// A bound may be longer than any key: it bounds all the same.
fn bound(inclusive: Option<Given>, exclusive: Option<Given>) -> Outcome<Bound<Vec<u8>>> {
    Ok(match (inclusive, exclusive) {
        (Some(key), _) => Bound::Included(key.value()?.to_vec()),
        (None, Some(key)) => Bound::Excluded(key.value()?.to_vec()),
        (None, None) => Bound::Unbounded,
    })
}

#[napi(catch_unwind)]
pub fn walk_new(
    env: Env,
    store: Handle<Store>,
    options: WalkOptions,
    snapshot: Option<Handle<Snapshot>>,
) -> napi::Result<Handle<Walk>> {
    sync(&env, || {
        let open = store.0.opened()?;
        let view = open.view(snapshot.as_ref().map(|handle| &*handle.0))?;
        let parts = Parts {
            keys: options.keys,
            values: options.values,
            keys_as_strings: options.keys_as_strings,
            values_as_strings: options.values_as_strings,
        };
        let low = bound(options.gte, options.gt)?;
        let high = bound(options.lte, options.lt)?;
        let range = Range { low, high, reverse: options.reverse };
        let steps = Steps { view, cursor: None, range, place: Place::Begin, parts };
        Ok(Handle(Walk::new(open, steps)))
    })
}

/// Goes on at this key, or at the nearest one behind it. One out of range is the end.
#[napi(catch_unwind)]
pub fn walk_seek(env: Env, walk: Handle<Walk>, target: Given) -> napi::Result<()> {
    sync(&env, || {
        let target = target.value()?;
        walk.0.with(|steps| {
            let inside = steps.range.is_above_low(target) && steps.range.is_below_high(target);
            steps.place = if inside { Place::Target(target.to_vec()) } else { Place::End };
            Ok(())
        })
    })
}

/// A chunk of up to `count` entries, which ends behind the entry that takes it over `limit_bytes`.
#[napi(catch_unwind)]
pub fn walk_read(
    env: Env,
    walk: Handle<Walk>,
    count: u32,
    limit_bytes: f64,
    here: bool,
) -> napi::Result<Reply<Value<Vec<u8>>>> {
    let open = Arc::clone(&walk.0.open);
    here_or_pooled(&env, open.reads(), here, move || {
        Ok(Box::new(move || {
            let walk = walk.0;
            let read =
                |steps: &mut Steps| steps.read(count as usize, limit_bytes as usize, &walk.stop);
            let bytes = walk.with(read)?;
            Ok(Value { bytes, as_string: false })
        }))
    })
}

/// Deletes the next entries, up to `count` of them, in one batch; says how many. 0 is the end.
#[napi(catch_unwind)]
pub fn walk_delete(store: Handle<Store>, walk: Handle<Walk>, count: f64) -> AsyncTask<Job<u32>> {
    pooled(move || {
        let call = store.0.call()?;
        Ok(Box::new(move || {
            let batch = walk.0.with(|steps| steps.deletes(count as usize))?;
            let deleted = batch.len() as u32;
            if deleted > 0 {
                call.db().write(batch)?;
            }
            Ok(deleted)
        }))
    })
}

/// Stops a read under way.
#[napi(catch_unwind)]
pub fn walk_stop(walk: Handle<Walk>) {
    walk.0.stop.store(true, Ordering::Relaxed);
}

#[napi(catch_unwind)]
pub fn walk_close(env: Env, walk: Handle<Walk>) -> napi::Result<()> {
    sync(&env, || {
        walk.0.close();
        Ok(())
    })
}
