//! A process that plays operations and says which it began and which were done, and how it ends. Its
//! parent, which knows them from the seed, then knows what the store must hold.

use std::panic::AssertUnwindSafe;

use esker::{Db, Keyspace};

use super::model::Model;
use super::ops::{Op, Ops};
use super::panics;
use super::tally::{Of, count};
use crate::child::Message;

/// How a process takes leave of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Close,
    Drop,
    Exit,
    /// It waits to be killed.
    Kill,
}

pub const ENDS: [End; 4] = [End::Close, End::Drop, End::Exit, End::Kill];

impl End {
    pub fn carry_out(self, db: Db, spaces: Vec<Keyspace>) -> Result<(), String> {
        match self {
            // What an injected panic stopped may be an error here; the writes are safe all the same.
            End::Close => drop(panics::caught(|| db.close())),
            End::Drop => drop(panics::caught(AssertUnwindSafe(|| drop((db, spaces))))),
            End::Exit => {
                panics::none_unexpected()?;
                std::process::exit(0)
            }
            End::Kill => {
                panics::none_unexpected()?;
                Message::Opened.say();
                loop {
                    std::thread::park();
                }
            }
        }
        Ok(())
    }
}

/// Plays `n` operations as thread 0. Errors and injected panics are no end: the caller tries again.
pub fn play(db: &Db, spaces: &[Keyspace], ops: &mut Ops, n: u32) {
    for number in 0..n {
        let op = ops.next();
        Message::Intent(0, number).say();
        if let Some(Ok(())) = panics::caught(|| op.perform(db, spaces)) {
            Message::Done(0, number).say();
        }
    }
}

/// What the messages say about the operations: done, or not known.
pub fn learn(model: &mut Model, ops: &mut Ops, messages: &[Message]) {
    let mut begun: Option<Op> = None;
    for message in messages {
        match message {
            Message::Intent(..) => {
                begun.replace(ops.next()).iter().for_each(|op| model.maybe(op));
                count(Of::Operations, 1);
            }
            Message::Done(..) => begun.take().iter().for_each(|op| model.done(op)),
            Message::Opened => {}
        }
    }
    begun.iter().for_each(|op| model.maybe(op));
}
