//! Comparators: a sound one, and those that panic or lie.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use esker::{Comparator, KeyOrder};

use super::draw::pick;
use super::panics;
use crate::script::Rng;

/// What a comparator does, beside comparing, once it was asked often enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Sound,
    /// One panic.
    PanicsOnce,
    /// Panics whenever it meets one key of seven.
    PanicsOnSome,
    /// From then on, always.
    PanicsForEver,
    /// Answers anything.
    Lies,
}

/// By the sum of the bytes, then bytewise: unlike any order that the store knows.
struct BySum {
    name: String,
    manner: Manner,
    /// Calls that still go well.
    patience: AtomicU64,
}

fn sum(key: &[u8]) -> u64 {
    key.iter().map(|b| u64::from(*b)).sum()
}

impl Comparator for BySum {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.manner != Manner::Sound {
            let left = self.patience.load(Relaxed);
            if left > 0 {
                self.patience.store(left - 1, Relaxed);
            }
            match self.manner {
                Manner::PanicsOnce if left == 1 => panics::inject("once"),
                Manner::PanicsOnSome
                    if left == 0 && (sum(a).is_multiple_of(7) || sum(b).is_multiple_of(7)) =>
                {
                    panics::inject("on some keys")
                }
                Manner::PanicsForEver if left == 0 => panics::inject("for ever"),
                Manner::Lies if left == 0 => {
                    return if (sum(a) ^ sum(b)).is_multiple_of(3) {
                        Ordering::Less
                    } else {
                        Ordering::Greater
                    };
                }
                _ => {}
            }
        }
        sum(a).cmp(&sum(b)).then_with(|| a.cmp(b))
    }
}

/// The sound order of that name.
pub fn sound(name: &str) -> KeyOrder {
    hostile(name, Manner::Sound, 0)
}

/// The same order, by a comparator that behaves so after `patience` calls.
pub fn hostile(name: &str, manner: Manner, patience: u64) -> KeyOrder {
    let patience = AtomicU64::new(patience.max(1));
    KeyOrder::Custom(Arc::new(BySum { name: name.to_string(), manner, patience }))
}

/// Any order for a keyspace.
pub fn draw(rng: &mut Rng) -> KeyOrder {
    pick(rng, &[KeyOrder::Bytewise, KeyOrder::Bytewise, KeyOrder::Reverse, sound("by sum")])
}
