//! Keys and values handed out without copying them, or without memory of their own.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use super::super_version::SuperVersion;
use crate::util::sync::Guard;

/// The bytes of a value, or of a key that an iterator gave. Derefs to `[u8]`.
///
/// A value stored raw is not copied: the slice points into the store's mapped files and keeps them
/// (and the directory's lock) for as long as it is held. Copy it (`to_vec`) to keep it for long.
///
/// Compares, orders and hashes as its bytes do.
pub struct Slice {
    repr: Repr,
}

/// The tag is a word: behind one of a byte the short form begins at an odd address, and a slice is then moved in
/// pieces that the processor cannot forward from store to load, which cost a `get` an eighth.
#[repr(u64)]
enum Repr {
    Pinned {
        /// Lives as long as `pin`; see `Slice::pinned`.
        bytes: &'static [u8],
        pin: Guard<Arc<SuperVersion>>,
    },
    /// As `Pinned`, by an iterator.
    Walked {
        bytes: &'static [u8],
        pin: Arc<Pin>,
    },
    Owned(Vec<u8>),
    Short {
        len: u8,
        bytes: [u8; SHORT],
    },
}

/// What an iterator's slices keep a super version by. It has a count of its own, so that walks on several threads do
/// not pass the one of the super version between their cores for each entry.
#[derive(Debug)]
pub(super) struct Pin(pub Arc<SuperVersion>);

/// So many bytes take no memory of their own: what makes the slice no larger than its other forms do.
pub(super) const SHORT: usize = 31;

impl Slice {
    /// As [`pinned`](Slice::pinned), for one of many slices that share a pin.
    ///
    /// # Safety
    /// The same.
    #[inline]
    pub(super) unsafe fn walked(bytes: &[u8], pin: &Arc<Pin>) -> Slice {
        // SAFETY: as in `pinned`.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        Slice { repr: Repr::Walked { bytes, pin: Arc::clone(pin) } }
    }

    /// A copy.
    #[inline]
    pub(super) fn copy_of(bytes: &[u8]) -> Slice {
        if bytes.len() > SHORT {
            return Slice::owned(bytes.to_vec());
        }
        let mut short = [0; SHORT];
        short[..bytes.len()].copy_from_slice(bytes);
        Slice { repr: Repr::Short { len: bytes.len() as u8, bytes: short } }
    }

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
            Repr::Pinned { bytes, .. } | Repr::Walked { bytes, .. } => bytes,
            Repr::Owned(bytes) => bytes,
            Repr::Short { len, bytes } => &bytes[..usize::from(*len)],
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
            Repr::Walked { bytes, pin } => {
                Slice { repr: Repr::Walked { bytes, pin: Arc::clone(pin) } }
            }
            Repr::Owned(bytes) => Slice::owned(bytes.clone()),
            Repr::Short { len, bytes } => Slice { repr: Repr::Short { len: *len, bytes: *bytes } },
        }
    }
}

impl From<Slice> for Vec<u8> {
    fn from(slice: Slice) -> Vec<u8> {
        match slice.repr {
            Repr::Owned(bytes) => bytes,
            _ => slice.to_vec(),
        }
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Slice {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Slice {}

impl PartialEq<Slice> for Vec<u8> {
    fn eq(&self, other: &Slice) -> bool {
        **self == **other
    }
}

impl PartialEq<Slice> for [u8] {
    fn eq(&self, other: &Slice) -> bool {
        *self == **other
    }
}

impl PartialEq<Slice> for &[u8] {
    fn eq(&self, other: &Slice) -> bool {
        **self == **other
    }
}

impl PartialOrd for Slice {
    fn partial_cmp(&self, other: &Slice) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slice {
    fn cmp(&self, other: &Slice) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Slice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl Borrow<[u8]> for Slice {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}
