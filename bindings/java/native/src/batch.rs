//! Batches, from the records in which Java keeps them.

use esker::{Db, WriteBatch};
use jni_sys::{jbyteArray, jint, jlongArray};

use crate::boxes::Handle;
use crate::buffer::{self, Source};
use crate::env::{Env, native};
use crate::failure::{Failure, Outcome};
use crate::keyspace::durability;
use crate::reader::Reader;

/// Bytes in front of a record: what to do, the keyspace's number, the lengths of key and value.
const HEAD: usize = 13;
/// Bytes that are copied from Java at a time; a longer record is copied whole.
const PART: usize = 256 << 10;

/// Records of Java's, a part at a time.
struct Records<'a> {
    env: &'a Env,
    array: jbyteArray,
    /// Bytes that were copied, and how many there are.
    copied: usize,
    len: usize,
    part: Vec<u8>,
    /// What of the part was read.
    at: usize,
}

impl Records<'_> {
    /// The next bytes. Java's program may change a batch while it is written: what does not fit is refused.
    fn bytes(&mut self, count: usize) -> Outcome<&[u8]> {
        let there = self.part.len() - self.at;
        if there < count {
            let rest = self.len - self.copied;
            if rest < count - there {
                return Err(changed());
            }
            self.part.drain(..self.at);
            self.at = 0;
            let more = rest.min((count - there).max(PART));
            let source = Source::Array(self.array, self.copied);
            buffer::append(self.env, source, more, &mut self.part)?;
            self.copied += more;
        }
        self.at += count;
        Ok(&self.part[self.at - count..self.at])
    }

    fn ended(&self) -> bool {
        self.at == self.part.len() && self.copied == self.len
    }
}

fn changed() -> Failure {
    Failure::Invalid("the batch was changed while it was written".to_string())
}

fn number(bytes: &[u8]) -> usize {
    bytes.try_into().map_or(usize::MAX, |bytes| u32::from_le_bytes(bytes) as usize)
}

fn read(mut records: Records<'_>, keyspaces: &[Handle<Reader>]) -> Outcome<WriteBatch> {
    let mut batch = WriteBatch::new();
    while !records.ended() {
        let head = records.bytes(HEAD)?;
        let (put, keyspace) = (head[0] == 0, number(&head[1..5]));
        let (key_len, value_len) = (number(&head[5..9]), number(&head[9..13]));
        let (key, value) = records.bytes(key_len + value_len)?.split_at(key_len);
        let keyspace = match keyspace {
            0 => None,
            n => Some(keyspaces.get(n - 1).ok_or_else(changed)?.get().keyspace()?),
        };
        match (keyspace, put) {
            (None, true) => batch.put(key, value),
            (None, false) => batch.delete(key),
            (Some(keyspace), true) => batch.put_in(keyspace, key, value),
            (Some(keyspace), false) => batch.delete_in(keyspace, key),
        }
    }
    Ok(batch)
}

native! {
    fn Java_io_esker_Native_write(
        env,
        store: Handle<Db>,
        records: jbyteArray,
        len: jint,
        keyspaces: jlongArray,
        wanted: jint,
    ) -> () {
        let keyspaces: Vec<_> = env.longs(keyspaces).into_iter().map(Handle::of).collect();
        let len = len as usize;
        if len > env.len(records) {
            return Err(changed());
        }
        let records = Records { env, array: records, copied: 0, len, part: Vec::new(), at: 0 };
        let batch = read(records, &keyspaces)?;
        match durability(wanted)? {
            None => store.get().write(batch)?,
            Some(durability) => store.get().write_with(batch, durability)?,
        }
        Ok(())
    }
}
