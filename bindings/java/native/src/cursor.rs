//! Cursors: many entries in one crossing.

use esker::Cursor;
use jni_sys::{jboolean, jbyteArray, jint};

use crate::boxes::Handle;
use crate::buffer;
use crate::env::{Env, native};
use crate::failure::{Failure, Outcome};

/// Bytes in front of the entries: how many there are.
const COUNT: usize = 4;
/// Bytes in front of an entry: the lengths of its key and value.
const LENGTHS: usize = 8;
/// Where values may be withheld, those of larger entries are: looking at the key first costs less than copying them.
const LARGE: usize = 64 << 10;
/// What a batch is gathered in is kept up to this size.
const KEPT: usize = 128 << 10;

/// What Java's `Cursor` has.
pub struct Walk {
    cursor: Cursor,
    /// The entries of a batch, as Java is to have them.
    batch: Vec<u8>,
    /// Whether the cursor is on an entry that had no room in the last batch, and begins the next.
    held_back: bool,
}

/// Where a cursor is told to go; `Native.java` has the same numbers.
#[derive(Clone, Copy, PartialEq)]
enum Move {
    First,
    Last,
    Seek,
    SeekBack,
    Next,
    Previous,
    /// To the entry behind a key that the cursor was on.
    NextOf,
    PreviousOf,
}

impl Move {
    const ALL: [Move; 8] = [
        Move::First,
        Move::Last,
        Move::Seek,
        Move::SeekBack,
        Move::Next,
        Move::Previous,
        Move::NextOf,
        Move::PreviousOf,
    ];

    fn towards_end(self) -> bool {
        matches!(self, Move::First | Move::Seek | Move::Next | Move::NextOf)
    }
}

impl Walk {
    pub fn new(cursor: Cursor) -> Walk {
        Walk { cursor, batch: Vec::new(), held_back: false }
    }

    fn go(&mut self, to: Move, key: &[u8]) -> esker::Result<bool> {
        let held_back = std::mem::take(&mut self.held_back);
        let c = &mut self.cursor;
        match to {
            Move::First => c.first(),
            Move::Last => c.last(),
            Move::Seek => c.seek(key),
            Move::SeekBack => c.seek_for_prev(key),
            Move::Next | Move::Previous if held_back => Ok(c.valid()),
            Move::Next => c.next(),
            Move::Previous => c.prev(),
            Move::NextOf => Ok(c.seek(key)? && (c.key() != key || c.next()?)),
            Move::PreviousOf => Ok(c.seek_for_prev(key)? && (c.key() != key || c.prev()?)),
        }
    }

    fn push(&mut self) {
        let (key, value) = (self.cursor.key(), self.cursor.value());
        self.batch.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.batch.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.batch.extend_from_slice(key);
        self.batch.extend_from_slice(value);
    }

    /// Bytes that the present entry takes in a batch.
    fn needed(&self) -> usize {
        LENGTHS + self.cursor.key().len() + self.cursor.value().len()
    }

    /// Fills the batch from the present entry on, and goes on; an entry at least.
    fn fill(&mut self, onwards: bool, entries: usize, bytes: usize) {
        self.batch.clear();
        self.batch.extend_from_slice(&[0; COUNT]);
        let mut count = 0u32;
        loop {
            self.push();
            count += 1;
            if count as usize >= entries {
                break;
            }
            // An error comes up again at the next move, when those before it were looked at.
            let moved = if onwards { self.cursor.next() } else { self.cursor.prev() };
            if !matches!(moved, Ok(true)) {
                break;
            }
            if self.batch.len() + self.needed() > bytes {
                self.held_back = true;
                break;
            }
        }
        self.batch[..COUNT].copy_from_slice(&count.to_le_bytes());
    }

    /// Hands the batch out: in the array if it fits.
    fn hand_out(&mut self, env: &Env, into: jbyteArray) -> Outcome<jbyteArray> {
        let fits = self.batch.len() <= env.len(into);
        let array = if fits { into } else { env.new_bytes(self.batch.len().next_power_of_two())? };
        env.copy_in(array, 0, &self.batch);
        if self.batch.capacity() > KEPT {
            self.batch = Vec::new();
        }
        Ok(array)
    }

    /// Hands the present entry out alone, from where it lies; with a withheld value only its length.
    fn hand_out_one(&self, env: &Env, withhold: bool) -> Outcome<jbyteArray> {
        let (key, value) = (self.cursor.key(), self.cursor.value());
        let given = if withhold { &[] } else { value };
        let len = COUNT + LENGTHS + key.len() + given.len();
        // Array lengths are bounded: a value has at most 1 GiB, and a key 64 KiB.
        let array = env.new_bytes(len)?;
        let mut head = [0; COUNT + LENGTHS];
        head[..4].copy_from_slice(&1u32.to_le_bytes());
        head[4..8].copy_from_slice(&(key.len() as u32).to_le_bytes());
        head[8..].copy_from_slice(&(value.len() as u32).to_le_bytes());
        env.copy_in(array, 0, &head);
        env.copy_in(array, head.len(), key);
        env.copy_in(array, head.len() + key.len(), given);
        Ok(array)
    }
}

native! {
    fn Java_io_esker_Native_read(
        env,
        walk: Handle<Walk>,
        to: jint,
        key: jbyteArray,
        entries: jint,
        bytes: jint,
        into: jbyteArray,
        may_withhold: jboolean,
    ) -> jbyteArray {
        let mut walk = walk;
        let walk = walk.get_mut();
        let to = usize::try_from(to).ok().and_then(|n| Move::ALL.get(n).copied());
        let to = to.ok_or_else(|| Failure::Invalid("no such move".to_string()))?;
        let on_entry = if key.is_null() {
            walk.go(to, &[])?
        } else {
            buffer::with_array(env, key, env.len(key) as jint, |key| Ok(walk.go(to, key)?))?
        };
        if !on_entry {
            walk.batch.clear();
            walk.batch.extend_from_slice(&[0; COUNT]);
        } else if walk.needed() > bytes as usize {
            return walk.hand_out_one(env, may_withhold && walk.needed() > LARGE);
        } else {
            walk.fill(to.towards_end(), entries as usize, bytes as usize);
        }
        walk.hand_out(env, into)
    }

    fn Java_io_esker_Native_value(env, walk: Handle<Walk>) -> jbyteArray {
        env.bytes(walk.get().cursor.value())
    }

    fn Java_io_esker_Native_freeCursor(_env, walk: Handle<Walk>) -> () {
        walk.free();
        Ok(())
    }
}
