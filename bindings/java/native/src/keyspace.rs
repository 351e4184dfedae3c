//! Keyspaces: making, writing, compacting.

use std::ops::Bound;

use esker::{Compression, Db, Durability, KeyOrder, Keyspace, KeyspaceOptions};
use jni_sys::{jboolean, jbyteArray, jint, jlong, jobject};

use crate::boxes::{Handle, give};
use crate::buffer::{self, Source};
use crate::env::{Env, native};
use crate::failure::{Failure, Outcome};
use crate::load;
use crate::reader::Reader;
use crate::report::Report;

/// The durability of a constant of Java's; `None` is the store's.
pub fn durability(ordinal: jint) -> Outcome<Option<Durability>> {
    match ordinal {
        0 => Ok(None),
        1 => Ok(Some(Durability::Buffered)),
        2 => Ok(Some(Durability::Synced)),
        _ => Err(Failure::Invalid("no such durability".to_string())),
    }
}

/// The compression of a constant of Java's; `None` for -1.
pub fn compression(ordinal: jint) -> Outcome<Option<Compression>> {
    match ordinal {
        -1 => Ok(None),
        0 => Ok(Some(Compression::None)),
        1 => Ok(Some(Compression::Lz4)),
        2 => Ok(Some(Compression::Zstd)),
        _ => Err(Failure::Invalid("no such compression".to_string())),
    }
}

/// The order of a constant of Java's; `None` for -1.
pub fn order(ordinal: jint) -> Outcome<Option<KeyOrder>> {
    match ordinal {
        -1 => Ok(None),
        0 => Ok(Some(KeyOrder::Bytewise)),
        1 => Ok(Some(KeyOrder::Reverse)),
        _ => Err(Failure::Invalid("no such order".to_string())),
    }
}

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Bounds as Java passes them.
fn range(env: &Env, bounds: [(jbyteArray, jboolean); 2]) -> Outcome<Bounds> {
    let [from, to] = bounds.map(|(key, inclusive)| {
        buffer::optional(env, key).map(|key| match key {
            None => Bound::Unbounded,
            Some(key) if inclusive => Bound::Included(key),
            Some(key) => Bound::Excluded(key),
        })
    });
    Ok((from?, to?))
}

fn put(keyspace: &Keyspace, key: &[u8], value: &[u8], wanted: jint) -> Outcome<()> {
    match durability(wanted)? {
        None => keyspace.put(key, value)?,
        Some(durability) => keyspace.put_with(key, value, durability)?,
    }
    Ok(())
}

native! {
    fn Java_io_esker_Native_defaultKeyspace(_env, store: Handle<Db>) -> jlong {
        Ok(give(Reader::Now(store.get().default_keyspace().clone())))
    }

    fn Java_io_esker_Native_keyspace(env, store: Handle<Db>, name: jbyteArray) -> jlong {
        let name = buffer::text(env, name)?;
        Ok(give(Reader::Now(store.get().keyspace(&name)?)))
    }

    fn Java_io_esker_Native_createKeyspace(
        env, store: Handle<Db>, name: jbyteArray, packed: jint, threshold: jint, ordered: jint,
    ) -> jlong {
        let name = buffer::text(env, name)?;
        let mut options = KeyspaceOptions::new();
        options.compression = compression(packed)?;
        options.blob_threshold = usize::try_from(threshold).ok();
        options.comparator = order(ordered)?.unwrap_or_default();
        Ok(give(Reader::Now(store.get().create_keyspace(&name, options)?)))
    }

    fn Java_io_esker_Native_dropKeyspace(env, store: Handle<Db>, name: jbyteArray) -> () {
        let name = buffer::text(env, name)?;
        Ok(store.get().drop_keyspace(&name)?)
    }

    fn Java_io_esker_Native_keyspaces(env, store: Handle<Db>) -> jbyteArray {
        let mut report = Report::default();
        report.list(&store.get().keyspaces(), |report, name| report.text(name));
        env.bytes(report.bytes())
    }

    fn Java_io_esker_Native_order(_env, keyspace: Handle<Reader>) -> jint {
        let keyspace = keyspace.get().keyspace()?;
        // Whether it is there, and the store open.
        keyspace.multi_get::<&[u8]>(&[])?;
        Ok(jint::from(keyspace.comparator_name() == KeyOrder::Reverse.name()))
    }

    fn Java_io_esker_Native_compactRange(
        env,
        keyspace: Handle<Reader>,
        from: jbyteArray,
        from_inclusive: jboolean,
        to: jbyteArray,
        to_inclusive: jboolean,
    ) -> () {
        let range = range(env, [(from, from_inclusive), (to, to_inclusive)])?;
        Ok(keyspace.get().keyspace()?.compact_range(range)?)
    }

    fn Java_io_esker_Native_approximateSize(
        env,
        keyspace: Handle<Reader>,
        from: jbyteArray,
        from_inclusive: jboolean,
        to: jbyteArray,
        to_inclusive: jboolean,
    ) -> jlong {
        let range = range(env, [(from, from_inclusive), (to, to_inclusive)])?;
        Ok(keyspace.get().keyspace()?.approximate_size(range)? as jlong)
    }

    fn Java_io_esker_Native_bulkLoad(env, keyspace: Handle<Reader>, source: jobject) -> jlong {
        let source = load::Source::new(env, source);
        Ok(keyspace.get().keyspace()?.try_bulk_load(source)? as jlong)
    }

    fn Java_io_esker_Native_put(
        env,
        keyspace: Handle<Reader>,
        key: jbyteArray,
        key_len: jint,
        value: jbyteArray,
        value_len: jint,
        durability: jint,
    ) -> () {
        let keyspace = keyspace.get().keyspace()?;
        buffer::with_array(env, key, key_len, |key| {
            buffer::with_array(env, value, value_len, |value| put(keyspace, key, value, durability))
        })
    }

    fn Java_io_esker_Native_putBuffers(
        env,
        keyspace: Handle<Reader>,
        key_array: jbyteArray,
        key_buffer: jobject,
        key_at: jint,
        key_len: jint,
        value_array: jbyteArray,
        value_buffer: jobject,
        value_at: jint,
        value_len: jint,
        durability: jint,
    ) -> () {
        let keyspace = keyspace.get().keyspace()?;
        let key = Source::either(env, key_array, key_buffer, key_at as usize)?;
        let value = Source::either(env, value_array, value_buffer, value_at as usize)?;
        buffer::with(env, key, key_len as usize, |key| {
            buffer::with(env, value, value_len as usize, |value| put(keyspace, key, value, durability))
        })
    }

    fn Java_io_esker_Native_delete(
        env, keyspace: Handle<Reader>, key: jbyteArray, len: jint, wanted: jint,
    ) -> () {
        let keyspace = keyspace.get().keyspace()?;
        buffer::with_array(env, key, len, |key| {
            match durability(wanted)? {
                None => keyspace.delete(key)?,
                Some(durability) => keyspace.delete_with(key, durability)?,
            }
            Ok(())
        })
    }
}
