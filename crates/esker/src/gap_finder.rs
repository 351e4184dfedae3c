//! Measuring a gap: the work behind [`crate::read::gaps`].

use std::sync::{Arc, Weak};

use crate::cursor_home::CursorKeyspace;
use crate::error::Result;
use crate::read::boundary::Boundary;
use crate::read::cursor::Cursor;
use crate::read::gaps::{GapFinder, GapReader, KeyGaps, Measuring};
use crate::read::passed::Move;
use crate::store::{Store, Writer};

/// So often the writer's lock is tried. A put holds it for less than a microsecond; nobody waits for more.
const TRIES: usize = 100;

/// This part of the memory setting the gaps of all keyspaces may take, and as much those of the past.
const SHARE: u64 = 64;

impl CursorKeyspace {
    /// The same for a walk that is a measurement itself, and begins no other.
    fn of_measurement(&self) -> Arc<CursorKeyspace> {
        Arc::new(CursorKeyspace { store: Weak::new(), keyspace: Arc::clone(&self.keyspace) })
    }

    fn try_measure(&self, store: &Store, near: &Boundary, key: &[u8], forward: bool) -> Result<()> {
        let (keyspace, order) = (&self.keyspace, &self.keyspace.order);
        // From here on puts tell, and all that came before are visible.
        let Some(writer) = try_lock(store) else { return Ok(()) };
        let Some(held) = keyspace.gaps.measure(key) else { return Ok(()) };
        drop(writer);
        let finder = self.of_measurement();
        let measuring = Measuring::new(Arc::clone(&finder) as _, held);
        let (super_version, seq) = store.consistent_super_version(keyspace);
        // Asked afterwards: the super version of a store that is closed is empty.
        store.check_open()?;
        keyspace.check_alive()?;
        let mut cursor = Cursor::new(super_version, order, seq, true, Some(finder));
        let found = cursor.position(near.key().map_or(Move::Edge, Move::Search), forward)?;
        let (key, near) = (cursor.key().to_vec(), near.clone());
        let (from, to) = match (found, forward) {
            (true, true) => (near, Boundary::Before(key)),
            (true, false) => (Boundary::Behind(key), near),
            (false, true) => (near, Boundary::Back),
            (false, false) => (Boundary::Front, near),
        };
        measuring.end(order, seq, from, to);
        Ok(())
    }
}

/// The writer's lock, if it can be had at once.
fn try_lock(store: &Store) -> Option<parking_lot::MutexGuard<'_, Writer>> {
    (0..TRIES).find_map(|_| {
        let writer = store.writer.try_lock();
        if writer.is_none() {
            std::hint::spin_loop();
        }
        writer
    })
}

impl GapFinder for CursorKeyspace {
    fn known(&self) -> &KeyGaps {
        &self.keyspace.gaps
    }

    fn begin(&self, key: &[u8], seq: u64) -> GapReader {
        let Some(store) = self.store.upgrade() else { return GapReader::Nothing };
        // Whoever makes or drops one is not waited for: the share of before will do.
        if let Some(keyspaces) = store.keyspaces.try_read() {
            let count = keyspaces.by_id.len() as u64;
            self.keyspace.gaps.allow(store.options.memory / SHARE / count.max(1));
        }
        if store.visible_seq() != seq {
            return GapReader::Past;
        }
        let Some(writer) = try_lock(&store) else { return GapReader::Past };
        // Nothing was written since: what the walk sees is all there is, and from here on puts tell.
        if store.visible_seq() != seq {
            return GapReader::Past;
        }
        let held = self.keyspace.gaps.measure(key);
        drop(writer);
        held.map_or(GapReader::Past, GapReader::Present)
    }

    fn measure(&self, near: &Boundary, key: &[u8], forward: bool) {
        if let Some(store) = self.store.upgrade() {
            // What is damaged the walk meets itself, where it is asked for.
            drop(self.try_measure(&store, near, key, forward));
        }
    }

    fn searched(&self, sources: usize) {
        self.keyspace.searches.0.note(sources);
    }
}
