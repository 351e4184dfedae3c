//! Zstandard frames of single values: the library, or what stands in for it in a build without.

#[cfg(feature = "zstd")]
pub(super) use with::decompress;
#[cfg(not(feature = "zstd"))]
pub(super) use without::decompress;

/// Packs values. Packs none when the library refuses a context. A build without the library packs
/// nothing either: options that ask for it are refused before a table is begun.
pub(super) struct ZstdEncoder(#[cfg(feature = "zstd")] Option<zstd::zstd_safe::CCtx<'static>>);

#[cfg(feature = "zstd")]
mod with {
    use std::cell::RefCell;

    use zstd::zstd_safe::{CCtx, CParameter, DCtx, compress_bound};

    use super::ZstdEncoder;
    use crate::table::dictionary::{Dictionary, Problem};

    /// What a frame begins with. All do, so it is not stored.
    const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    /// The library's default.
    const LEVEL: i32 = 3;

    impl ZstdEncoder {
        pub fn new(dictionary: Option<&Dictionary>) -> ZstdEncoder {
            ZstdEncoder(context(dictionary))
        }

        /// Appends `value` packed to `out`; false (and anything behind `out`'s end) when it would
        /// take more than `max` bytes.
        pub fn compress(&mut self, value: &[u8], max: usize, out: &mut Vec<u8>) -> bool {
            let Some(context) = &mut self.0 else { return false };
            let start = out.len();
            out.resize(start + compress_bound(value.len()), 0);
            match context.compress2(&mut out[start..], value) {
                Ok(n) if n >= 4 && out[start..start + 4] == MAGIC => {
                    out.copy_within(start + 4..start + n, start);
                    out.truncate(start + n - 4);
                    n - 4 <= max
                }
                _ => false,
            }
        }
    }

    /// A context with all frame fields left out that can be, `None` when the library refuses.
    fn context(dictionary: Option<&Dictionary>) -> Option<CCtx<'static>> {
        let mut context = CCtx::try_create()?;
        for p in [
            CParameter::CompressionLevel(LEVEL),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ] {
            context.set_parameter(p).ok()?;
        }
        if let Some(d) = dictionary {
            context.load_dictionary(d.bytes()).ok()?;
        }
        Some(context)
    }

    /// A decompressor and room for a frame with its magic number.
    struct Unpacker {
        context: DCtx<'static>,
        frame: Vec<u8>,
    }

    thread_local! {
        static UNPACKER: RefCell<Option<Unpacker>> = const { RefCell::new(None) };
    }

    /// Unpacks a value into `out`, which becomes as long as it; false when the packed bytes are not
    /// those of a value of this length.
    pub(in crate::table) fn decompress(
        bytes: &[u8],
        dictionary: Option<&Dictionary>,
        raw_len: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, Problem> {
        let dict = match dictionary {
            Some(d) => Some(d.zstd().ok_or(Problem::Damaged("dictionary of another codec"))?),
            None => None,
        };
        // A block of a frame takes at least three bytes and stands for at most 128 KiB.
        if raw_len > (bytes.len() / 3 + 1) << 17 {
            return Ok(false);
        }
        let mut unpack = |slot: &mut Option<Unpacker>| {
            if slot.is_none() {
                let context = DCtx::try_create();
                *slot = context.map(|context| Unpacker { context, frame: Vec::new() });
            }
            let Some(u) = slot else { return Ok(false) };
            u.frame.clear();
            u.frame.extend_from_slice(&MAGIC);
            u.frame.extend_from_slice(bytes);
            out.resize(raw_len, 0);
            let n = match dict {
                Some(d) => u.context.decompress_using_ddict(&mut out[..], &u.frame, d),
                None => u.context.decompress(&mut out[..], &u.frame),
            };
            if u.frame.capacity() > 1 << 20 {
                u.frame = Vec::new();
            }
            Ok(n.is_ok_and(|n| n == raw_len))
        };
        UNPACKER.try_with(|slot| unpack(&mut slot.borrow_mut())).unwrap_or_else(|_| {
            // The thread ends, and what its own thread-locals still read has one made for each value.
            unpack(&mut None)
        })
    }
}

#[cfg(not(feature = "zstd"))]
mod without {
    use super::ZstdEncoder;
    use crate::table::dictionary::{Dictionary, Problem};

    impl ZstdEncoder {
        pub fn new(_: Option<&Dictionary>) -> ZstdEncoder {
            ZstdEncoder()
        }

        pub fn compress(&mut self, _: &[u8], _: usize, _: &mut Vec<u8>) -> bool {
            false
        }
    }

    pub(in crate::table) fn decompress(
        _: &[u8],
        _: Option<&Dictionary>,
        _: usize,
        _: &mut Vec<u8>,
    ) -> Result<bool, Problem> {
        Err(Problem::NoZstd)
    }
}
