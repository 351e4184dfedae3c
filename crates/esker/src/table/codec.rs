//! Values packed one by one, so that a read never inflates the neighbours of what it wants.

use std::cell::RefCell;
use std::sync::Arc;

use super::dictionary::{Dictionary, ZSTD_LEVEL};
use super::lz4;
use super::wire::{put_varint, varint_len};
use crate::key::{Codec, Stored};
use crate::options::Compression;

/// Shorter values are stored as they are.
const MIN_LEN: usize = 16;
/// What a Zstandard frame begins with. All do, so it is not stored.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// After so many values that did not pay, only every `PROBE`th is tried until one does again.
const GIVE_UP_AFTER: u32 = 64;
const PROBE: u32 = 16;

/// Packs the values of one table.
pub(super) struct Packer {
    codec: Option<Codec>,
    dictionary: Option<Arc<Dictionary>>,
    out: Vec<u8>,
    lz4: lz4::Encoder,
    zstd: Option<zstd::zstd_safe::CCtx<'static>>,
    /// Values in a row that did not pay.
    failures: u32,
}

impl Packer {
    /// A dictionary of another codec is not used.
    pub fn new(compression: Compression, dictionary: Option<Arc<Dictionary>>) -> Packer {
        let codec = match compression {
            Compression::None => None,
            Compression::Lz4 => Some(Codec::Lz4),
            Compression::Zstd => Some(Codec::Zstd),
        };
        let dictionary = dictionary.filter(|d| Some(d.codec()) == codec);
        let zstd = (codec == Some(Codec::Zstd)).then(|| zstd_context(dictionary.as_deref()));
        Packer {
            codec,
            dictionary,
            out: Vec::new(),
            lz4: lz4::Encoder::default(),
            zstd: zstd.flatten(),
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
    pub fn pack(&mut self, value: &[u8]) -> Option<&[u8]> {
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
        put_varint(&mut self.out, raw_len);
        let max = value.len() - value.len() / 8 - varint_len(raw_len);
        let pays = match codec {
            Codec::Lz4 => {
                let dict = self.dictionary.as_ref().and_then(|d| d.lz4());
                self.lz4.pack(value, dict, max, &mut self.out)
            }
            Codec::Zstd => self.pack_zstd(value, max),
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
        put_varint(&mut self.out, raw_len);
        self.out.extend_from_slice(bytes);
        &self.out
    }

    /// Bytes of the caller, kept for as long as a packed value would be.
    pub fn hold(&mut self, bytes: &[u8]) -> &[u8] {
        self.out.clear();
        self.out.extend_from_slice(bytes);
        &self.out
    }

    fn pack_zstd(&mut self, value: &[u8], max: usize) -> bool {
        let Some(context) = &mut self.zstd else { return false };
        let start = self.out.len();
        self.out.resize(start + zstd::zstd_safe::compress_bound(value.len()), 0);
        match context.compress2(&mut self.out[start..], value) {
            Ok(n) if n >= 4 && self.out[start..start + 4] == ZSTD_MAGIC => {
                self.out.copy_within(start + 4..start + n, start);
                self.out.truncate(start + n - 4);
                n - 4 <= max
            }
            _ => false,
        }
    }
}

/// A context with all frame fields left out that can be, `None` when the library refuses.
fn zstd_context(dictionary: Option<&Dictionary>) -> Option<zstd::zstd_safe::CCtx<'static>> {
    use zstd::zstd_safe::CParameter;
    let mut context = zstd::zstd_safe::CCtx::try_create()?;
    for p in [
        CParameter::CompressionLevel(ZSTD_LEVEL),
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
    context: zstd::zstd_safe::DCtx<'static>,
    frame: Vec<u8>,
}

thread_local! {
    static ZSTD: RefCell<Option<Unpacker>> = const { RefCell::new(None) };
}

/// Replaces `out` with the value that was stored. The error says what is wrong with it.
pub(super) fn unpack(
    stored: Stored<'_>,
    dictionary: Option<&Dictionary>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let (codec, dict, raw_len, bytes) = match stored {
        Stored::Inline(value) => {
            out.clear();
            out.extend_from_slice(value);
            return Ok(());
        }
        Stored::Pointer(_) => return Err("a pointer's value is in the log"),
        Stored::Packed { codec, dict, raw_len, bytes } => (codec, dict, raw_len as usize, bytes),
    };
    let dictionary = match dict {
        0 => None,
        id => Some(dictionary.filter(|d| d.id() == id).ok_or("value of another dictionary")?),
    };
    let whole = match codec {
        Codec::Lz4 => {
            // A byte of LZ4 stands for at most 255: no more is set aside for a lying length.
            if raw_len > bytes.len().saturating_mul(255) {
                return Err("packed value: length");
            }
            out.resize(raw_len, 0);
            let dict = match dictionary {
                Some(d) => Some(d.lz4().ok_or("dictionary of another codec")?),
                None => None,
            };
            lz4::unpack(bytes, dict, out)
        }
        Codec::Zstd => {
            let dict = match dictionary {
                Some(d) => Some(d.zstd().ok_or("dictionary of another codec")?),
                None => None,
            };
            unpack_zstd(bytes, dict, raw_len, out)
        }
    };
    if whole { Ok(()) } else { Err("packed value does not unpack") }
}

fn unpack_zstd(
    bytes: &[u8],
    dict: Option<&zstd::dict::DecoderDictionary<'static>>,
    raw_len: usize,
    out: &mut Vec<u8>,
) -> bool {
    // A block of a frame takes at least three bytes and stands for at most 128 KiB.
    if raw_len > (bytes.len() / 3 + 1) << 17 {
        return false;
    }
    ZSTD.with_borrow_mut(|slot| {
        if slot.is_none() {
            let context = zstd::zstd_safe::DCtx::try_create();
            *slot = context.map(|context| Unpacker { context, frame: Vec::new() });
        }
        let Some(u) = slot else { return false };
        u.frame.clear();
        u.frame.extend_from_slice(&ZSTD_MAGIC);
        u.frame.extend_from_slice(bytes);
        out.resize(raw_len, 0);
        let n = match dict {
            Some(d) => u.context.decompress_using_ddict(&mut out[..], &u.frame, d.as_ddict()),
            None => u.context.decompress(&mut out[..], &u.frame),
        };
        if u.frame.capacity() > 1 << 20 {
            u.frame = Vec::new();
        }
        n.is_ok_and(|n| n == raw_len)
    })
}
