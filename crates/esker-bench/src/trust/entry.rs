//! Keys and values that prove themselves: a value says which key it belongs to and which write wrote
//! it, and every other byte of it follows from these two.

use crate::data::{Rng, mix};
use anyhow::{Context, Result, ensure};

/// Bytes of most values.
const SHORT: usize = 100;
/// Bytes of the others: more than a page, and more than the size from which engines treat values apart.
const LONG: usize = 5000;
/// One value in so many is long.
const LONG_EVERY: u64 = 40;
/// The number of the write and the key, in front of each value.
const HEADER: usize = 12;

/// A key, by its number.
pub fn key(number: u32) -> Vec<u8> {
    format!("trust-{number:08}").into_bytes()
}

/// The number of a key.
fn number_of(key: &[u8]) -> Result<u32> {
    let text = std::str::from_utf8(key).ok().and_then(|text| text.strip_prefix("trust-"));
    let number = text.filter(|digits| digits.len() == 8).and_then(|digits| digits.parse().ok());
    number.with_context(|| format!("a key that nobody wrote: {}", key.escape_ascii()))
}

/// What the write `version` writes to a key.
pub fn value(key: u32, version: u64) -> Vec<u8> {
    let seed = mix(version ^ (u64::from(key) << 32));
    let len = if seed.is_multiple_of(LONG_EVERY) { LONG } else { SHORT };
    let mut bytes = Vec::with_capacity(len + 8);
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&key.to_le_bytes());
    let mut rng = Rng::new(seed);
    while bytes.len() < len {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Which key this is and which write wrote its value; an error when they do not belong together or a
/// byte is not the one that was written.
pub fn read(key: &[u8], bytes: &[u8]) -> Result<(u32, u64)> {
    let number = number_of(key)?;
    Ok((number, version_of(number, bytes)?))
}

/// Which write wrote this value of a key.
pub fn version_of(number: u32, bytes: &[u8]) -> Result<u64> {
    let what = || format!("key {number}: a value of {} bytes that nobody wrote", bytes.len());
    ensure!(bytes.len() >= HEADER, what());
    let version = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    ensure!(value(number, version) == bytes, what());
    Ok(version)
}

/// Which write there is, in words.
pub fn told(version: Option<u64>) -> String {
    version.map_or("nothing".to_string(), |version| format!("write {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_seen() {
        let long = (0..).find(|version| value(7, *version).len() == LONG).unwrap();
        for version in [1, 2, long] {
            let good = value(7, version);
            assert_eq!(read(&key(7), &good).unwrap(), (7, version));
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 0x10;
                assert!(read(&key(7), &bad).is_err(), "byte {at}");
            }
            assert!(read(&key(8), &good).is_err(), "of another key");
            assert!(read(&key(7), &good[..good.len() - 1]).is_err(), "cut");
            assert!(read(b"trust-7", &good).is_err() && read(b"", b"").is_err());
        }
    }
}
