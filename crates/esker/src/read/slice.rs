//! A value handed out without copying it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::super_version::SuperVersion;
use crate::util::sync::Guard;

/// The bytes of a value. Derefs to `[u8]`.
///
/// A value stored raw is not copied: the slice points into the store's mapped files and keeps them
/// (and the directory's lock) for as long as it is held. Copy it (`to_vec`) to keep it for long.
pub struct Slice {
    repr: Repr,
}

enum Repr {
    Pinned {
        /// Lives as long as `pin`; see `Slice::pinned`.
        bytes: &'static [u8],
        pin: Guard<Arc<SuperVersion>>,
    },
    Owned(Vec<u8>),
}

impl Slice {
    /// A slice into the files that `pin` keeps.
    ///
    /// # Safety
    /// `bytes` lies in a mapping owned by something that `pin` owns, and is not written to while
    /// `pin` lives.
    pub(super) unsafe fn pinned(bytes: &[u8], pin: Guard<Arc<SuperVersion>>) -> Slice {
        // SAFETY: the caller vouches that the bytes outlive `pin`, which is stored beside them
        // and dropped with them; no method hands them out for longer than `&self`.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        Slice { repr: Repr::Pinned { bytes, pin } }
    }

    pub(super) fn owned(bytes: Vec<u8>) -> Slice {
        Slice { repr: Repr::Owned(bytes) }
    }
}

impl Deref for Slice {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.repr {
            Repr::Pinned { bytes, .. } => bytes,
            Repr::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Clone for Slice {
    fn clone(&self) -> Slice {
        match &self.repr {
            Repr::Pinned { bytes, pin } => {
                let pin = Guard::from_inner(Arc::clone(pin));
                Slice { repr: Repr::Pinned { bytes, pin } }
            }
            Repr::Owned(bytes) => Slice::owned(bytes.clone()),
        }
    }
}

impl From<Slice> for Vec<u8> {
    fn from(slice: Slice) -> Vec<u8> {
        match slice.repr {
            Repr::Pinned { bytes, .. } => bytes.to_vec(),
            Repr::Owned(bytes) => bytes,
        }
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Slice {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}
