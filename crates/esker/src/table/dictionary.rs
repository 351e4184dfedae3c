//! What the values of a table have in common, given once, so that even a short value finds
//! something to refer to.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::zstd;
use crate::key::Codec;
use crate::options::Compression;

/// Longest LZ4 dictionary. Every value's matches are looked for in it, and every reader wants it in
/// the first- or second-level cache.
const MAX_LZ4: usize = 8 << 10;
/// Longest Zstandard dictionary.
const MAX_ZSTD: usize = 16 << 10;
/// A dictionary has to save this share of the packed bytes of the samples (1/16),
const WORTH_SHIFT: u32 = 4;
/// and one to take the place of another this share (1/8): values packed with it are packed anew.
const BETTER_SHIFT: u32 = 3;
/// With fewer samples there is nothing to judge by.
const LEAST_SAMPLES: usize = 16;
/// Longer values have enough in themselves.
pub(crate) const SAMPLE: usize = 1024;
/// About so many samples are packed to see what a dictionary saves.
const TRIALS: usize = 128;

/// A dictionary for one codec. What only packing needs of it is made by who packs.
pub(crate) struct Dictionary {
    id: u64,
    codec: Codec,
    bytes: Box<[u8]>,
    zstd: zstd::ReadyDictionary,
}

impl Dictionary {
    /// A dictionary of these bytes.
    pub(crate) fn new(codec: Codec, bytes: &[u8]) -> Arc<Dictionary> {
        // 0 stands for "no dictionary".
        let id = xxhash_rust::xxh3::xxh3_64(bytes).max(1);
        Arc::new(Dictionary { id, codec, bytes: bytes.into(), zstd: Default::default() })
    }

    /// The dictionary for values like these samples: one of those `known`, first come first served,
    /// unless a later one, or one made of the samples, is clearly better; none where none is worth
    /// having.
    ///
    /// Half of the samples make the new one; of the other half some are packed with each to see what
    /// it saves. With too few samples the first of those known stays.
    pub(crate) fn choose<'k>(
        compression: Compression,
        known: impl IntoIterator<Item = &'k Arc<Dictionary>>,
        samples: &[&[u8]],
    ) -> Option<Arc<Dictionary>> {
        let codec = compression.codec()?;
        let max = if codec == Codec::Lz4 { MAX_LZ4 } else { MAX_ZSTD };
        let mut known = known.into_iter().filter(|d| d.codec == codec).cloned();
        let usable: Vec<&[u8]> =
            samples.iter().copied().filter(|s| (16..=SAMPLE).contains(&s.len())).collect();
        if usable.len() < LEAST_SAMPLES {
            return known.next();
        }
        let step = usable.len().div_ceil(2 * TRIALS) * 2;
        let trials = || usable.iter().skip(1).step_by(step);
        let compressed = |dictionary: Option<&Arc<Dictionary>>| -> usize {
            let mut packer = super::codec::Compressor::new(compression, dictionary.cloned());
            trials().map(|s| packer.compress(s).map_or(s.len(), <[u8]>::len)).sum()
        };
        let mut least = compressed(None);
        let mut best: Option<Arc<Dictionary>> = None;
        for d in known.chain([Dictionary::new(codec, &gathered(&usable, max))]) {
            let bytes = compressed(Some(&d));
            let shift = if best.is_none() { WORTH_SHIFT } else { BETTER_SHIFT };
            if bytes + (least >> shift) < least {
                (least, best) = (bytes, Some(d));
            }
        }
        best
    }

    /// Its identity: XXH3 of its bytes.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether tables of this compression can use it.
    pub(crate) fn is_for(&self, compression: Compression) -> bool {
        compression.codec() == Some(self.codec)
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
        self.codec
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its bytes, and what Zstandard makes of them, for one of its dictionaries.
    pub(super) fn for_zstd(&self) -> (&[u8], &zstd::ReadyDictionary) {
        (&self.bytes, &self.zstd)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Dictionary>() + self.bytes.len() + self.zstd.memory()
    }

    /// Whether the other does the same. Bytes of one identity may differ where somebody made them so.
    fn is_same(&self, other: &Dictionary) -> bool {
        self.codec == other.codec && self.bytes == other.bytes
    }
}

#[cfg(test)]
impl Dictionary {
    /// Other bytes that pretend to be these.
    pub(super) fn forged(&self, bytes: &[u8]) -> Arc<Dictionary> {
        let zstd = Default::default();
        Arc::new(Dictionary { id: self.id, codec: self.codec, bytes: bytes.into(), zstd })
    }
}

#[cfg(test)]
impl Dictionaries {
    /// How many are known, those that are gone included.
    pub(super) fn identities(&self) -> usize {
        self.0.lock().by_id.len()
    }
}

/// The dictionaries of a store's open tables, each of which is there once: compactions give what they write that of
/// their inputs, so most tables have one that others have too.
#[derive(Default)]
pub(crate) struct Dictionaries(Mutex<ByIdentity>);

#[derive(Default)]
struct ByIdentity {
    /// By identity.
    by_id: HashMap<u64, Vec<Weak<Dictionary>>>,
    /// With so many identities those that are gone are left out.
    clear_at: usize,
}

impl Dictionaries {
    /// The one that is there already, or this one.
    pub(crate) fn share(&self, new: Arc<Dictionary>) -> Arc<Dictionary> {
        let mut known = self.0.lock();
        let of_id = known.by_id.entry(new.id).or_default();
        if let Some(same) = of_id.iter().filter_map(Weak::upgrade).find(|d| d.is_same(&new)) {
            return same;
        }
        of_id.retain(|d| d.strong_count() > 0);
        of_id.push(Arc::downgrade(&new));
        if known.by_id.len() > known.clear_at {
            known.by_id.retain(|_, of_id| of_id.iter().any(|d| d.strong_count() > 0));
            known.clear_at = known.by_id.len() * 2;
        }
        new
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> usize {
        let known = self.0.lock();
        known.by_id.values().flatten().filter_map(Weak::upgrade).map(|d| d.memory()).sum()
    }
}

/// Every other sample behind the one before, evenly picked, up to `max` bytes.
fn gathered(samples: &[&[u8]], max: usize) -> Vec<u8> {
    let total: usize = samples.iter().step_by(2).map(|s| s.len()).sum();
    let stride = total.div_ceil(max).max(1) * 2;
    let mut bytes = Vec::with_capacity(max);
    for s in samples.iter().step_by(stride) {
        if bytes.len() + s.len() <= max {
            bytes.extend_from_slice(s);
        }
    }
    bytes
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary({:?}, {} bytes, {:016x})", self.codec, self.bytes.len(), self.id)
    }
}
