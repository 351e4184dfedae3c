//! Measuring a gap: the work behind [`crate::read::gaps`].

use std::fmt;
use std::sync::{Arc, Weak};

use crate::error::Result;
use crate::read::cursor::Cursor;
use crate::read::gaps::{GapFinder, KeyGaps};
use crate::store::{KeyspaceState, Store};

/// A measurement passes at most so many dead keys on either side, or as many as the reader did.
const LEAST_PATIENCE: u32 = if cfg!(test) { 5 } else { 1000 };

/// The gaps of one keyspace. Keeps no store open.
pub(crate) struct KeyspaceGaps {
    store: Weak<Store>,
    keyspace: Arc<KeyspaceState>,
}

impl KeyspaceGaps {
    pub(crate) fn new(store: &Arc<Store>, keyspace: &Arc<KeyspaceState>) -> KeyspaceGaps {
        KeyspaceGaps { store: Arc::downgrade(store), keyspace: Arc::clone(keyspace) }
    }

    fn try_measure(&self, store: &Store, key: &[u8], passed: u32) -> Result<()> {
        let (keyspace, order) = (&self.keyspace, &self.keyspace.order);
        // From here on puts tell, and all that came before are visible. Who writes is not waited for.
        let Some(writer) = store.writer.try_lock() else { return Ok(()) };
        let Some(measuring) = keyspace.gaps.measure(key) else { return Ok(()) };
        drop(writer);
        let (view, seq) = store.consistent_view(keyspace);
        // Asked afterwards: the view of a store that is closed is empty.
        store.check_open()?;
        keyspace.check_alive()?;
        let reader = KeyspaceGaps { store: Weak::new(), keyspace: Arc::clone(keyspace) };
        // Behind the reader may lie any number of dead keys that it never came to: a gap may end at one of them.
        let patience = passed.max(LEAST_PATIENCE);
        let mut cursor =
            Cursor::new(view, order, seq, true, Some(Arc::new(reader))).with_patience(patience);
        let end = |c: &Cursor, found: bool| -> Option<Vec<u8>> {
            if found { Some(c.key().to_vec()) } else { c.gave_up_at().map(<[u8]>::to_vec) }
        };
        let found = cursor.seek(key)?;
        let before = end(&cursor, found);
        let found = cursor.seek_for_prev(key)?;
        let after = end(&cursor, found);
        measuring.end(order, seq, after, before);
        Ok(())
    }
}

impl fmt::Debug for KeyspaceGaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyspaceGaps({:?})", self.keyspace.name)
    }
}

impl GapFinder for KeyspaceGaps {
    fn known(&self) -> &KeyGaps {
        &self.keyspace.gaps
    }

    fn measure(&self, key: &[u8], passed: u32) {
        if let Some(store) = self.store.upgrade() {
            // What is damaged the walk meets itself, where it is asked for.
            drop(self.try_measure(&store, key, passed));
        }
    }

    fn searched(&self, sources: usize) {
        self.keyspace.searches.note(sources);
    }
}
