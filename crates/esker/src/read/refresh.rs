//! How a cursor that is kept comes to newer sources (RocksDB calls it refreshing an iterator).
//!
//! A cursor holds the sources of the moment when it was made, and their files with them. What compactions make of
//! these shows a reader at the cursor's sequence the same, as long as they keep what is visible there. That they do
//! for every snapshot, and for the present; so a cursor of a snapshot that is held, or one since whose moment nobody
//! wrote, takes the present sources whenever it is positioned. Kept from a load on, it would otherwise search as
//! many runs as there were then for as long as it lives. A cursor of the past that has no snapshot stays with what it
//! has, until its user refreshes it: then it goes on with the present.

use std::sync::Arc;

use super::gaps::GapFinder;
use super::super_version::SuperVersion;
use crate::error::Result;
use crate::key::{KeyOrder, Seq};
use crate::snapshot::{Snapshot, WeakSnapshot};

/// The keyspace of a cursor.
pub(crate) trait CursorHome: GapFinder {
    /// Its order.
    fn order(&self) -> &KeyOrder;
    /// The present super version, where a reader at `seq`, that of `snapshot` if there is one, finds in it what is in `held`.
    fn newer(
        &self,
        held: &Arc<SuperVersion>,
        seq: Seq,
        snapshot: Option<&WeakSnapshot>,
    ) -> NewerSuperVersion;
    /// The present super version, and the sequence that a reader of it reads at.
    fn now(&self) -> Result<(Arc<SuperVersion>, Seq)>;
}

/// What there is beside the super version that a cursor holds.
pub(crate) enum NewerSuperVersion {
    /// That is the present one.
    None,
    /// One that shows the same.
    Same(Arc<SuperVersion>),
    /// Present super versions show something else, now and from now on.
    Other,
}

/// What a cursor needs to take a newer super version.
pub(crate) struct Refresher {
    home: Arc<dyn CursorHome>,
    seq: Seq,
    /// Not held: a snapshot ends when its user lets go of it.
    snapshot: Option<WeakSnapshot>,
    /// Whether present super versions show something else.
    other: bool,
}

impl Refresher {
    pub(crate) fn new(home: Arc<dyn CursorHome>, seq: Seq, at: Option<&Snapshot>) -> Refresher {
        Refresher { home, seq, snapshot: at.map(Snapshot::downgrade), other: false }
    }

    /// A super version that shows the same, if there is one beside that which is held.
    #[inline]
    pub(super) fn newer(&mut self, held: &Arc<SuperVersion>) -> Option<Arc<SuperVersion>> {
        if self.other {
            return None;
        }
        match self.home.newer(held, self.seq, self.snapshot.as_ref()) {
            NewerSuperVersion::None => None,
            NewerSuperVersion::Same(super_version) => Some(super_version),
            NewerSuperVersion::Other => {
                self.other = true;
                None
            }
        }
    }

    /// The present super version, which is read at from now on; nothing where a snapshot says which moment is shown.
    pub(super) fn move_on(&mut self) -> Result<Option<(Arc<SuperVersion>, Seq)>> {
        if self.snapshot.is_some() {
            return Ok(None);
        }
        let (super_version, seq) = self.home.now()?;
        (self.seq, self.other) = (seq, false);
        Ok(Some((super_version, seq)))
    }

    pub(super) fn seq(&self) -> Seq {
        self.seq
    }

    pub(super) fn order(&self) -> &KeyOrder {
        self.home.order()
    }

    pub(super) fn gaps(&self) -> Arc<dyn GapFinder> {
        Arc::clone(&self.home) as _
    }
}
