//! What Java holds: addresses of boxes.

use std::marker::PhantomData;

use jni_sys::jlong;

/// The address of a box, as Java passes it: of what [`give`] gave for the same type, and not freed. `Native.java`'s classes
/// see to that: an address is in a final field beside what frees it.
#[repr(transparent)]
pub struct Handle<T>(jlong, PhantomData<*const T>);

/// Gives Java a box. It comes back to [`Handle::free`].
pub fn give<T>(value: T) -> jlong {
    Box::into_raw(Box::new(value)) as jlong
}

impl<T> Handle<T> {
    /// One that Java passed among others.
    pub fn of(address: jlong) -> Handle<T> {
        Handle(address, PhantomData)
    }

    /// What is in the box.
    #[inline]
    pub fn get(&self) -> &T {
        // SAFETY: Java keeps the box during the call, and shares it as this type can be shared.
        unsafe { &*(self.0 as *const T) }
    }

    /// What is in the box, to change: where Java lets one thread at a time use it.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: Java keeps the box during the call, and calls for a cursor with its flag `busy` held.
        unsafe { &mut *(self.0 as *mut T) }
    }

    /// Takes the box back.
    pub fn free(self) {
        // SAFETY: Java frees each box once, when nothing calls with it any more.
        drop(unsafe { Box::from_raw(self.0 as *mut T) });
    }
}
