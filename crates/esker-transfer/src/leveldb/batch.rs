//! A record of a log: several writes under consecutive sequences.
//!
//! ```text
//! batch := sequence u64 | count u32 | write[count]
//! write := 1 key value | 0 key        each behind its length
//! ```

use super::coding::Input;
use super::internal_key::{DELETION, MAX_SEQUENCE, tag};
use crate::merge::{Tag, VALUE};

/// Hands over the writes of a batch as versions: key, tag, value. Says what is wrong with it, if it is
/// none; then nothing was handed over.
pub(super) fn versions<'a, E>(
    record: &'a [u8],
    mut each: impl FnMut(&'a [u8], Tag, &'a [u8]) -> Result<(), E>,
) -> Result<Result<(), E>, String> {
    let (first, count, writes) = head(record).ok_or("a batch is too short")?;
    let mut input = writes;
    let mut found = 0;
    while !input.is_empty() {
        write(&mut input).ok_or_else(|| format!("write {found} of a batch is none"))?;
        found += 1;
    }
    if found != u64::from(count) {
        return Err(format!("a batch has {found} writes instead of {count}"));
    }
    if first > MAX_SEQUENCE - found {
        return Err(format!("a batch has the sequence {first}"));
    }
    let mut input = writes;
    for sequence in first..first + found {
        let Some((kind, key, value)) = write(&mut input) else { break };
        if let Err(e) = each(key, tag(sequence, kind), value) {
            return Ok(Err(e));
        }
    }
    Ok(Ok(()))
}

fn head(record: &[u8]) -> Option<(u64, u32, Input<'_>)> {
    let mut input = Input(record);
    Some((input.u64()?, input.u32()?, input))
}

fn write<'a>(input: &mut Input<'a>) -> Option<(u64, &'a [u8], &'a [u8])> {
    let kind = u64::from(input.u8()?);
    let key = input.prefixed()?;
    match kind {
        VALUE => Some((kind, key, input.prefixed()?)),
        DELETION => Some((kind, key, b"")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Version = (Vec<u8>, Tag, Vec<u8>);

    fn read(record: &[u8]) -> Result<Vec<Version>, String> {
        let mut all = Vec::new();
        versions::<()>(record, |key, tag, value| {
            all.push((key.to_vec(), tag, value.to_vec()));
            Ok(())
        })?
        .unwrap();
        Ok(all)
    }

    #[test]
    fn batches() {
        let batch = b"\x05\0\0\0\0\0\0\0\x03\0\0\0\x01\x01a\x02bc\0\x01a\x01\0\0";
        let expected = [("a", 5 << 8 | 1, "bc"), ("a", 6 << 8, ""), ("", 7 << 8 | 1, "")];
        let expected = expected.map(|(k, t, v)| (k.into(), t, v.into()));
        assert_eq!(read(batch).unwrap(), expected);
        for len in 0..batch.len() {
            assert!(read(&batch[..len]).is_err(), "cut to {len}");
        }
        let mut more = batch.to_vec();
        more[8] = 4;
        assert!(read(&more).unwrap_err().contains("3 writes instead of 4"));
        more[8] = 3;
        more[7] = 0xff;
        assert!(read(&more).unwrap_err().contains("sequence"));
    }
}
