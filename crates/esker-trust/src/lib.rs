//! What a store must keep, whoever made it: one harness for kills and for damage.
//!
//! - [`Script`] says what is written, each operation by its number; a child [`play`]s it with a
//!   [`Player`] and says what is done; [`victim`] listens to it and kills it.
//! - [`read()`] asks a [`Source`] for everything; each answer is a [`Fact`], collected as [`Found`].
//! - [`Oracle`] knows from the script and from what was said what must be found, and judges.
//! - [`harm`] has the ways to damage files; [`damage`] says what a damaged store came to.
//!
//! Values prove themselves ([`entry`]), so what nobody wrote is told from what is merely old. Nothing
//! here knows a store, Esker neither: its own tests may depend on this crate.

pub mod damage;
pub mod entry;
pub mod harm;
mod oracle;
mod player;
pub mod process;
mod read;
mod rng;
pub mod script;
pub mod victim;

pub use entry::{Key, Space, Write};
pub use oracle::{Judgement, Oracle, Verdict};
pub use player::{Player, play};
pub use read::{Call, Fact, Found, Source, read};
pub use rng::{Rng, mix};
pub use script::{Act, Op, Script};
pub use victim::{Message, Patience, Say, Victim, messages_alone};

/// Errors are for people: nobody matches on them.
pub type Result<T> = std::result::Result<T, String>;
