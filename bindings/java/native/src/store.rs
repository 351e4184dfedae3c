//! Stores as a whole.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use esker::{Db, Options};
use jni_sys::{jbyteArray, jint, jlong};

use crate::boxes::{Handle, give};
use crate::buffer;
use crate::env::{Env, native};
use crate::failure::{Failure, Outcome};
use crate::keyspace::{compression, durability, order};
use crate::report::Report;

fn path(env: &Env, bytes: jbyteArray) -> Outcome<PathBuf> {
    Ok(PathBuf::from(OsString::from_vec(buffer::all(env, bytes)?)))
}

fn size(number: jint) -> Outcome<usize> {
    usize::try_from(number).map_err(|_| Failure::Invalid(format!("{number} is no size")))
}

native! {
    fn Java_io_esker_Native_version(env) -> jbyteArray {
        env.bytes(env!("CARGO_PKG_VERSION").as_bytes())
    }

    fn Java_io_esker_Native_open(
        env,
        directory: jbyteArray,
        memory: jlong,
        wanted_durability: jint,
        packed: jint,
        flags: jint,
        blob_threshold: jint,
        block_size: jint,
        segment_size: jlong,
        ordered: jint,
    ) -> jlong {
        let flag = |bit: jint| flags & bit != 0;
        let mut options = Options::new()
            .memory(memory as u64)
            .durability(durability(wanted_durability)?.unwrap_or_default())
            .compression(compression(packed)?.unwrap_or_default())
            .create_if_missing(flag(1))
            .error_if_exists(flag(2))
            .read_only(flag(4))
            .paranoid_checks(flag(8))
            .flush_on_close(flag(16))
            .blob_threshold(size(blob_threshold)?)
            .block_size(size(block_size)?);
        if segment_size > 0 {
            options = options.segment_size(segment_size as u64);
        }
        if let Some(order) = order(ordered)? {
            options = options.comparator(order);
        }
        Ok(give(options.open(path(env, directory)?)?))
    }

    fn Java_io_esker_Native_closeStore(_env, store: Handle<Db>) -> () {
        Ok(store.get().clone().close()?)
    }

    fn Java_io_esker_Native_freeStore(_env, store: Handle<Db>) -> () {
        store.free();
        Ok(())
    }

    fn Java_io_esker_Native_flush(_env, store: Handle<Db>) -> () {
        Ok(store.get().flush()?)
    }

    fn Java_io_esker_Native_sync(_env, store: Handle<Db>) -> () {
        Ok(store.get().sync()?)
    }

    fn Java_io_esker_Native_waitForCompactions(_env, store: Handle<Db>) -> () {
        Ok(store.get().wait_for_compactions()?)
    }

    fn Java_io_esker_Native_resume(_env, store: Handle<Db>) -> () {
        Ok(store.get().resume()?)
    }

    fn Java_io_esker_Native_checkpoint(env, store: Handle<Db>, directory: jbyteArray) -> () {
        Ok(store.get().checkpoint(path(env, directory)?)?)
    }

    fn Java_io_esker_Native_stats(env, store: Handle<Db>) -> jbyteArray {
        env.bytes(Report::stats(&store.get().stats()).bytes())
    }

    fn Java_io_esker_Native_property(env, store: Handle<Db>, name: jbyteArray) -> jbyteArray {
        let text = store.get().property(&buffer::text(env, name)?);
        text.map_or(Ok(std::ptr::null_mut()), |text| env.bytes(text.as_bytes()))
    }

    fn Java_io_esker_Native_verifyStore(env, store: Handle<Db>) -> jbyteArray {
        env.bytes(Report::verify(&store.get().verify()?).bytes())
    }

    fn Java_io_esker_Native_verify(env, directory: jbyteArray) -> jbyteArray {
        env.bytes(Report::verify(&Db::verify_path(path(env, directory)?)?).bytes())
    }

    fn Java_io_esker_Native_repair(
        env,
        directory: jbyteArray,
        packed: jint,
        block_size: jint,
        ordered: jint,
    ) -> jbyteArray {
        let mut options = Options::new()
            .compression(compression(packed)?.unwrap_or_default())
            .block_size(size(block_size)?);
        if let Some(order) = order(ordered)? {
            options = options.comparator(order);
        }
        env.bytes(Report::repair(&options.repair(path(env, directory)?)?).bytes())
    }

    fn Java_io_esker_Native_destroy(env, directory: jbyteArray) -> () {
        Ok(Db::destroy(path(env, directory)?)?)
    }
}
