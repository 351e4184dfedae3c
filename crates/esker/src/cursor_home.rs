//! A keyspace as its cursors know it: the work behind [`crate::read::refresh`], and with `gap_finder.rs` that behind
//! [`crate::read::gaps`].

use std::fmt;
use std::sync::{Arc, Weak};

use crate::error::{Error, Result};
use crate::key::{KeyOrder, Seq};
use crate::read::SuperVersion;
use crate::read::refresh::{CursorHome, NewerView};
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
        let views = &self.keyspace.view;
        let view = match snapshot {
            Some(snapshot) => {
                // Held until the view is taken: until then every compaction keeps what the snapshot sees.
                let _held = snapshot.upgrade()?;
                views.load_full()
            }
            None => views.unchanged_since(&store.visible.0, seq)?,
        };
        // Asked afterwards: the view of a store that is closed is empty.
        store.check_open().and_then(|()| self.keyspace.check_alive()).ok()?;
        Some(view)
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
    ) -> NewerView {
        if Arc::ptr_eq(&self.keyspace.view.load(), held) {
            return NewerView::None;
        }
        self.present(seq, snapshot).map_or(NewerView::Other, NewerView::Same)
    }

    fn now(&self) -> Result<(Arc<SuperVersion>, Seq)> {
        let store = self.store.upgrade().ok_or(Error::Closed)?;
        let now = store.consistent_view(&self.keyspace);
        // Asked afterwards, as above.
        store.check_open()?;
        self.keyspace.check_alive()?;
        Ok(now)
    }
}
