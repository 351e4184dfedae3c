//! Keys and values, from JavaScript and to it.

use std::ops::Deref;
use std::ptr;

use esker::{MAX_KEY_LEN, MAX_VALUE_LEN};
use napi::bindgen_prelude::{Buffer, FromNapiValue, ToNapiValue, TypeName, ValidateNapiValue};
use napi::{Env, Result, Status, ValueType, sys};

use crate::error::{Fail, Outcome};

/// Longer ones are allocated.
const SHORT_BYTES: usize = 128;
/// From here on a buffer takes the memory over; below, a copy costs less.
const LENT_BYTES: usize = 16 << 10;

/// A key or a value that the program passed, copied: a string as UTF-8, or the bytes of a `Uint8Array`.
pub enum Given {
    /// The first so many bytes.
    Short([u8; SHORT_BYTES], usize),
    /// On the heap.
    Long(Vec<u8>),
    /// More bytes than any key or value can have: they were not copied.
    TooLong(usize),
    /// No memory for so many bytes.
    NoMemory(usize),
}

impl Given {
    /// As a key.
    pub fn key(&self) -> Outcome<&[u8]> {
        self.bytes(MAX_KEY_LEN, |len| esker::Error::KeyTooLong { len })
    }

    /// As a value.
    pub fn value(&self) -> Outcome<&[u8]> {
        self.bytes(MAX_VALUE_LEN, |len| esker::Error::ValueTooLong { len })
    }

    fn bytes(&self, limit: usize, too_long: fn(usize) -> esker::Error) -> Outcome<&[u8]> {
        let bytes = match self {
            Given::Short(bytes, len) => &bytes[..*len],
            Given::Long(bytes) => bytes,
            Given::TooLong(len) => return Err(too_long(*len).into()),
            Given::NoMemory(len) => return Err(Fail::NoMemory(*len)),
        };
        if bytes.len() > limit {
            return Err(too_long(bytes.len()).into());
        }
        Ok(bytes)
    }

    /// Room for `len` bytes that `fill` writes, all of them.
    fn filled(len: usize, fill: impl FnOnce(*mut u8)) -> Given {
        if len <= SHORT_BYTES {
            let mut bytes = [0; SHORT_BYTES];
            fill(bytes.as_mut_ptr());
            return Given::Short(bytes, len);
        }
        if len > MAX_VALUE_LEN {
            return Given::TooLong(len);
        }
        // One more, for the zero that Node-API writes behind a string.
        let mut bytes: Vec<u8> = Vec::new();
        if bytes.try_reserve_exact(len + 1).is_err() {
            return Given::NoMemory(len);
        }
        fill(bytes.as_mut_ptr());
        // SAFETY: there is room for so many, and `fill` wrote them.
        unsafe { bytes.set_len(len) };
        Given::Long(bytes)
    }
}

impl TypeName for Given {
    fn type_name() -> &'static str {
        "string | Uint8Array"
    }

    fn value_type() -> ValueType {
        ValueType::Unknown
    }
}

impl ValidateNapiValue for Given {}

/// A string's bytes, when it is one.
///
/// # Safety
/// The environment and the value are those of a call under way.
unsafe fn string(env: sys::napi_env, value: sys::napi_value) -> Option<Given> {
    let mut short = [0u8; SHORT_BYTES];
    let mut len = 0;
    // SAFETY: so many bytes at most are written, the zero among them.
    unsafe {
        let at = short.as_mut_ptr().cast();
        let done = sys::napi_get_value_string_utf8(env, value, at, SHORT_BYTES, &mut len);
        if done != sys::Status::napi_ok {
            return None;
        }
        // A character takes four bytes at most: with room for one more, this was all.
        if len + 5 <= SHORT_BYTES {
            return Some(Given::Short(short, len));
        }
        sys::napi_get_value_string_utf8(env, value, ptr::null_mut(), 0, &mut len);
    }
    if len < SHORT_BYTES {
        // SAFETY: as above; there is room for the zero.
        unsafe {
            let at = short.as_mut_ptr().cast();
            sys::napi_get_value_string_utf8(env, value, at, SHORT_BYTES, &mut len);
        }
        return Some(Given::Short(short, len));
    }
    let fill = |at: *mut u8, room: usize| {
        // SAFETY: there is room for the string and its zero.
        unsafe { sys::napi_get_value_string_utf8(env, value, at.cast(), room, ptr::null_mut()) };
    };
    if len == SHORT_BYTES {
        let mut bytes = vec![0; len + 1];
        fill(bytes.as_mut_ptr(), len + 1);
        bytes.truncate(len);
        return Some(Given::Long(bytes));
    }
    Some(Given::filled(len, |at| fill(at, len + 1)))
}

/// A `Uint8Array`'s bytes, when it is one. They may be shared with a thread that writes them, so they are copied as they come and
/// never lent.
///
/// # Safety
/// As of `string`.
unsafe fn array(env: sys::napi_env, value: sys::napi_value) -> Option<Given> {
    let (mut kind, mut len, mut data) = (0, 0, ptr::null_mut());
    let null = ptr::null_mut();
    // SAFETY: Node-API fills in what it is given places for.
    let done = unsafe {
        sys::napi_get_typedarray_info(env, value, &mut kind, &mut len, &mut data, null, null.cast())
    };
    let is_bytes = kind == sys::TypedarrayType::uint8_array;
    if done != sys::Status::napi_ok || !is_bytes {
        return None;
    }
    // What was detached has no bytes.
    let len = if data.is_null() { 0 } else { len };
    Some(Given::filled(len, |at| {
        // SAFETY: the array has so many bytes, and so has the room.
        unsafe { ptr::copy_nonoverlapping(data.cast::<u8>(), at, len) }
    }))
}

impl FromNapiValue for Given {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        // SAFETY: the caller's environment and value.
        let given = unsafe { string(env, value).or_else(|| array(env, value)) };
        given.ok_or_else(|| {
            let what = "keys and values are strings or Uint8Arrays once they are encoded";
            napi::Error::new(Status::InvalidArg, what.to_string())
        })
    }
}

/// A copy. Where there is no memory for it that is an error, and not the end of the process.
pub fn copied(bytes: &[u8]) -> Outcome<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| Fail::NoMemory(bytes.len()))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// A value that was read, as a string or a buffer.
pub struct Value<B> {
    pub bytes: B,
    pub as_string: bool,
}

impl<B> TypeName for Value<B> {
    fn type_name() -> &'static str {
        "string | Buffer"
    }

    fn value_type() -> ValueType {
        ValueType::Unknown
    }
}

impl<B: Deref<Target = [u8]>> Value<B> {
    /// A copy of JavaScript's own.
    ///
    /// # Safety
    /// The environment is that of a call under way.
    unsafe fn copy(&self, env: sys::napi_env) -> Result<sys::napi_value> {
        let mut value = ptr::null_mut();
        let (data, len) = (self.bytes.as_ptr(), self.bytes.len());
        // SAFETY: so many bytes are there.
        let done = unsafe {
            if self.as_string {
                sys::napi_create_string_utf8(env, data.cast(), len as isize, &mut value)
            } else {
                sys::napi_create_buffer_copy(env, len, data.cast(), ptr::null_mut(), &mut value)
            }
        };
        if done != sys::Status::napi_ok {
            let fail = if self.as_string { Fail::NoString(len) } else { Fail::NoMemory(len) };
            return Err(fail.into_js(&Env::from_raw(env)));
        }
        Ok(value)
    }
}

impl ToNapiValue for Value<esker::Slice> {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> Result<sys::napi_value> {
        // SAFETY: the caller's environment.
        unsafe { value.copy(env) }
    }
}

impl ToNapiValue for Value<Vec<u8>> {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> Result<sys::napi_value> {
        // SAFETY: the caller's environment.
        unsafe {
            if value.as_string || value.bytes.len() < LENT_BYTES {
                value.copy(env)
            } else {
                Buffer::to_napi_value(env, Buffer::from(value.bytes))
            }
        }
    }
}
