//! Handles: what JavaScript holds of ours, as externals that are freed when they are collected.
//!
//! A handle may also be told of the end of its environment (a worker that ends or is terminated, the end of the process), which comes
//! before what is left is collected.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use napi::bindgen_prelude::{FromNapiValue, ToNapiValue, TypeName, ValidateNapiValue};
use napi::{Result, Status, ValueType, check_status, sys};

/// Begins each external of ours; those of other addons seldom begin so.
const MARK: u64 = 0x6573_6b65_7268_646c;

/// What can be held.
pub trait Held: Any + Send + Sync {
    /// What it is called when another was expected.
    const NAME: &'static str;
    /// Whether `environment_ends` is to be called.
    const IS_TOLD: bool = false;

    /// The environment ends: nothing of JavaScript's runs in it any more.
    fn environment_ends(&self) {}
}

/// Something of ours as JavaScript holds it.
pub struct Handle<T: Held>(pub Arc<T>);

struct Cell {
    mark: u64,
    held: Arc<dyn Any + Send + Sync>,
    ends: fn(&(dyn Any + Send + Sync)),
    is_told: bool,
}

fn ends<T: Held>(held: &(dyn Any + Send + Sync)) {
    if let Some(held) = held.downcast_ref::<T>() {
        held.environment_ends();
    }
}

/// # Safety
/// Called by Node at the end of the environment, with the cell that `to_napi_value` made and `finalize` did not free.
unsafe extern "C" fn environment_ends(data: *mut c_void) {
    // SAFETY: `finalize` takes the hook back before it frees the cell.
    let cell = unsafe { &*data.cast::<Cell>() };
    let _ = catch_unwind(AssertUnwindSafe(|| (cell.ends)(&*cell.held)));
}

/// # Safety
/// Called by Node once, with the cell that `to_napi_value` made, when nothing of JavaScript's refers to it.
unsafe extern "C" fn finalize(env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: the cell is a box of ours that nobody else frees; taking back a hook that ran does nothing.
    unsafe {
        if (*data.cast::<Cell>()).is_told {
            sys::napi_remove_env_cleanup_hook(env, Some(environment_ends), data);
        }
        let cell = Box::from_raw(data.cast::<Cell>());
        let _ = catch_unwind(AssertUnwindSafe(|| drop(cell)));
    }
}

impl<T: Held> TypeName for Handle<T> {
    fn type_name() -> &'static str {
        T::NAME
    }

    fn value_type() -> ValueType {
        ValueType::External
    }
}

impl<T: Held> ValidateNapiValue for Handle<T> {}

impl<T: Held> ToNapiValue for Handle<T> {
    unsafe fn to_napi_value(env: sys::napi_env, handle: Self) -> Result<sys::napi_value> {
        let cell = Cell { mark: MARK, held: handle.0, ends: ends::<T>, is_told: T::IS_TOLD };
        let data: *mut c_void = Box::into_raw(Box::new(cell)).cast();
        let mut value = ptr::null_mut();
        // SAFETY: the environment is the caller's; the cell is freed here when nobody took it.
        unsafe {
            let done =
                sys::napi_create_external(env, data, Some(finalize), ptr::null_mut(), &mut value);
            if done != sys::Status::napi_ok {
                drop(Box::from_raw(data.cast::<Cell>()));
            }
            check_status!(done)?;
            if T::IS_TOLD {
                check_status!(sys::napi_add_env_cleanup_hook(env, Some(environment_ends), data))?;
            }
        }
        Ok(value)
    }
}

impl<T: Held> FromNapiValue for Handle<T> {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        let wrong = || napi::Error::new(Status::InvalidArg, format!("not a {}", T::NAME));
        let mut data = ptr::null_mut();
        // SAFETY: the environment and the value are the caller's.
        if unsafe { sys::napi_get_value_external(env, value, &mut data) } != sys::Status::napi_ok {
            return Err(wrong());
        }
        let cell = data.cast::<Cell>();
        if cell.is_null() || !cell.is_aligned() {
            return Err(wrong());
        }
        // SAFETY: externals that the package's own scripts pass are of `to_napi_value`; the mark is read before the rest is trusted.
        let held = unsafe {
            if ptr::addr_of!((*cell).mark).read() != MARK {
                return Err(wrong());
            }
            Arc::clone(&(*cell).held)
        };
        held.downcast::<T>().map(Handle).map_err(|_| wrong())
    }
}
