//! The key of a version in tables and manifests: the user's key, then eight bytes with the sequence in
//! the upper seven of them and the kind in the lowest.

use crate::merge::{Tag, VALUE};

/// Bytes behind the user's key.
pub(super) const TAG_BYTES: usize = 8;

/// Kinds of versions: [`VALUE`], and this.
pub(super) const DELETION: u64 = 0;

/// User's key and tag. `None` when it is too short, or of a kind that LevelDB does not have.
pub(super) fn split(key: &[u8]) -> Option<(&[u8], Tag)> {
    let (user, tag) = key.split_at_checked(key.len().checked_sub(TAG_BYTES)?)?;
    let tag = u64::from_le_bytes(tag.try_into().ok()?);
    matches!(tag & 0xff, DELETION | VALUE).then_some((user, tag))
}

/// A tag of a sequence and a kind.
pub(super) fn tag(sequence: u64, kind: u64) -> Tag {
    sequence << 8 | kind
}

/// Sequences have 56 bits.
pub(super) const MAX_SEQUENCE: u64 = (1 << 56) - 1;
