//! The page cache as it is after one reading of a store's files, whoever used them before: as much of them as fits.

use crate::system;
use anyhow::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

/// Reads every file below a directory once, in the order of their names.
pub fn read_once(dir: &Path) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    system::each_file(dir, &mut |path, meta| match meta.is_file() {
        true => read_file(&File::open(path)?, &mut buffer),
        false => Ok(()),
    })?;
    Ok(())
}

/// Reads what a file has, and passes over its holes: some engines make a file as large as the store may ever become.
fn read_file(file: &File, buffer: &mut [u8]) -> std::io::Result<()> {
    let mut at = 0;
    while let Some(data) = next_data(file, at) {
        match file.read_at(buffer, data)? {
            0 => break,
            n => at = data + n as u64,
        }
    }
    Ok(())
}

/// Where the next bytes are from `at` on; on a file system that cannot say, right there.
fn next_data(file: &File, at: u64) -> Option<u64> {
    use rustix::fs::{SeekFrom, seek};
    match seek(file, SeekFrom::Data(at)) {
        Err(rustix::io::Errno::NXIO) => None,
        found => Some(found.unwrap_or(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_file_with_little_in_it_is_read_at_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("below")).unwrap();
        let file = File::create_new(dir.path().join("below/sparse")).unwrap();
        file.set_len(1 << 40).unwrap();
        file.write_all_at(b"something", 1 << 39).unwrap();
        let start = std::time::Instant::now();
        read_once(dir.path()).unwrap();
        assert!(start.elapsed().as_secs() < 60, "a terabyte was read");
    }

    #[test]
    fn all_bytes_are_reached() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("full");
        std::fs::write(&path, vec![1; 3 * CHUNK + 5]).unwrap();
        let file = File::open(&path).unwrap();
        let (mut at, mut seen, mut buffer) = (0, 0, vec![0; CHUNK]);
        while let Some(data) = next_data(&file, at) {
            let n = file.read_at(&mut buffer, data).unwrap();
            seen += n;
            at = data + n as u64;
        }
        assert_eq!(seen, 3 * CHUNK + 5);
    }
}
