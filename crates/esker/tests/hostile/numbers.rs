//! Numbers that ask for too much, in headers whose checksums are right.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::common::files::{self, copy};
use super::{killed, survive};

/// What a field of a length, a count or an offset may be made to say.
const EDGES: [u64; 9] =
    [0, 1, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 33, u64::MAX >> 2, u64::MAX - 4095, u64::MAX];

fn image() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let image = root.path().join("image");
    killed(root.path(), &image);
    (root, image)
}

/// Changes a copy of one file by `change` and lets it be used.
fn with(root: &Path, image: &Path, name: &str, what: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let dir = root.join("db");
    copy(image, &dir);
    let mut bytes = fs::read(dir.join(name)).unwrap();
    change(&mut bytes);
    fs::write(dir.join(name), bytes).unwrap();
    survive(&dir, &format!("{name}: {what}"));
    fs::remove_dir_all(&dir).unwrap();
}

fn put(bytes: &mut [u8], at: usize, width: usize, number: u64) {
    bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
}

#[test]
fn every_field_of_a_tables_footer() {
    let (root, image) = image();
    let name = files::names(&image).into_iter().find(|n| n.ends_with(".tbl")).unwrap();
    // Offsets in the footer and widths: docs/format/table.md.
    let fields = [
        (0, 8),
        (8, 8),
        (16, 4),
        (20, 4),
        (24, 4),
        (28, 1),
        (29, 1),
        (32, 4),
        (36, 4),
        (56, 8),
        (72, 4),
        (76, 4),
    ];
    for (at, width) in fields {
        for edge in EDGES {
            with(root.path(), &image, &name, &format!("{edge} at {at}"), |b| {
                let footer = b.len() - 96;
                put(b, footer + at, width, edge);
                let sum = xxh3_64(&b[footer..footer + 80]);
                put(b, footer + 80, 8, sum);
            });
        }
    }
}

#[test]
fn every_number_of_a_tables_properties() {
    let (root, image) = image();
    let name = files::names(&image).into_iter().find(|n| n.ends_with(".tbl")).unwrap();
    let bytes = fs::read(image.join(&name)).unwrap();
    let footer = bytes.len() - 96;
    let len = u64::from_le_bytes(bytes[footer + 56..footer + 64].try_into().unwrap()) as usize;
    for at in (0..len - 8).step_by(3) {
        for edge in [0xFFFF_FFFF, u64::MAX, 1 << 40] {
            let width = if edge == 0xFFFF_FFFF { 4 } else { 8 };
            with(root.path(), &image, &name, &format!("properties: {edge} at {at}"), |b| {
                put(b, footer - len + at, width, edge);
                // A section's checksum is mixed with the table's number.
                let sum = xxh3_64(&b[footer - len..footer]) ^ xxh3_64(&bytes[footer - len..footer]);
                let was = u64::from_le_bytes(b[footer + 64..footer + 72].try_into().unwrap());
                put(b, footer + 64, 8, was ^ sum);
                let sum = xxh3_64(&b[footer..footer + 80]);
                put(b, footer + 80, 8, sum);
            });
        }
    }
}

#[test]
fn every_field_of_a_segments_header_and_of_its_first_frame() {
    let (root, image) = image();
    for path in files::ending(&image, ".log") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let number: u64 = name[..10].parse().unwrap();
        for edge in EDGES {
            for (at, width) in [(8, 4), (12, 4), (16, 8), (24, 8)] {
                with(root.path(), &image, name, &format!("header: {edge} at {at}"), |b| {
                    put(b, at, width, edge);
                    let sum = xxh3_64(&b[..32]);
                    put(b, 32, 8, sum);
                });
            }
            // Length, sequence; the first record's distance, lengths and keyspace.
            for (at, width) in [(4, 4), (8, 8), (16, 4), (20, 4), (24, 4), (28, 4)] {
                with(root.path(), &image, name, &format!("frame: {edge} at {at}"), |b| {
                    put(b, 4096 + at, width, edge);
                    let word = u32::from_le_bytes(b[4100..4104].try_into().unwrap());
                    let end = 4096 + 16 + (word & !7) as usize;
                    if end <= b.len() {
                        let sum = xxh3_64_with_seed(&b[4100..end], number) as u32;
                        put(b, 4096, 4, sum.into());
                    }
                });
            }
        }
    }
}

#[test]
fn a_manifest_that_claims_gigabytes() {
    let (root, image) = image();
    let name = files::names(&image).into_iter().find(|n| n.starts_with("MANIFEST-")).unwrap();
    let number: u64 = name[9..].parse().unwrap();
    // A record of the greatest length, in a file that has it only as a hole.
    let mut header = [0; 16];
    let seed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 32;
    header[..4].copy_from_slice(&(256u32 << 20).to_le_bytes());
    let mut covered = [0; 12];
    covered[..4].copy_from_slice(&header[..4]);
    header[4..8].copy_from_slice(&(xxh3_64_with_seed(&covered, seed) as u32).to_le_bytes());
    with(root.path(), &image, &name, "a record of 256 MiB that is not there", |b| {
        b[32..48].copy_from_slice(&header);
    });
    // Hundreds of megabytes of zeros behind a sound end.
    let dir = root.path().join("db");
    copy(&image, &dir);
    let file = fs::OpenOptions::new().write(true).open(dir.join(&name)).unwrap();
    file.write_all_at(&[0; 1], 300 << 20).unwrap();
    drop(file);
    survive(&dir, "300 MiB of zeros in the manifest");
}

#[test]
fn sparse_giants() {
    for suffix in [".log", ".tbl", "CURRENT", "LOCK"] {
        let (root, image) = image();
        let name = files::names(&image).into_iter().find(|n| n.ends_with(suffix)).unwrap();
        let dir = root.path().join("db");
        copy(&image, &dir);
        let file = fs::OpenOptions::new().write(true).open(dir.join(&name)).unwrap();
        file.set_len(1 << 40).unwrap();
        drop(file);
        survive(&dir, &format!("{name} of a terabyte"));
    }
}

/// Each of these headers would be a frame of megabytes; to find that none is one took a checksum
/// over megabytes, a million times.
#[test]
fn a_segment_full_of_beginnings_of_frames() {
    let (root, image) = image();
    let dir = root.path().join("db");
    copy(&image, &dir);
    let path = files::ending(&dir, ".log").pop().unwrap();
    let number: u64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.resize(16 << 20, 0);
    put(&mut bytes, 24, 8, 16 << 20);
    let sum = xxh3_64(&bytes[..32]);
    put(&mut bytes, 32, 8, sum);
    let used = 4096 + bytes[4096..].iter().rposition(|b| *b != 0).map_or(0, |n| n / 16 * 16 + 64);
    let seq = 500u64.to_le_bytes();
    for header in bytes[used..].chunks_exact_mut(16) {
        header[..4].copy_from_slice(&[1; 4]);
        header[4..8].copy_from_slice(&(4u32 << 20).to_le_bytes());
        header[8..].copy_from_slice(&seq);
    }
    fs::write(&path, bytes).unwrap();
    survive(&dir, &format!("segment {number}"));
}
