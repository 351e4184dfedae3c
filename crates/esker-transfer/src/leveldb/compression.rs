//! How a block is compressed, by the byte behind it.
//!
//! | kind | LevelDB | Minecraft's fork |
//! |---|---|---|
//! | 0 | none | none |
//! | 1 | Snappy | |
//! | 2 | Zstandard, since 1.23 | zlib |
//! | 4 | | deflate, without zlib's header |
//!
//! The two meanings of 2 are told apart by the magic number that Zstandard begins with, which is no
//! header of zlib.

use std::borrow::Cow;
use std::io::Read;

pub(super) const NONE: u8 = 0;
pub(super) const SNAPPY: u8 = 1;
const ZSTD_OR_ZLIB: u8 = 2;
const DEFLATE: u8 = 4;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The largest block, in bytes. One holds a value whole, which is a GiB at most where it is to go to;
/// beyond it come the key and what is about it.
pub(super) const MAX_BLOCK: u64 = (1 << 30) + (64 << 20);

/// Snappy copies 64 bytes for three at most; what says more is wrong, and no memory is taken for it.
const SNAPPY_MOST: u64 = 22;

/// The bytes of a block, which have `limit` bytes at most.
pub(super) fn unpack(kind: u8, bytes: &[u8], limit: u64) -> Result<Cow<'_, [u8]>, String> {
    match kind {
        NONE => Ok(Cow::Borrowed(bytes)),
        SNAPPY => snappy(bytes, limit).map(Cow::Owned),
        ZSTD_OR_ZLIB if bytes.starts_with(&ZSTD_MAGIC) => {
            let decoder = zstd::stream::Decoder::with_buffer(bytes);
            let decoder = decoder.map_err(|e| format!("Zstandard: {e}"))?;
            stream("Zstandard", decoder, limit).map(Cow::Owned)
        }
        ZSTD_OR_ZLIB => {
            stream("zlib", flate2::read::ZlibDecoder::new(bytes), limit).map(Cow::Owned)
        }
        DEFLATE => {
            stream("deflate", flate2::read::DeflateDecoder::new(bytes), limit).map(Cow::Owned)
        }
        other => Err(format!("a block has the unknown compression {other}")),
    }
}

fn snappy(bytes: &[u8], limit: u64) -> Result<Vec<u8>, String> {
    let wrong = |e| format!("a block that Snappy did not write: {e}");
    let len = snap::raw::decompress_len(bytes).map_err(wrong)? as u64;
    let most = limit.min(bytes.len() as u64 * SNAPPY_MOST);
    if len > most {
        return Err(format!("a block of {} bytes says that it has {len}", bytes.len()));
    }
    snap::raw::Decoder::new().decompress_vec(bytes).map_err(wrong)
}

fn stream(name: &str, decoder: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    decoder
        .take(limit + 1)
        .read_to_end(&mut out)
        .map_err(|e| format!("a block that {name} did not write: {e}"))?;
    if out.len() as u64 > limit {
        return Err(format!("a block has more than {limit} bytes"));
    }
    Ok(out)
}

/// The bytes as Snappy packs them, where that saves an eighth at least.
pub(super) fn pack(bytes: &[u8]) -> Option<Vec<u8>> {
    let packed = snap::raw::Encoder::new().compress_vec(bytes).ok()?;
    (packed.len() < bytes.len() - bytes.len() / 8).then_some(packed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use std::io::Write;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn every_kind_comes_back_and_keeps_to_the_limit() {
        let text: Vec<u8> = (0..10_000u32).flat_map(|n| (n / 50).to_be_bytes()).collect();
        let zstd = zstd::bulk::compress(&text, 3).unwrap();
        for (kind, packed) in [
            (NONE, text.clone()),
            (SNAPPY, pack(&text).unwrap()),
            (ZSTD_OR_ZLIB, zstd),
            (ZSTD_OR_ZLIB, zlib(&text)),
            (DEFLATE, deflate(&text)),
        ] {
            assert_eq!(unpack(kind, &packed, MAX_BLOCK).unwrap(), text, "{kind}");
            if kind != NONE {
                assert!(unpack(kind, &packed, text.len() as u64).is_ok());
                assert!(unpack(kind, &packed, text.len() as u64 - 1).is_err(), "{kind}");
                assert!(unpack(kind, &packed[..packed.len() / 2], MAX_BLOCK).is_err(), "{kind}");
            }
        }
        assert!(unpack(3, &text, MAX_BLOCK).is_err());
        assert_eq!(pack(b"nothing to gain"), None);
    }

    #[test]
    fn a_claimed_length_takes_no_memory() {
        // Four GiB less a byte, says Snappy's header.
        assert!(
            unpack(SNAPPY, b"\xff\xff\xff\xff\x0f\0a", MAX_BLOCK).unwrap_err().contains("says")
        );
    }
}
