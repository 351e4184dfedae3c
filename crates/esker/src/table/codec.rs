//! Values packed one by one, so that a read never inflates the neighbours of what it wants.

use std::sync::Arc;

use super::dictionary::Dictionary;
use super::lz4;
use super::zstd::{self, Problem};
use crate::key::{Codec, Stored};
use crate::options::Compression;
use crate::util::{put_varint, shrink_for, varint_len};

/// Shorter values are stored as they are.
const MIN_LEN: usize = 16;
/// After so many values that did not pay, only every `PROBE`th is tried until one does again.
const GIVE_UP_AFTER: u32 = 64;
const PROBE: u32 = 16;

/// Packs the values of one table.
pub(super) struct Compressor {
    codec: Option<Codec>,
    dictionary: Option<Arc<Dictionary>>,
    out: Vec<u8>,
    lz4: lz4::Lz4Encoder,
    /// The dictionary made ready, from the first value on that is packed here.
    lz4_dictionary: Option<lz4::Lz4Dictionary>,
    zstd: Option<zstd::ZstdEncoder>,
    /// Values in a row that did not pay.
    failures: u32,
}

impl Compressor {
    /// A dictionary of another codec is not used.
    pub fn new(compression: Compression, dictionary: Option<Arc<Dictionary>>) -> Compressor {
        let codec = compression.codec();
        let dictionary = dictionary.filter(|d| d.is_for(compression));
        let zstd = (codec == Some(Codec::Zstd))
            .then(|| zstd::ZstdEncoder::new(dictionary.as_ref().map(|d| d.bytes())));
        Compressor {
            codec,
            dictionary,
            out: Vec::new(),
            lz4: lz4::Lz4Encoder::default(),
            lz4_dictionary: None,
            zstd,
            failures: 0,
        }
    }

    pub fn codec(&self) -> Option<Codec> {
        self.codec
    }

    /// The dictionary in use.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// The packed value behind its raw length, when that saves at least 1/8.
    pub fn compress(&mut self, value: &[u8]) -> Option<&[u8]> {
        let codec = self.codec?;
        if value.len() < MIN_LEN {
            return None;
        }
        if self.failures >= GIVE_UP_AFTER {
            self.failures += 1;
            if !self.failures.is_multiple_of(PROBE) {
                return None;
            }
        }
        let raw_len = u32::try_from(value.len()).ok()?;
        self.out.clear();
        put_varint(&mut self.out, raw_len.into());
        let max = value.len() - value.len() / 8 - varint_len(raw_len.into());
        let pays = match codec {
            Codec::Lz4 => {
                if let (None, Some(d)) = (&self.lz4_dictionary, &self.dictionary) {
                    self.lz4_dictionary = Some(lz4::Lz4Dictionary::new(d.bytes()));
                }
                self.lz4.compress(value, self.lz4_dictionary.as_ref(), max, &mut self.out)
            }
            Codec::Zstd => {
                self.zstd.as_mut().is_some_and(|z| z.compress(value, max, &mut self.out))
            }
        };
        if pays {
            self.failures = 0;
            Some(&self.out)
        } else {
            self.failures = self.failures.wrapping_add(1).max(1);
            None
        }
    }

    /// A value that comes packed, behind its raw length.
    pub fn pass_through(&mut self, raw_len: u32, bytes: &[u8]) -> &[u8] {
        self.out.clear();
        put_varint(&mut self.out, raw_len.into());
        self.out.extend_from_slice(bytes);
        &self.out
    }

    /// Bytes of the caller, kept for as long as a packed value would be.
    pub fn hold(&mut self, bytes: &[u8]) -> &[u8] {
        self.out.clear();
        self.out.extend_from_slice(bytes);
        &self.out
    }
}

/// Replaces `out` with the value that was stored. The error says what is wrong with it.
pub(super) fn decompress(
    stored: Stored<'_>,
    dictionary: Option<&Dictionary>,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    let damaged = Problem::Damaged;
    let (codec, dict, raw_len, bytes) = match stored {
        Stored::Inline(value) => {
            shrink_for(out, value.len());
            out.clear();
            out.extend_from_slice(value);
            return Ok(());
        }
        Stored::Pointer(_) => return Err(damaged("a pointer's value is in the log")),
        Stored::Compressed { codec, dict, raw_len, bytes } => {
            (codec, dict, raw_len as usize, bytes)
        }
    };
    let dictionary = match dict {
        0 => None,
        id => Some(
            dictionary.filter(|d| d.id() == id).ok_or(damaged("value of another dictionary"))?,
        ),
    };
    if dictionary.is_some_and(|d| d.codec() != codec) {
        return Err(damaged("dictionary of another codec"));
    }
    shrink_for(out, raw_len);
    let whole = match codec {
        Codec::Lz4 => {
            // A byte of LZ4 stands for at most 255: no more is set aside for a lying length.
            if raw_len > bytes.len().saturating_mul(255) {
                return Err(damaged("packed value: length"));
            }
            lz4::decompress(bytes, dictionary.map(Dictionary::bytes), raw_len, out)
        }
        Codec::Zstd => zstd::decompress(bytes, dictionary.map(Dictionary::for_zstd), raw_len, out)?,
    };
    if whole { Ok(()) } else { Err(damaged("packed value does not unpack")) }
}
