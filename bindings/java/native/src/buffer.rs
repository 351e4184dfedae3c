//! Bytes of Java's, copied for a call: short ones onto the stack.
//!
//! They are copied also where Java has them outside its heap: another thread may change them meanwhile, and the store counts on
//! bytes that stay.

use std::mem::MaybeUninit;

use jni_sys::{jbyteArray, jobject};

use crate::env::Env;
use crate::failure::{Failure, Outcome};

/// Bytes that fit onto the stack.
const SHORT: usize = 512;

/// Where bytes of Java's are.
pub enum Source {
    /// In an array, from there on.
    Array(jbyteArray, usize),
    /// At an address.
    Address(*const u8),
}

impl Source {
    /// In a direct buffer if there is one, else in an array; from `at` on.
    pub fn either(env: &Env, array: jbyteArray, buffer: jobject, at: usize) -> Outcome<Source> {
        if buffer.is_null() {
            return Ok(Source::Array(array, at));
        }
        // SAFETY: Java passes a place in the buffer.
        Ok(Source::Address(unsafe { env.address(buffer)?.add(at) }))
    }

    /// Copies bytes to a place that has room for them.
    ///
    /// # Safety
    /// There are as many, and there is room for them.
    unsafe fn copy(&self, env: &Env, len: usize, to: *mut u8) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                Source::Array(array, at) => env.copy_out(*array, *at, len, to),
                Source::Address(from) => std::ptr::copy_nonoverlapping(*from, to, len),
            }
        }
    }
}

/// Calls with a copy of bytes, of which there are as many as Java says.
#[inline]
pub fn with<T>(
    env: &Env,
    source: Source,
    len: usize,
    run: impl FnOnce(&[u8]) -> Outcome<T>,
) -> Outcome<T> {
    if len <= SHORT {
        let mut short = [MaybeUninit::<u8>::uninit(); SHORT];
        // SAFETY: there is room; what is then read was written.
        let bytes = unsafe {
            source.copy(env, len, short.as_mut_ptr().cast());
            std::slice::from_raw_parts(short.as_ptr().cast::<u8>(), len)
        };
        return run(bytes);
    }
    let mut long = Vec::new();
    append(env, source, len, &mut long)?;
    run(&long)
}

/// The same for all bytes of an array, whose length Java passed.
#[inline]
pub fn with_array<T>(
    env: &Env,
    array: jbyteArray,
    len: i32,
    run: impl FnOnce(&[u8]) -> Outcome<T>,
) -> Outcome<T> {
    with(env, Source::Array(array, 0), len as usize, run)
}

/// Appends bytes, of which there are as many as Java says.
pub fn append(env: &Env, source: Source, len: usize, to: &mut Vec<u8>) -> Outcome<()> {
    to.try_reserve(len).map_err(|_| Failure::Memory(len))?;
    // SAFETY: there is room behind what is there, and it is written before it counts.
    unsafe {
        source.copy(env, len, to.as_mut_ptr().add(to.len()));
        to.set_len(to.len() + len);
    }
    Ok(())
}

/// All bytes of an array; `None` for null.
pub fn optional(env: &Env, array: jbyteArray) -> Outcome<Option<Vec<u8>>> {
    if array.is_null() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    append(env, Source::Array(array, 0), env.len(array), &mut bytes)?;
    Ok(Some(bytes))
}

/// All bytes of an array.
pub fn all(env: &Env, array: jbyteArray) -> Outcome<Vec<u8>> {
    Ok(optional(env, array)?.unwrap_or_default())
}

/// A text of Java's, which is UTF-8.
pub fn text(env: &Env, array: jbyteArray) -> Outcome<String> {
    String::from_utf8(all(env, array)?).map_err(|_| Failure::Invalid("not UTF-8".to_string()))
}
