//! Reading: a keyspace now, or as a snapshot sees it.

use std::ffi::c_void;

use esker::{Cursor, Db, Keyspace, Slice, Snapshot, View};
use jni_sys::{jboolean, jbyteArray, jint, jlong, jlongArray, jobject, jobjectArray};

use crate::boxes::{Handle, give};
use crate::buffer::{self, Source};
use crate::cursor::Walk;
use crate::env::native;
use crate::failure::{Failure, Outcome};

/// What Java's `Reader` has.
pub enum Reader {
    Now(Keyspace),
    Then(View),
}

macro_rules! either {
    ($reader:expr, $r:ident => $call:expr) => {
        match $reader {
            Reader::Now($r) => $call,
            Reader::Then($r) => $call,
        }
    };
}

impl Reader {
    #[inline]
    fn value(&self, key: &[u8]) -> Outcome<Option<Slice>> {
        Ok(either!(self, r => r.get(key))?)
    }

    /// The keyspace, where Java has a `Keyspace`.
    #[inline]
    pub fn keyspace(&self) -> Outcome<&Keyspace> {
        match self {
            Reader::Now(keyspace) => Ok(keyspace),
            Reader::Then(_) => Err(Failure::Invalid("a snapshot can only be read".to_string())),
        }
    }

    fn walk(&self, keys_only: bool) -> Cursor {
        either!(self, r => if keys_only { r.cursor_keys_only() } else { r.cursor() })
    }
}

native! {
    fn Java_io_esker_Native_freeReader(_env, reader: Handle<Reader>) -> () {
        reader.free();
        Ok(())
    }

    fn Java_io_esker_Native_get(env, reader: Handle<Reader>, key: jbyteArray, len: jint) -> jbyteArray {
        let value = buffer::with_array(env, key, len, |key| reader.get().value(key))?;
        value.map_or(Ok(std::ptr::null_mut()), |value| env.bytes(&value))
    }

    fn Java_io_esker_Native_getInto(
        env,
        reader: Handle<Reader>,
        key_array: jbyteArray,
        key_buffer: jobject,
        key_at: jint,
        key_len: jint,
        array: jbyteArray,
        direct: jobject,
        at: jint,
        room: jint,
    ) -> jint {
        let key = Source::either(env, key_array, key_buffer, key_at as usize)?;
        let value = buffer::with(env, key, key_len as usize, |key| reader.get().value(key))?;
        let Some(value) = value else { return Ok(-1) };
        let part = &value[..value.len().min(room as usize)];
        if direct.is_null() {
            env.copy_in(array, at as usize, part);
        } else if !part.is_empty() {
            // SAFETY: Java passes a place in the buffer, and how much room there is from it on. The value is in memory of the
            // store's.
            unsafe { env.copy_into_buffer(direct, at as usize, part)? };
        }
        Ok(value.len() as jint)
    }

    fn Java_io_esker_Native_lend(
        env, reader: Handle<Reader>, key: jbyteArray, len: jint, lent: jlongArray,
    ) -> jboolean {
        let value = buffer::with_array(env, key, len, |key| reader.get().value(key))?;
        let Some(value) = value else { return Ok(false) };
        // In a box first: a short value lies in the slice itself.
        let len = value.len() as jlong;
        let slice = give(value);
        let address = Handle::<Slice>::of(slice).get().as_ptr() as jlong;
        env.set_longs(lent, &[address, len, slice]);
        Ok(true)
    }

    fn Java_io_esker_Native_buffer(env, address: jlong, len: jlong) -> jobject {
        // SAFETY: what `lend` gave; Java frees the slice when the buffer is unreachable. It makes it read-only at once.
        unsafe { env.buffer(address as *mut c_void, len) }
    }

    fn Java_io_esker_Native_freeSlice(_env, slice: Handle<Slice>) -> () {
        slice.free();
        Ok(())
    }

    fn Java_io_esker_Native_contains(
        env, reader: Handle<Reader>, key: jbyteArray, len: jint,
    ) -> jboolean {
        buffer::with_array(env, key, len, |key| {
            Ok(either!(reader.get(), r => r.contains_key(key))?)
        })
    }

    fn Java_io_esker_Native_multiGet(
        env, reader: Handle<Reader>, keys: jobjectArray,
    ) -> jobjectArray {
        let count = env.len(keys);
        let mut asked = Vec::with_capacity(count);
        for at in 0..count {
            let key = env.element(keys, at)?;
            asked.push(buffer::all(env, key)?);
            env.forget(key);
        }
        let found = either!(reader.get(), r => r.multi_get(&asked))?;
        let values = env.new_arrays(count)?;
        for (at, value) in found.iter().enumerate() {
            let Some(value) = value else { continue };
            let value = env.bytes(value)?;
            env.set_element(values, at, value)?;
            env.forget(value);
        }
        Ok(values)
    }

    fn Java_io_esker_Native_cursor(_env, reader: Handle<Reader>, keys_only: jboolean) -> jlong {
        Ok(give(Walk::new(reader.get().walk(keys_only))))
    }

    fn Java_io_esker_Native_snapshot(_env, store: Handle<Db>) -> jlong {
        Ok(give(store.get().snapshot()))
    }

    fn Java_io_esker_Native_sequence(_env, snapshot: Handle<Snapshot>) -> jlong {
        Ok(snapshot.get().sequence() as jlong)
    }

    fn Java_io_esker_Native_freeSnapshot(_env, snapshot: Handle<Snapshot>) -> () {
        snapshot.free();
        Ok(())
    }

    fn Java_io_esker_Native_at(
        _env, keyspace: Handle<Reader>, snapshot: Handle<Snapshot>,
    ) -> jlong {
        Ok(give(Reader::Then(keyspace.get().keyspace()?.at(snapshot.get()))))
    }
}
