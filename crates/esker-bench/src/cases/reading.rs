//! What a reader does again and again: a point read, or a seek and some entries from there.

use super::touch;
use crate::data::{Dataset, KeyBuf, Rng, mix};
use crate::engine::Reader;
use crate::measure::{Recorder, Until};
use anyhow::{Result, ensure};
use std::hint::black_box;

/// A kind of read, of a store that has every key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// One key.
    Point,
    /// A key and as many after it as make this many entries.
    Seek(u64),
}

impl Reading {
    /// The kind that a row's name begins with.
    pub fn of_row(row: &str) -> Reading {
        match row.split('.').next() {
            Some("seek10") => Reading::Seek(11),
            Some("seek50") => Reading::Seek(51),
            _ => Reading::Point,
        }
    }

    /// Reads from keys drawn from all, again and again; `salt` makes them others than those of another row.
    pub fn again(
        self,
        reader: &mut impl Reader,
        data: &Dataset,
        salt: u64,
        recorder: &mut Recorder,
        until: Until,
    ) -> Result<()> {
        let mut rng = Rng::new(mix(data.seed ^ salt));
        let (mut key, mut sum) = (KeyBuf::new(), 0u64);
        let outcome = recorder.run(until, || {
            let index = rng.below(data.entries);
            sum = sum.wrapping_add(self.once(reader, data, index, &mut key)?);
            Ok(())
        });
        black_box(sum);
        outcome
    }

    /// Reads from key number `index` and touches what is there; an error if that is less than there
    /// must be.
    #[inline]
    fn once(
        self,
        reader: &mut impl Reader,
        data: &Dataset,
        index: u64,
        key: &mut KeyBuf,
    ) -> Result<u64> {
        let key = data.keys.write(index, key);
        match self {
            Reading::Point => {
                let touched = reader.get(key, touch)?;
                ensure!(touched.is_some(), "lost key {}", key.escape_ascii());
                Ok(touched.unwrap_or(0))
            }
            Reading::Seek(count) => {
                let expected = count.min(data.entries - index);
                let (sum, seen) = seek(reader, key, count)?;
                ensure!(
                    seen == expected,
                    "saw {seen} entries from key {}, not {expected}",
                    key.escape_ascii()
                );
                Ok(sum)
            }
        }
    }
}

/// Touches up to `count` entries from a key on; what that gave, and how many there were.
#[inline]
pub fn seek(reader: &mut impl Reader, key: &[u8], count: u64) -> Result<(u64, u64)> {
    let mut sum = 0u64;
    let seen = reader.seek(key, count, |key, value| {
        sum = sum.wrapping_add(touch(key)).wrapping_add(touch(value));
    })?;
    Ok((sum, seen))
}
