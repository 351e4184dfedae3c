//! A keyspace as its cursors know it: the work behind [`crate::read::refresh`], and with `gap_finder.rs` that behind
//! [`crate::read::gaps`].

use std::fmt;
use std::sync::{Arc, Weak};

use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq};
use crate::read::SuperVersion;
use crate::read::refresh::{CursorHome, NewerSuperVersion};
use crate::snapshot::WeakSnapshot;
use crate::store::{KeyspaceState, Store};

/// The keyspace of cursors. Keeps no store open.
pub(crate) struct CursorKeyspace {
    pub(crate) store: Weak<Store>,
    pub(crate) keyspace: Arc<KeyspaceState>,
}

impl CursorKeyspace {
    pub(crate) fn new(store: &Arc<Store>, keyspace: &Arc<KeyspaceState>) -> CursorKeyspace {
        CursorKeyspace { store: Arc::downgrade(store), keyspace: Arc::clone(keyspace) }
    }

    #[cold]
    fn present(&self, seq: Seq, snapshot: Option<&WeakSnapshot>) -> Option<Arc<SuperVersion>> {
        let store = self.store.upgrade()?;
        let super_versions = &self.keyspace.super_version;
        let super_version = match snapshot {
            Some(snapshot) => {
                // Held until the super version is taken: until then every compaction keeps what the snapshot sees.
                let _held = snapshot.upgrade()?;
                super_versions.load_full()
            }
            None => super_versions.unchanged_since(&store.visible.0, seq)?,
        };
        // Asked afterwards: the super version of a store that is closed is empty.
        store.check_open().and_then(|()| self.keyspace.check_alive()).ok()?;
        Some(super_version)
    }
}

impl fmt::Debug for CursorKeyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CursorKeyspace({:?})", self.keyspace.name)
    }
}

impl CursorHome for CursorKeyspace {
    fn order(&self) -> &KeyOrder {
        &self.keyspace.order
    }

    fn newer(
        &self,
        held: &Arc<SuperVersion>,
        seq: Seq,
        snapshot: Option<&WeakSnapshot>,
    ) -> NewerSuperVersion {
        if Arc::ptr_eq(&self.keyspace.super_version.load(), held) {
            return NewerSuperVersion::None;
        }
        self.present(seq, snapshot).map_or(NewerSuperVersion::Other, NewerSuperVersion::Same)
    }

    fn now(&self) -> Result<(Arc<SuperVersion>, Seq)> {
        let store = self.store.upgrade().ok_or(Error::Closed)?;
        let now = store.consistent_super_version(&self.keyspace);
        // Asked afterwards, as above.
        store.check_open()?;
        self.keyspace.check_alive()?;
        Ok(now)
    }
}
