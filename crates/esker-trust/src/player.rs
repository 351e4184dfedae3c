//! One thread's way to write to a store under test, and the loop of the process that is killed.

use crate::{Act, Message, Op, Result, Script};

/// A thread that writes: what a store must do to be written to.
pub trait Player {
    /// Does an operation; returns when it is done. An error for what the store has no call for.
    fn perform(&mut self, op: &Op) -> Result<()>;

    /// Looks at what an operation has just changed: nobody else changes these keys.
    fn look_back(&mut self, _op: &Op) -> Result<()> {
        Ok(())
    }
}

/// Plays a script from an operation on, to its end or until the process is killed, and says after each
/// operation that it is done. `own`: whether the thread's keyspace is there.
pub fn play(
    player: &mut impl Player,
    script: Script,
    thread: u8,
    first: u32,
    mut own: bool,
) -> Result<()> {
    for number in first.. {
        let Some(op) = script.op(thread, number, own) else { break };
        player.perform(&op)?;
        Message::Done(thread, number).say();
        player.look_back(&op)?;
        own = match op.act {
            Act::Create => true,
            Act::Drop => false,
            _ => own,
        };
    }
    Ok(())
}
