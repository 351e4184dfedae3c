//! What the values of a table have in common, given once, so that even a short value finds
//! something to refer to.

use std::sync::Arc;

use super::lz4;
use crate::key::Codec;
use crate::options::Compression;

/// Longest LZ4 dictionary. Every value's matches are looked for in it, and every reader wants it in
/// the first- or second-level cache.
const MAX_LZ4: usize = 8 << 10;
/// Longest Zstandard dictionary.
const MAX_ZSTD: usize = 16 << 10;
/// A dictionary has to save this share of the packed bytes of its samples (1/16).
const WORTH_SHIFT: u32 = 4;
/// Samples longer than this have enough in themselves.
const SAMPLE: usize = 1024;

/// Level of Zstandard: the library's default.
pub(super) const ZSTD_LEVEL: i32 = 3;

/// A dictionary, ready for use by one codec.
pub(crate) struct Dictionary {
    id: u64,
    bytes: Vec<u8>,
    prepared: Prepared,
}

enum Prepared {
    Lz4(lz4::Prepared),
    Zstd(zstd::dict::DecoderDictionary<'static>),
}

impl Dictionary {
    /// A dictionary of these bytes.
    pub(crate) fn new(codec: Codec, bytes: &[u8]) -> Arc<Dictionary> {
        let prepared = match codec {
            Codec::Lz4 => Prepared::Lz4(lz4::Prepared::new(bytes)),
            Codec::Zstd => Prepared::Zstd(zstd::dict::DecoderDictionary::copy(bytes)),
        };
        // 0 stands for "no dictionary".
        let id = xxhash_rust::xxh3::xxh3_64(bytes).max(1);
        Arc::new(Dictionary { id, bytes: bytes.to_vec(), prepared })
    }

    /// Makes a dictionary out of sample values, or finds that none is worth having.
    ///
    /// Half of the samples are laid one behind the other, evenly picked; the other half are packed
    /// with and without it to see what it saves.
    pub(crate) fn train(compression: Compression, samples: &[&[u8]]) -> Option<Arc<Dictionary>> {
        let (codec, max) = match compression {
            Compression::None => return None,
            Compression::Lz4 => (Codec::Lz4, MAX_LZ4),
            Compression::Zstd => (Codec::Zstd, MAX_ZSTD),
        };
        let usable: Vec<&[u8]> =
            samples.iter().copied().filter(|s| (16..=SAMPLE).contains(&s.len())).collect();
        if usable.len() < 16 {
            return None;
        }
        let total: usize = usable.iter().step_by(2).map(|s| s.len()).sum();
        let stride = total.div_ceil(max).max(1) * 2;
        let mut bytes = Vec::with_capacity(max);
        for s in usable.iter().step_by(stride) {
            if bytes.len() + s.len() <= max {
                bytes.extend_from_slice(s);
            }
        }
        let dictionary = Dictionary::new(codec, &bytes);
        let mut with = super::codec::Packer::new(compression, Some(dictionary.clone()));
        let mut without = super::codec::Packer::new(compression, None);
        let (mut packed, mut plain) = (0, 0);
        let step = (usable.len() / 256).max(1) | 1;
        for s in usable.iter().skip(1).step_by(step * 2) {
            packed += with.pack(s).map_or(s.len(), <[u8]>::len);
            plain += without.pack(s).map_or(s.len(), <[u8]>::len);
        }
        (packed + (plain >> WORTH_SHIFT) < plain).then_some(dictionary)
    }

    /// Its identity: XXH3 of its bytes.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether tables of this compression can use it.
    pub(crate) fn is_for(&self, compression: Compression) -> bool {
        matches!(
            (compression, self.codec()),
            (Compression::Lz4, Codec::Lz4) | (Compression::Zstd, Codec::Zstd)
        )
    }

    /// The compression it is for.
    pub(crate) fn compression(&self) -> Compression {
        match self.codec() {
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd => Compression::Zstd,
        }
    }

    /// The codec it is for.
    pub(crate) fn codec(&self) -> Codec {
        match self.prepared {
            Prepared::Lz4(_) => Codec::Lz4,
            Prepared::Zstd(_) => Codec::Zstd,
        }
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn lz4(&self) -> Option<&lz4::Prepared> {
        match &self.prepared {
            Prepared::Lz4(p) => Some(p),
            Prepared::Zstd(_) => None,
        }
    }

    pub(super) fn zstd(&self) -> Option<&zstd::dict::DecoderDictionary<'static>> {
        match &self.prepared {
            Prepared::Zstd(p) => Some(p),
            Prepared::Lz4(_) => None,
        }
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary({:?}, {} bytes, {:016x})", self.codec(), self.bytes.len(), self.id)
    }
}
