//! Varints: unsigned numbers of seven bits a byte, low bits first (LEB128).
//!
//! Each number has one encoding, the shortest; a reader refuses any other, so that two different byte strings
//! never mean the same.

/// Appends `v`.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Bytes that [`put_varint`] takes.
pub(crate) fn varint_len(v: u64) -> usize {
    (70 - (v | 1).leading_zeros() as usize) / 7
}

/// The number that `bytes` begin with, and its length in bytes; or what is wrong with it.
#[inline(always)]
pub(crate) fn get_varint(bytes: &[u8]) -> Result<(u64, usize), &'static str> {
    match bytes.first() {
        Some(&first) if first < 0x80 => Ok((u64::from(first), 1)),
        _ => long_varint(bytes),
    }
}

#[inline(never)]
fn long_varint(bytes: &[u8]) -> Result<(u64, usize), &'static str> {
    let mut v = 0;
    for (i, &b) in bytes.iter().take(10).enumerate() {
        if i == 9 && b > 1 {
            return Err("a number does not fit 64 bits");
        }
        v |= u64::from(b & 0x7F) << (7 * i);
        if b < 0x80 {
            let is_longer = b == 0 && i > 0;
            return if is_longer {
                Err("a number is longer than it needs to be")
            } else {
                Ok((v, i + 1))
            };
        }
    }
    Err("cut short")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_have_one_form() {
        let edges = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for v in edges.chain([300, u64::from(u32::MAX), u64::MAX]) {
            let mut out = Vec::new();
            put_varint(&mut out, v);
            assert_eq!(out.len(), varint_len(v), "{v}");
            assert_eq!(get_varint(&out), Ok((v, out.len())));
            assert_eq!(get_varint(&out[..out.len() - 1]), Err("cut short"));
            // What follows it is not read.
            out.push(0xFF);
            assert_eq!(get_varint(&out), Ok((v, out.len() - 1)));
        }
        for (bad, why) in [
            (&[0x80, 0][..], "a number is longer than it needs to be"),
            (&[], "cut short"),
            (&[0x80], "cut short"),
            (&[0xFF; 11], "a number does not fit 64 bits"),
            (
                &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2],
                "a number does not fit 64 bits",
            ),
        ] {
            assert_eq!(get_varint(bad), Err(why), "{bad:?}");
        }
    }
}
