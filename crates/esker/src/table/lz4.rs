//! LZ4 blocks of single values, with a dictionary whose hash table is made once.

/// A dictionary made ready.
pub(super) struct Prepared {
    bytes: Vec<u8>,
}

impl Prepared {
    pub fn new(bytes: &[u8]) -> Prepared {
        Prepared { bytes: bytes.to_vec() }
    }
}

/// Packs values; keeps its tables between them.
#[derive(Default)]
pub(super) struct Encoder {}

impl Encoder {
    /// Appends `value` packed to `out`; false (and `out` in any state) when it would take more than
    /// `max` bytes.
    pub fn pack(
        &mut self,
        value: &[u8],
        dict: Option<&Prepared>,
        max: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        out.resize(start + lz4_flex::block::get_maximum_output_size(value.len()), 0);
        let dict = dict.map_or(&[][..], |d| &d.bytes);
        let packed = if dict.is_empty() {
            lz4_flex::block::compress_into(value, &mut out[start..])
        } else {
            lz4_flex::block::compress_into_with_dict(value, &mut out[start..], dict)
        };
        match packed {
            Ok(n) => {
                out.truncate(start + n);
                n <= max
            }
            Err(_) => false,
        }
    }
}

/// Unpacks a value into `out`, whose length is the value's; false when the bytes are not those of a
/// value of this length.
pub(super) fn unpack(packed: &[u8], dict: Option<&Prepared>, out: &mut [u8]) -> bool {
    let len = out.len();
    let n = match dict {
        Some(d) => lz4_flex::block::decompress_into_with_dict(packed, out, &d.bytes),
        None => lz4_flex::block::decompress_into(packed, out),
    };
    n.is_ok_and(|n| n == len)
}
