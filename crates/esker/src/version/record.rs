//! How a manifest file is framed, and which damage a crash can have left.
//!
//! ```text
//! file   := header record*
//! header := magic[8]  format u32  0 u32  number u64  checksum u64           (32 bytes)
//! record := len u32  check u32  checksum u64  payload[len]  0xA5[1..=16]    (a multiple of 16)
//! ```
//!
//! All integers are little-endian. `checksum` covers payload and padding, `check` covers `len` and
//! `checksum`; both are seeded with the manifest's number and the record's offset, so that a record
//! of another file or of another place is none. Two checks tell two cases apart: where `check`
//! holds, `len` can be trusted and says where the record ends, and so whether it is the last one.
//!
//! A record lies at a multiple of 16, hence no 512-byte sector boundary cuts its header, and its
//! last 16 bytes are never all zeros. Each append is synced before the next one begins, so a crash
//! can only touch the last record: the file ends inside it, or whole sectors of it are zeros.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::env::File;
use crate::error::{Error, Result};

/// The format that this build writes and reads.
pub(crate) const FORMAT: u32 = 2;
/// First bytes of a manifest.
pub(super) const MAGIC: [u8; 8] = *b"esker\0mf";
pub(super) const HEADER_LEN: u64 = 32;
pub(super) const RECORD_HEADER_LEN: usize = 16;
/// Longest payload in bytes: more than a million tables.
pub(super) const MAX_PAYLOAD: usize = 256 << 20;
const ALIGN: usize = 16;
const PAD: u8 = 0xA5;
/// What a device writes whole or not at all.
const SECTOR: u64 = 512;

fn seed(number: u64, offset: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ offset
}

/// The first bytes of manifest `number`.
pub(super) fn file_header(number: u64) -> Vec<u8> {
    let mut b = Vec::with_capacity(HEADER_LEN as usize);
    b.extend_from_slice(&MAGIC);
    b.extend_from_slice(&FORMAT.to_le_bytes());
    b.extend_from_slice(&0u32.to_le_bytes());
    b.extend_from_slice(&number.to_le_bytes());
    let sum = xxh3_64_with_seed(&b, 0);
    b.extend_from_slice(&sum.to_le_bytes());
    b
}

/// Checks the header of manifest `number`. The checksum comes before the format: every format
/// keeps these 32 bytes, so a newer one is told from damage.
pub(super) fn check_file_header(file: &dyn File, path: &Path, number: u64, len: u64) -> Result<()> {
    if len < HEADER_LEN {
        return Err(Error::corrupt(path, len, "the manifest ends within its header"));
    }
    let mut b = [0; HEADER_LEN as usize];
    file.read_exact_at(&mut b, 0).map_err(|e| Error::io("read", path, e))?;
    if b[..8] != MAGIC {
        return Err(Error::corrupt(path, 0, "not the first bytes of a manifest"));
    }
    if xxh3_64_with_seed(&b[..24], 0) != le64(&b[24..32]) {
        return Err(Error::corrupt(path, 24, "the header does not match its checksum"));
    }
    let format = le32(&b[8..12]);
    if format == 0 || le32(&b[12..16]) != 0 {
        return Err(Error::corrupt(path, 8, "the header has no known format"));
    }
    if format != FORMAT {
        return Err(Error::UnsupportedFormat {
            path: path.into(),
            found: format,
            supported: FORMAT,
        });
    }
    if le64(&b[16..24]) != number {
        return Err(Error::corrupt(path, 16, "the header is that of another manifest"));
    }
    Ok(())
}

/// The bytes of a record that will lie at `offset`; `None` when the payload is too long.
pub(super) fn encode(number: u64, offset: u64, payload: &[u8]) -> Option<Vec<u8>> {
    assert!(offset.is_multiple_of(ALIGN as u64) && !payload.is_empty());
    if payload.len() > MAX_PAYLOAD {
        return None;
    }
    let end = padded(payload.len());
    let mut b = vec![PAD; RECORD_HEADER_LEN + end];
    b[RECORD_HEADER_LEN..RECORD_HEADER_LEN + payload.len()].copy_from_slice(payload);
    let seed = seed(number, offset);
    let sum = xxh3_64_with_seed(&b[RECORD_HEADER_LEN..], seed);
    b[0..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    b[8..16].copy_from_slice(&sum.to_le_bytes());
    let check = header_check(&b, seed);
    b[4..8].copy_from_slice(&check.to_le_bytes());
    Some(b)
}

/// What lies at an offset.
#[derive(Debug)]
pub(super) enum Found {
    /// An intact record; the next one begins at `end`.
    Record { payload: Vec<u8>, end: u64 },
    /// The file ends here.
    End,
    /// Something that a crash during the last append can have left.
    Torn(&'static str),
    /// Something that it cannot.
    Damaged(&'static str),
}

/// Reads the record at `offset` of a file of `len` bytes.
pub(super) fn read(
    file: &dyn File,
    path: &Path,
    number: u64,
    offset: u64,
    len: u64,
) -> Result<Found> {
    let read = |buf: &mut [u8], at: u64| {
        file.read_exact_at(buf, at).map_err(|e| Error::io("read", path, e))
    };
    let left = len - offset;
    if left == 0 {
        return Ok(Found::End);
    }
    if left < RECORD_HEADER_LEN as u64 {
        return Ok(Found::Torn("the file ends within a record's header"));
    }
    let mut header = [0; RECORD_HEADER_LEN];
    read(&mut header, offset)?;
    let Some(payload_len) = trusted_len(&header, number, offset) else {
        return headless(file, path, number, offset, len, &header);
    };
    let body_len = padded(payload_len);
    let end = offset + (RECORD_HEADER_LEN + body_len) as u64;
    if end > len {
        return Ok(Found::Torn("the file ends within a record"));
    }
    let mut body = vec![0; body_len];
    read(&mut body, offset + RECORD_HEADER_LEN as u64)?;
    if xxh3_64_with_seed(&body, seed(number, offset)) == le64(&header[8..16]) {
        body.truncate(payload_len);
        return Ok(Found::Record { payload: body, end });
    }
    if !zeros(file, path, end, len)? {
        return Ok(Found::Damaged("a record does not match its checksum, and more follows it"));
    }
    if has_empty_sector(&body, offset + RECORD_HEADER_LEN as u64) {
        return Ok(Found::Torn("sectors of the last record were never written"));
    }
    Ok(Found::Damaged("the last record does not match its checksum, and no crash explains it"))
}

/// No record header here. A crash leaves this only as a sector of zeros that was to hold the
/// header, with no further record behind it.
fn headless(
    file: &dyn File,
    path: &Path,
    number: u64,
    offset: u64,
    len: u64,
    header: &[u8],
) -> Result<Found> {
    if header.iter().any(|&b| b != 0) {
        return Ok(Found::Damaged("a record's header does not match its check"));
    }
    let sector_end = (offset / SECTOR + 1) * SECTOR;
    if !zeros(file, path, offset, sector_end.min(len))? {
        return Ok(Found::Damaged("a record's header is zeros, the rest of its sector is not"));
    }
    if record_follows(file, path, number, sector_end, len)? {
        return Ok(Found::Damaged("zeros where a record should be, and records behind them"));
    }
    Ok(Found::Torn("zeros where the last record should be"))
}

/// Whether the rest of the file holds anything with an intact record header.
fn record_follows(file: &dyn File, path: &Path, number: u64, from: u64, len: u64) -> Result<bool> {
    let mut found = false;
    chunks(file, path, from, len, |at, bytes| {
        for (i, header) in bytes.chunks_exact(ALIGN).enumerate() {
            found |= trusted_len(header, number, at + (i * ALIGN) as u64).is_some();
        }
        !found
    })?;
    Ok(found)
}

fn zeros(file: &dyn File, path: &Path, from: u64, to: u64) -> Result<bool> {
    let mut all = true;
    chunks(file, path, from, to, |_, bytes| {
        all &= bytes.iter().all(|&b| b == 0);
        all
    })?;
    Ok(all)
}

/// Shows a range of the file piece by piece while `more` says so; a file of any length takes the
/// same memory.
fn chunks(
    file: &dyn File,
    path: &Path,
    mut from: u64,
    to: u64,
    mut more: impl FnMut(u64, &[u8]) -> bool,
) -> Result<()> {
    let mut buf = vec![0; 64 << 10];
    while from < to {
        let n = buf.len().min((to - from) as usize);
        file.read_exact_at(&mut buf[..n], from).map_err(|e| Error::io("read", path, e))?;
        if !more(from, &buf[..n]) {
            return Ok(());
        }
        from += n as u64;
    }
    Ok(())
}

/// Whether some sector of a record's body was never written: all zeros.
fn has_empty_sector(bytes: &[u8], offset: u64) -> bool {
    // Where the body begins within a sector, the header is in it too: that sector was written.
    let begun = ((SECTOR - offset % SECTOR) % SECTOR) as usize;
    let rest = bytes.get(begun..).unwrap_or_default();
    rest.chunks(SECTOR as usize).any(|sector| sector.iter().all(|&b| b == 0))
}

fn trusted_len(header: &[u8], number: u64, offset: u64) -> Option<usize> {
    let len = le32(&header[0..4]) as usize;
    let holds = le32(&header[4..8]) == header_check(header, seed(number, offset));
    (holds && (1..=MAX_PAYLOAD).contains(&len)).then_some(len)
}

fn header_check(header: &[u8], seed: u64) -> u32 {
    let mut covered = [0; 12];
    covered[..4].copy_from_slice(&header[0..4]);
    covered[4..].copy_from_slice(&header[8..16]);
    xxh3_64_with_seed(&covered, seed) as u32
}

/// Payload and padding: at least one byte of padding, at most sixteen.
fn padded(len: usize) -> usize {
    (len + 1).next_multiple_of(ALIGN)
}

fn le32(b: &[u8]) -> u32 {
    u32::from_le_bytes(b.try_into().expect("four bytes"))
}

fn le64(b: &[u8]) -> u64 {
    u64::from_le_bytes(b.try_into().expect("eight bytes"))
}
