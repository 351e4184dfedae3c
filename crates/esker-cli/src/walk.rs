//! A walk over a range in either direction.
//!
//! Built on the store's cursor, not on its iterator: it lends keys and values instead of copying
//! them, and a walk over keys alone never fetches a value.

use std::ops::Bound;

use esker::{Cursor, KeyOrder, Keyspace, Result};

use crate::bounds::Bounds;

pub(crate) struct Walk {
    cursor: Cursor,
    order: KeyOrder,
    bounds: Bounds,
    reverse: bool,
    started: bool,
}

impl Walk {
    /// Over keys and values.
    pub fn entries(keyspace: &Keyspace, order: KeyOrder, bounds: Bounds, reverse: bool) -> Walk {
        Walk { cursor: keyspace.cursor(), order, bounds, reverse, started: false }
    }

    /// Over keys; the value is empty.
    pub fn keys(keyspace: &Keyspace, order: KeyOrder, bounds: Bounds, reverse: bool) -> Walk {
        Walk { cursor: keyspace.cursor_keys_only(), order, bounds, reverse, started: false }
    }

    /// To the next entry; `None` at the end of the range.
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let mut on_entry = match (self.started, self.reverse) {
            (false, false) => match &self.bounds.lower {
                Bound::Unbounded => self.cursor.first()?,
                Bound::Included(key) | Bound::Excluded(key) => self.cursor.seek(key)?,
            },
            (false, true) => match &self.bounds.upper {
                Bound::Unbounded => self.cursor.last()?,
                Bound::Included(key) | Bound::Excluded(key) => self.cursor.seek_for_prev(key)?,
            },
            (true, false) => self.cursor.next()?,
            (true, true) => self.cursor.prev()?,
        };
        // The key that an excluded end names is the only one that can be outside at the start.
        if !self.started && on_entry && self.outside_at_start() {
            on_entry = if self.reverse { self.cursor.prev()? } else { self.cursor.next()? };
        }
        self.started = true;
        if !on_entry || self.outside_at_end() {
            return Ok(None);
        }
        Ok(Some((self.cursor.key(), self.cursor.value())))
    }

    fn outside_at_start(&self) -> bool {
        let key = self.cursor.key();
        if self.reverse {
            self.bounds.is_behind(&self.order, key)
        } else {
            self.bounds.is_before(&self.order, key)
        }
    }

    fn outside_at_end(&self) -> bool {
        let key = self.cursor.key();
        if self.reverse {
            self.bounds.is_before(&self.order, key)
        } else {
            self.bounds.is_behind(&self.order, key)
        }
    }
}
