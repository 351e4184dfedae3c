//! Versions that come in any order, sorted in a bounded amount of memory.
//!
//! They are kept until they fill the memory that is theirs. Then they are sorted and written to a
//! file without a name, which is gone with the process, however that ends. [`FAN_IN`] such files of
//! one size class are merged into one of the next, so that their number stays small.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::merge::{Merge, Run, Tag, order};

/// As many files are merged into one.
const FAN_IN: usize = 32;
/// Buffers of files; those that are merged have one each.
const BUFFER_BYTES: usize = 64 << 10;

/// Takes versions in any order.
pub(crate) struct Sorter {
    memory: usize,
    /// Where files are made.
    scratch: PathBuf,
    held: Held,
    /// Files with their size class; classes do not grow from one to the next.
    files: Vec<(u32, File)>,
}

/// Versions in memory.
#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// Where a version is: key and value lie behind each other.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    key_len: u32,
    value_len: u32,
    tag: Tag,
}

impl Held {
    fn key(&self, place: &Place) -> &[u8] {
        &self.bytes[place.at..][..place.key_len as usize]
    }

    fn value(&self, place: &Place) -> &[u8] {
        &self.bytes[place.at + place.key_len as usize..][..place.value_len as usize]
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<Place>()
    }

    fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        // Stable: of equal versions the one that came first goes first.
        places.sort_by(|a, b| order((self.key(a), a.tag), (self.key(b), b.tag)));
        self.places = places;
    }
}

impl Sorter {
    /// With so many bytes of memory, and files in the directory `scratch` for what is beyond them.
    pub fn new(memory: usize, scratch: &Path) -> Sorter {
        Sorter { memory, scratch: scratch.to_owned(), held: Held::default(), files: Vec::new() }
    }

    pub fn push(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        let (Ok(key_len), Ok(value_len)) = (u32::try_from(key.len()), u32::try_from(value.len()))
        else {
            return Err(Error::Refused(format!(
                "an entry of {} bytes is too large to be sorted",
                key.len().saturating_add(value.len())
            )));
        };
        let need = key.len() + value.len() + size_of::<Place>();
        if !self.held.places.is_empty() && self.held.size() + need > self.memory {
            self.spill()?;
        }
        let at = self.held.bytes.len();
        self.held.bytes.extend_from_slice(key);
        self.held.bytes.extend_from_slice(value);
        self.held.places.push(Place { at, key_len, value_len, tag });
        Ok(())
    }

    /// All of them in order.
    pub fn finish(mut self) -> Result<Box<dyn Run>> {
        self.held.sort();
        let in_memory = Box::new(InMemory { held: std::mem::take(&mut self.held), next: 0 });
        if self.files.is_empty() {
            return Ok(in_memory);
        }
        let files = std::mem::take(&mut self.files);
        let mut runs = self.open(files.into_iter().map(|(_, file)| file))?;
        runs.push(in_memory);
        Ok(Box::new(Merge::new(runs)))
    }

    fn spill(&mut self) -> Result<()> {
        self.held.sort();
        let mut held = InMemory { held: std::mem::take(&mut self.held), next: 0 };
        let file = self.write(&mut held)?;
        // The memory that it has is used again.
        self.held = held.held;
        self.held.bytes.clear();
        self.held.places.clear();
        self.files.push((0, file));
        while let Some(class) = self.class_to_merge() {
            let files = self.files.split_off(self.files.len() - FAN_IN);
            let runs = self.open(files.into_iter().map(|(_, file)| file))?;
            let file = self.write(&mut Merge::new(runs))?;
            self.files.push((class + 1, file));
        }
        Ok(())
    }

    /// The class of the last files, if there are enough of it.
    fn class_to_merge(&self) -> Option<u32> {
        let (class, _) = *self.files.last()?;
        let first = self.files.len().checked_sub(FAN_IN)?;
        (self.files[first].0 == class).then_some(class)
    }

    fn write(&self, run: &mut dyn Run) -> Result<File> {
        let broken = |e| Error::io("write a temporary file in", &self.scratch)(e);
        let file = tempfile::tempfile_in(&self.scratch).map_err(broken)?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        while run.advance()? {
            put(&mut out, run).map_err(broken)?;
        }
        out.into_inner().map_err(|e| broken(e.into_error()))
    }

    fn open(&self, files: impl Iterator<Item = File>) -> Result<Vec<Box<dyn Run>>> {
        let open = |mut file: File| {
            file.rewind().map_err(Error::io("read a temporary file in", &self.scratch))?;
            let source = BufReader::with_capacity(BUFFER_BYTES, file);
            let (scratch, key, value) = (self.scratch.clone(), Vec::new(), Vec::new());
            Ok(Box::new(Spilled { source, scratch, key, value, tag: 0 }) as Box<dyn Run>)
        };
        files.map(open).collect()
    }
}

fn put(out: &mut impl Write, run: &dyn Run) -> io::Result<()> {
    let (key, value) = (run.key(), run.value());
    out.write_all(&(key.len() as u32).to_le_bytes())?;
    out.write_all(&(value.len() as u32).to_le_bytes())?;
    out.write_all(&run.tag().to_le_bytes())?;
    out.write_all(key)?;
    out.write_all(value)
}

/// What was sorted and fitted into memory.
struct InMemory {
    held: Held,
    /// The version behind the present one.
    next: usize,
}

impl InMemory {
    fn place(&self) -> &Place {
        &self.held.places[self.next - 1]
    }
}

impl Run for InMemory {
    fn advance(&mut self) -> Result<bool> {
        let more = self.next < self.held.places.len();
        self.next += usize::from(more);
        Ok(more)
    }

    fn key(&self) -> &[u8] {
        self.held.key(self.place())
    }

    fn tag(&self) -> Tag {
        self.place().tag
    }

    fn value(&self) -> &[u8] {
        self.held.value(self.place())
    }
}

/// What was written to a file.
struct Spilled {
    source: BufReader<File>,
    scratch: PathBuf,
    key: Vec<u8>,
    value: Vec<u8>,
    tag: Tag,
}

impl Spilled {
    fn read(&mut self) -> io::Result<bool> {
        let mut head = [0; 16];
        match self.source.read_exact(&mut head[..1]) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(e),
        }
        self.source.read_exact(&mut head[1..])?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        self.key.resize(word(0) as usize, 0);
        self.value.resize(word(4) as usize, 0);
        self.tag = u64::from(word(8)) | u64::from(word(12)) << 32;
        self.source.read_exact(&mut self.key)?;
        self.source.read_exact(&mut self.value)?;
        Ok(true)
    }
}

impl Run for Spilled {
    fn advance(&mut self) -> Result<bool> {
        self.read().map_err(Error::io("read a temporary file in", &self.scratch))
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn tag(&self) -> Tag {
        self.tag
    }

    fn value(&self) -> &[u8] {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys in a scattered order, several versions of each.
    fn scattered(count: u64) -> Vec<(Vec<u8>, Tag, Vec<u8>)> {
        let of = |n: u64| {
            let key = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % (count / 3 + 1);
            (key.to_be_bytes().to_vec(), (n << 8) | (n % 2), vec![n as u8; (n % 50) as usize])
        };
        (0..count).map(of).collect()
    }

    #[test]
    fn it_sorts_whatever_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        let versions = scattered(5000);
        let mut expected = versions.clone();
        expected.sort_by(|a, b| order((&a.0, a.1), (&b.0, b.1)));
        // All in memory; some files; thousands, in classes; one for each.
        for memory in [1 << 30, 50_000, 300, 0] {
            let mut sorter = Sorter::new(memory, dir.path());
            for (key, tag, value) in &versions {
                sorter.push(key, *tag, value).unwrap();
                assert!(sorter.files.len() < 4 * FAN_IN);
            }
            assert_eq!(sorter.files.is_empty(), memory == 1 << 30);
            let mut run = sorter.finish().unwrap();
            for (key, tag, value) in &expected {
                assert!(run.advance().unwrap());
                assert_eq!((run.key(), run.tag(), run.value()), (&key[..], *tag, &value[..]));
            }
            assert!(!run.advance().unwrap());
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "files without names");
    }

    #[test]
    fn nothing_to_sort() {
        let mut run = Sorter::new(100, Path::new("/nonexistent")).finish().unwrap();
        assert!(!run.advance().unwrap());
    }
}
