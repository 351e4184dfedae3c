//! A value where it lies, as an object with a buffer: what `get_view` makes a `memoryview` of.
//!
//! The stable ABI names the buffer protocol from 3.11 on only. The slots and the struct have been the same since 3.9, which
//! takes them for types that are made at run time; so the type is made by hand here.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use esker::Slice;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyMemoryView;
use pyo3::{Py, ffi};

use crate::error::Outcome;
use crate::fork::Own;

/// `Py_buffer`, as the stable ABI has had it since 3.11, and each version before it from 3.9 on.
#[repr(C)]
struct Buffer {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

const PYBUF_WRITABLE: c_int = 0x1;
const PYBUF_FORMAT: c_int = 0x4;
const PYBUF_ND: c_int = 0x8;
const PYBUF_STRIDES: c_int = 0x10 | PYBUF_ND;
const PY_BF_GETBUFFER: c_int = 1;

/// An object of the type: its head, and the value. NULL in one that the program made itself.
#[repr(C)]
struct Pinned {
    head: ffi::PyObject,
    value: *mut Own<Slice>,
}

/// Fills a buffer in.
///
/// # Safety
/// Called by Python, with an object of the type and a buffer to write.
unsafe extern "C" fn get_buffer(
    object: *mut ffi::PyObject,
    buffer: *mut Buffer,
    flags: c_int,
) -> c_int {
    // SAFETY: Python's call: the object is one of the type, and attached.
    unsafe {
        let value = (*object.cast::<Pinned>()).value.as_ref();
        let bytes = value.and_then(|own| own.get().ok()).filter(|_| flags & PYBUF_WRITABLE == 0);
        let Some(bytes) = bytes else {
            (*buffer).obj = ptr::null_mut();
            PyBufferError::new_err("a value of a store can only be read")
                .restore(Python::assume_attached());
            return -1;
        };
        let asked = |flag: c_int| flags & flag == flag;
        *buffer = Buffer {
            buf: bytes.as_ptr().cast_mut().cast(),
            obj: object,
            len: bytes.len() as isize,
            itemsize: 1,
            readonly: 1,
            ndim: 1,
            format: if asked(PYBUF_FORMAT) { c"B".as_ptr().cast_mut() } else { ptr::null_mut() },
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            suboffsets: ptr::null_mut(),
            internal: ptr::null_mut(),
        };
        if asked(PYBUF_ND) {
            (*buffer).shape = &raw mut (*buffer).len;
        }
        if asked(PYBUF_STRIDES) {
            (*buffer).strides = &raw mut (*buffer).itemsize;
        }
        ffi::Py_INCREF(object);
        0
    }
}

/// Gives the value back, and the object's memory.
///
/// # Safety
/// Called by Python when nothing refers to the object, and so no buffer of it is left.
unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: Python's call; the value is the box that `pinned` made, or NULL.
    unsafe {
        let value = (*object.cast::<Pinned>()).value;
        if !value.is_null() {
            drop(Box::from_raw(value));
        }
        let class = ffi::Py_TYPE(object);
        let free: ffi::freefunc = std::mem::transmute(ffi::PyType_GetSlot(class, ffi::Py_tp_free));
        free(object.cast());
        ffi::Py_DECREF(class.cast());
    }
}

fn class(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CLASS.get_or_try_init(py, || {
        let mut slots = [
            ffi::PyType_Slot { slot: PY_BF_GETBUFFER, pfunc: get_buffer as *mut c_void },
            ffi::PyType_Slot { slot: ffi::Py_tp_dealloc, pfunc: dealloc as *mut c_void },
            ffi::PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
        ];
        let mut spec = ffi::PyType_Spec {
            name: c"esker._esker.PinnedValue".as_ptr(),
            basicsize: size_of::<Pinned>() as c_int,
            itemsize: 0,
            flags: ffi::Py_TPFLAGS_DEFAULT as _,
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: attached; the specification lives during the call, its name and functions always.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec)) }
            .map(Bound::unbind)
    })
}

/// A memory view of a value, which it keeps.
pub fn pinned<'py>(py: Python<'py>, value: Slice) -> Outcome<Bound<'py, PyMemoryView>> {
    let class = class(py)?;
    // SAFETY: attached; the class is a type, whose objects begin as zeros.
    let object = unsafe {
        let object = ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0);
        let object = Bound::from_owned_ptr_or_err(py, object)?;
        // In a box: a short value lies in the slice itself, which must not move then.
        (*object.as_ptr().cast::<Pinned>()).value = Box::into_raw(Box::new(Own::new(value)));
        object
    };
    Ok(PyMemoryView::from(&object)?)
}
