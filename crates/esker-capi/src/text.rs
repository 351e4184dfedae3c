//! Texts that the library hands out.

use std::ffi::c_char;

use crate::ffi::{quietly, set};

/// A text: `len` bytes at `data`, and a NUL behind them. The caller's, given back with
/// esker_string_free.
#[repr(C)]
pub struct esker_string {
    /// The bytes; NULL when there is no text.
    pub data: *mut c_char,
    /// How many there are, without the NUL.
    pub len: usize,
}

impl esker_string {
    /// No text.
    pub(crate) const NONE: esker_string = esker_string { data: std::ptr::null_mut(), len: 0 };

    pub(crate) fn new(text: String) -> esker_string {
        let len = text.len();
        let mut bytes = text.into_bytes();
        bytes.push(0);
        let data = Box::into_raw(bytes.into_boxed_slice());
        esker_string { data: data.cast(), len }
    }

    /// Gives the memory back and leaves no text.
    ///
    /// # Safety
    /// It is as `new` made it, or none.
    unsafe fn release(&mut self) {
        let esker_string { data, len } = std::mem::replace(self, esker_string::NONE);
        if !data.is_null() {
            // SAFETY: the box that `new` made, of the text and a NUL.
            drop(unsafe {
                Box::from_raw(std::ptr::slice_from_raw_parts_mut(data.cast::<u8>(), len + 1))
            });
        }
    }
}

/// Hands texts out as an array, whose length goes beside it.
pub(crate) fn array(texts: impl Iterator<Item = String>) -> (*mut esker_string, usize) {
    let texts: Box<[esker_string]> = texts.map(esker_string::new).collect();
    let len = texts.len();
    (Box::into_raw(texts).cast(), len)
}

/// Gives a text back, and sets both of its fields to 0. Nothing happens to NULL, or to a text that is
/// set so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_string_free(string: *mut esker_string) {
    // SAFETY: the caller keeps the rules of the header.
    quietly((), || unsafe {
        if !string.is_null() {
            (*string).release();
        }
    });
}

/// Gives back an array of `count` texts, as esker_db_keyspaces makes it, and sets the variable to NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_strings_free(names: *mut *mut esker_string, count: usize) {
    // SAFETY: the caller keeps the rules of the header.
    quietly((), || unsafe {
        if names.is_null() || (*names).is_null() {
            return;
        }
        let mut texts = Box::from_raw(std::ptr::slice_from_raw_parts_mut(*names, count));
        set(names, std::ptr::null_mut());
        texts.iter_mut().for_each(|text| text.release());
    });
}
