//! Counts the bytes that a source gave, for a progress bar that looks on from outside.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

pub(crate) struct Metered<R> {
    source: R,
    position: Rc<Cell<u64>>,
}

impl<R: Read> Metered<R> {
    /// The source, and the number of bytes read from it so far.
    pub fn new(source: R) -> (Metered<R>, Rc<Cell<u64>>) {
        let position = Rc::new(Cell::new(0));
        (Metered { source, position: Rc::clone(&position) }, position)
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buf)?;
        self.position.set(self.position.get() + n as u64);
        Ok(n)
    }
}
