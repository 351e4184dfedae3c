//! Bulk loads from an iterator of Java's, a chunk of entries at a time.

use std::ops::Range;
use std::rc::Rc;

use jni_sys::jobject;

use crate::buffer::{self, Source as Bytes};
use crate::env::Env;
use crate::failure::{Failure, Outcome};

/// The entries of a `BulkLoad`.
pub struct Source<'a> {
    env: &'a Env,
    object: jobject,
    chunk: Rc<Vec<u8>>,
    at: usize,
    ended: bool,
}

/// Bytes of a chunk.
pub struct Part {
    chunk: Rc<Vec<u8>>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.chunk[self.range.clone()]
    }
}

impl<'a> Source<'a> {
    pub fn new(env: &'a Env, object: jobject) -> Source<'a> {
        Source { env, object, chunk: Rc::default(), at: 0, ended: false }
    }

    /// Gets the next chunk. What the iterator throws stays thrown.
    fn fill(&mut self) -> Outcome<()> {
        let Some(array) = self.env.fill(self.object)? else {
            self.ended = true;
            return Ok(());
        };
        let mut used = Vec::new();
        buffer::append(self.env, Bytes::Array(array, 0), 4, &mut used)?;
        let used = number(&used)?;
        // Nobody has a part of the last chunk any more, but for a moment the engine.
        let mut chunk = Rc::try_unwrap(std::mem::take(&mut self.chunk)).unwrap_or_default();
        chunk.clear();
        buffer::append(self.env, Bytes::Array(array, 4), used - 4, &mut chunk)?;
        self.env.forget(array);
        (self.chunk, self.at) = (Rc::new(chunk), 0);
        Ok(())
    }

    fn part(&mut self, len: usize) -> Part {
        let range = self.at..self.at + len;
        self.at += len;
        Part { chunk: Rc::clone(&self.chunk), range }
    }

    fn entry(&mut self) -> Outcome<(Part, Part)> {
        let lengths = self.part(8);
        let key_len = number(&lengths.as_ref()[..4])?;
        let value_len = number(&lengths.as_ref()[4..])?;
        Ok((self.part(key_len), self.part(value_len)))
    }
}

fn number(bytes: &[u8]) -> Outcome<usize> {
    let bytes =
        bytes.try_into().map_err(|_| Failure::Invalid("a chunk is cut short".to_string()))?;
    Ok(u32::from_le_bytes(bytes) as usize)
}

impl Iterator for Source<'_> {
    type Item = Outcome<(Part, Part)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        if self.at == self.chunk.len()
            && let Err(failure) = self.fill()
        {
            self.ended = true;
            return Some(Err(failure));
        }
        (!self.ended).then(|| self.entry())
    }
}
