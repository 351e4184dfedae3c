//! A segment: one preallocated, mapped file of the log.
//!
//! Invariants that the unsafe code here, in `place` and in the writer rests on:
//!
//! - the mapping covers `[0, len)` of the file and lives as long as the segment;
//! - at most one [`LogWriter`](super::LogWriter) writes to it, and only at and after `end`;
//! - a record reference leaves the writer only after its frame is complete, and whoever passes
//!   it to another thread does so with release/acquire (the memtable's index does). So all bytes
//!   that a reference can name are written before they are read, and never again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::format::{
    self, ALIGN, FIRST_FRAME, FLAG_SEAL, FRAME_HEADER, Header, SEAL, frame_checksum, value_checksum,
};
use super::frames::{End, Frames, TrailingRecords};
use super::verified::Verified;
use crate::env::{Env, File, Map, OpenMode, write_again};
use crate::error::{Error, Result};
use crate::filename;
use crate::key::{Seq, ValuePointer};

/// The largest segment in bytes: every record's reference fits 31 bits, as a memtable marks its own with
/// the highest of 32.
pub(crate) const LARGEST: u64 = ALIGN as u64 * (1 << 31);

/// One file of the log. Shared by `Arc`: by the log writer, the memtable over it, and every pointer
/// to a value that stayed in it.
pub(crate) struct Segment {
    /// First byte of the mapping, and its length: here as well as in `map`, so that the way to a
    /// record is short.
    pub(super) base: *const u8,
    pub(super) len: usize,
    map: Map,
    number: u64,
    path: PathBuf,
    env: Arc<dyn Env>,
    /// Open until [`release`](Segment::release), from then on its [identity](File::identity); the mapping stays without it.
    file: Mutex<Result<Arc<dyn File>, (u64, u64)>>,
    /// Bytes that the file system has set aside, once known: from its release on they change by
    /// punching only.
    allocated: Mutex<Option<u64>>,
    writable: bool,
    /// Whether the file had a life before, so that its pages are written and likely cached.
    recycled: bool,
    /// Where the next frame goes: all bytes before it are complete.
    end: AtomicU64,
    /// Whether a log writer is at work, or was: a segment is written in one go.
    taken: AtomicBool,
    verified: Verified,
    /// Bytes that recovery found, and whether this process has written them since. See `write_again`.
    found: AtomicU64,
    written_again: AtomicBool,
    /// Successful syncs.
    syncs: AtomicU64,
    /// The sync that failed. After it the kernel may have dropped dirty pages and forgotten the
    /// error, so that a second sync would prove nothing: there is none.
    failed: OnceLock<Error>,
}

// SAFETY: `base` points into `map`, which may be used from any thread; see the module's invariants
// for why reads and the one writer do not race.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes segment `number` of `bytes` bytes (rounded up to pages) in `dir`.
    ///
    /// All space is set aside first: a full disk is an error here and not a signal later. With
    /// `recycle`, that file is renamed into place and used again if nothing else has a name for
    /// it. Nobody may still be reading from it: its bytes change under them.
    ///
    /// After an error there is no file `number`; `recycle` may be gone or not.
    pub(crate) fn create(
        env: &Arc<dyn Env>,
        dir: &Path,
        number: u64,
        bytes: u64,
        recycle: Option<&Path>,
    ) -> Result<Segment> {
        let path = dir.join(filename::segment(number));
        let bytes = bytes.max(format::segment_bytes_for(0)).next_multiple_of(4096);
        if bytes > LARGEST {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "a segment has 16 GiB at most");
            return Err(Error::io("create", &path, why));
        }
        if env.exists(&path).map_err(|e| Error::io("look for", &path, e))? {
            // Also what keeps a rename from replacing a segment.
            return Err(Error::io("create", &path, io::ErrorKind::AlreadyExists.into()));
        }
        let reused = match recycle {
            Some(old) => reuse(env, old, &path, bytes)?,
            None => None,
        };
        let recycled = reused.is_some();
        let file = match reused {
            Some(file) => file,
            None => {
                env.open(&path, OpenMode::CreateNew).map_err(|e| Error::io("create", &path, e))?
            }
        };
        Self::set_up(env, file, &path, number, bytes, recycled).inspect_err(|_| {
            // Best effort: a leftover without a sound header is known as such at recovery.
            let _ = env.remove(&path);
        })
    }

    fn set_up(
        env: &Arc<dyn Env>,
        file: Arc<dyn File>,
        path: &Path,
        number: u64,
        bytes: u64,
        recycled: bool,
    ) -> Result<Segment> {
        let allocated = if recycled { Ok(()) } else { file.allocate(bytes) };
        allocated.map_err(|e| Error::io(format!("allocate {bytes} bytes for"), path, e))?;
        let mut header = vec![0; FIRST_FRAME];
        let used = format::encode_header(number, bytes);
        header[..used.len()].copy_from_slice(&used);
        file.write_all_at(&header, 0).map_err(|e| Error::io("write the header of", path, e))?;
        let map = file.map(bytes, true).map_err(|e| Error::io("map", path, e))?;
        Ok(Self::new(env, file, map, path, number, true, recycled))
    }

    fn new(
        env: &Arc<dyn Env>,
        file: Arc<dyn File>,
        map: Map,
        path: &Path,
        number: u64,
        writable: bool,
        recycled: bool,
    ) -> Segment {
        Segment {
            base: map.as_ptr(),
            len: map.len(),
            map,
            number,
            path: path.to_path_buf(),
            env: Arc::clone(env),
            file: Mutex::new(Ok(file)),
            allocated: Mutex::default(),
            writable,
            recycled,
            end: AtomicU64::new(FIRST_FRAME as u64),
            taken: AtomicBool::new(false),
            verified: Verified::default(),
            found: AtomicU64::new(0),
            written_again: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
            failed: OnceLock::new(),
        }
    }

    /// Opens an existing segment, for recovery and for the values in it. Its frames are not looked
    /// at; [`frames`](Segment::frames) does that. It is never appended to: what lies behind a torn
    /// frame could otherwise come back to life behind a new one.
    pub(crate) fn open(
        env: &Arc<dyn Env>,
        dir: &Path,
        number: u64,
        writable: bool,
    ) -> Result<Segment> {
        let (path, file, len) = open_file(env, dir, number, writable)?;
        if len < FIRST_FRAME as u64 {
            return Err(Error::corrupt(&path, len, "the file ends in its header"));
        }
        let mut page = vec![0; FIRST_FRAME];
        file.read_exact_at(&mut page, 0).map_err(|e| Error::io("read", &path, e))?;
        let capacity = match format::decode_header(&page) {
            Header::Sound { number: n, capacity, .. } if n == number => capacity,
            Header::Sound { number: n, .. } => {
                let what = format!("its header is that of segment {n}");
                return Err(Error::corrupt(&path, 16, what));
            }
            Header::Newer { format: found } => {
                let supported = format::FORMAT;
                return Err(Error::UnsupportedFormat { path, found, supported });
            }
            Header::Bad { offset, what } => return Err(Error::corrupt(&path, offset, what)),
        };
        if len < capacity {
            let what = format!("the file ends here and should have {capacity} bytes");
            return Err(Error::corrupt(&path, len, what));
        }
        if !(format::segment_bytes_for(0)..=LARGEST).contains(&capacity) {
            return Err(Error::corrupt(&path, 24, "the capacity is none a segment can have"));
        }
        let map = file.map(capacity, writable).map_err(|e| Error::io("map", &path, e))?;
        let segment = Self::new(env, file, map, &path, number, writable, false);
        segment.taken.store(true, Ordering::Relaxed);
        Ok(segment)
    }

    /// What is in the file `number` if that is one which [`open`](Segment::open) refuses, whatever its header says: frames
    /// and values have checksums of their own, and its name has the number that they are seeded with. `None` where there
    /// is no room for a frame.
    pub(crate) fn remains(env: &Arc<dyn Env>, dir: &Path, number: u64) -> Result<Option<Segment>> {
        let (path, file, len) = open_file(env, dir, number, false)?;
        if len < (FIRST_FRAME + FRAME_HEADER) as u64 {
            return Ok(None);
        }
        let map = file.map(len.min(LARGEST), false).map_err(|e| Error::io("map", &path, e))?;
        Ok(Some(Self::new(env, file, map, &path, number, false, false)))
    }

    /// What is in the file `number`, which [`open`](Segment::open) refuses, if a power cut may have
    /// left it so: its beginning or its length were never synced, or nothing in it was ever used.
    /// A header fits into a sector, which is found as it was or as it is; one that is neither nothing
    /// nor that of the file's former life was damaged later, and then this is `None`.
    pub(super) fn never_synced(
        env: &Arc<dyn Env>,
        dir: &Path,
        number: u64,
    ) -> Result<Option<TrailingRecords>> {
        let Some(segment) = Self::remains(env, dir, number)? else {
            return Ok(Some(TrailingRecords::default()));
        };
        let page = segment.bytes(0, FIRST_FRAME).unwrap_or_default();
        let lost = page.iter().all(|b| *b == 0)
            || match format::decode_header(page) {
                Header::Sound { number: n, capacity, .. } => {
                    n != number || segment.capacity() < capacity
                }
                _ => false,
            };
        let frames = segment.frames();
        if !lost && frames.starts() {
            return Ok(None);
        }
        Ok(Some(frames.clone().survey().and(frames.behind_their_end(false))))
    }

    /// Its number. Numbers are never used twice in a store: they seed the checksums.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Its size in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.len as u64
    }

    /// Its file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the next frame goes, in bytes from the file's start.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// The record that `r` may name, with everything about it checked but its frame's checksum.
    #[cfg(test)]
    pub(crate) fn try_record(&self, r: u32) -> Option<super::Record<'_>> {
        let at = r as usize * ALIGN;
        let header = self.bytes(at, format::RECORD_HEADER)?;
        let back = format::RecordFields::from_bytes(header)?.back as usize;
        let frame_at = at.checked_sub(back)?;
        if frame_at < FIRST_FRAME || back < FRAME_HEADER {
            return None;
        }
        let frame = self.bytes(frame_at, self.len - frame_at)?;
        let seq = u64::from_le_bytes(*frame[8..].first_chunk()?);
        super::record::decode(frame, seq, back).map(|(record, _)| record)
    }

    /// A separated value. Its checksum is verified when it is touched for the first time (below
    /// 4 KiB each time); the bytes are the mapping's own.
    pub(crate) fn value(&self, p: &ValuePointer) -> Result<&[u8]> {
        let len = p.len as usize;
        let inside = p.segment == self.number && p.offset >= FIRST_FRAME as u64;
        let bytes = usize::try_from(p.offset).ok().and_then(|at| self.bytes(at, len));
        let Some(bytes) = bytes.filter(|_| inside) else {
            let what = format!(
                "a table points to a value of {len} bytes here, in segment {}, which does not have it",
                p.segment
            );
            return Err(Error::corrupt(&self.path, p.offset, what));
        };
        if !self.verified.contains(p.offset, len) {
            if value_checksum(bytes) != p.checksum {
                let what = format!("a value of {len} bytes has a wrong checksum");
                return Err(Error::corrupt(&self.path, p.offset, what));
            }
            self.verified.insert(p.offset, len, self.len as u64);
        }
        Ok(bytes)
    }

    /// What the segment holds, from its first frame on. Only while nobody appends.
    pub(crate) fn frames(&self) -> Frames<'_> {
        // SAFETY: recovery reads before anyone writes; see above.
        let bytes = unsafe { self.map.slice(0, self.len) };
        Frames::new(self.number, bytes.unwrap_or_default(), FIRST_FRAME)
    }

    /// Whether all that was appended, or that recovery found, is still there as it was. Only when nobody appends any more.
    pub(crate) fn check_frames(&self) -> Result<()> {
        let found = self.found.load(Ordering::Relaxed).saturating_sub(SEAL as u64);
        match self.frames().finish() {
            End::Torn { offset, why } if offset < self.end().max(found) => {
                let what = format!("{why}, and it was another when it was written");
                Err(Error::corrupt(&self.path, offset, what))
            }
            _ => Ok(()),
        }
    }

    /// Closes a recovered segment behind its last good frame, so that it reads as complete from
    /// now on and what lies behind stays dead. `end` is where its frames stopped, or its seal that led
    /// to a segment which is not there; `next` the one that the log goes on in, which is durable.
    /// Durable on return.
    pub(crate) fn seal_recovered(&self, end: u64, last_seq: Seq, next: u64) -> Result<()> {
        self.check_room_for_seal(end)?;
        let seal = seal_frame(self.number, last_seq, next);
        self.file()?.write_all_at(&seal, end).map_err(|e| Error::io("seal", &self.path, e))?;
        self.end.store(end + SEAL as u64, Ordering::Release);
        self.sync()
    }

    /// Whether a seal fits behind its frames, which end there: whoever appends leaves room for it.
    pub(crate) fn check_room_for_seal(&self, end: u64) -> Result<()> {
        if end < FIRST_FRAME as u64 || end.saturating_add(SEAL as u64) > self.len as u64 {
            return Err(Error::corrupt(&self.path, end, "there is no room for the segment's end"));
        }
        Ok(())
    }

    /// Closes the file of a segment that is not written any more: there may be more of those than a
    /// process may have files open. What needs the file from now on opens it again, a sync as well:
    /// the kernel keeps what it could not write, and that it could not, with the file and not with the
    /// descriptor, as long as it is mapped. One that cannot be told from others stays open.
    pub(crate) fn release(&self) {
        let mut file = self.file.lock();
        if let Some(identity) = file.as_ref().ok().and_then(|file| file.identity().ok()) {
            *file = Err(identity);
        }
    }

    /// Whether it holds a descriptor.
    pub(crate) fn is_open(&self) -> bool {
        self.file.lock().is_ok()
    }

    pub(super) fn file(&self) -> Result<Arc<dyn File>> {
        let released = match &*self.file.lock() {
            Ok(file) => return Ok(Arc::clone(file)),
            Err(identity) => *identity,
        };
        let mode = if self.writable { OpenMode::ReadWrite } else { OpenMode::Read };
        let file = self.env.open(&self.path, mode).map_err(|e| Error::opening(&self.path, e))?;
        // Where the directory was moved, that in its place may have one of the same name.
        match file.identity().map_err(|e| Error::io("examine", &self.path, e))? == released {
            true => Ok(file),
            false => {
                let dir = self.path.parent().unwrap_or(&self.path);
                Err(Error::DirectoryMoved { path: dir.to_path_buf() })
            }
        }
    }

    /// Bytes that the file system has set aside for it; less than its size once parts are punched.
    pub(crate) fn allocated(&self) -> Result<u64> {
        let mut known = self.allocated.lock();
        if let Some(bytes) = *known {
            return Ok(bytes);
        }
        let bytes = self.file()?.allocated().map_err(|e| Error::io("measure", &self.path, e))?;
        *known = (!self.is_open()).then_some(bytes);
        Ok(bytes)
    }

    /// How many names its file has. More than one: a checkpoint shares it.
    pub(crate) fn links(&self) -> Result<u64> {
        self.file()?.links().map_err(|e| Error::io("measure", &self.path, e))
    }

    /// Gives the space of ranges (offset, length) back that nobody reads any more. Left alone where a
    /// checkpoint shares the file, or the file system cannot.
    pub(crate) fn punch(&self, ranges: impl Iterator<Item = (u64, u64)>) -> Result<()> {
        let file = self.file()?;
        for (offset, len) in ranges {
            if file.links().map_err(|e| Error::io("measure", &self.path, e))? != 1 {
                break;
            }
            file.punch(offset, len).map_err(|e| Error::io("punch", &self.path, e))?;
            *self.allocated.lock() = None;
        }
        Ok(())
    }

    /// Gives back what is behind the end of one that was sealed.
    pub(crate) fn punch_unused(&self) -> Result<()> {
        let used = self.end().next_multiple_of(4096);
        self.punch([(used, self.capacity().saturating_sub(used))].into_iter())
    }

    /// Makes everything appended before the call durable. Once it failed it fails forever, without
    /// asking again.
    pub(crate) fn sync(&self) -> Result<()> {
        if let Some(e) = self.failed.get() {
            return Err(e.clone());
        }
        let file = match self.file() {
            Err(e) if e.was_not_tried() => return Err(e),
            file => file,
        };
        let synced = file.and_then(|file| {
            self.write_again(&*file)?;
            file.sync().map_err(|e| Error::io("sync", &self.path, e))
        });
        synced.map_err(|e| self.failed.get_or_init(|| e).clone())?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Recovery has found entries up to `end` here.
    pub(crate) fn note_found(&self, end: &End) {
        let upto = (end.offset() + SEAL as u64).min(self.len as u64);
        self.found.store(upto, Ordering::Relaxed);
    }

    /// Bytes up to the end of what was appended or, in another process, found.
    pub(crate) fn used(&self) -> u64 {
        self.end().max(self.found.load(Ordering::Relaxed))
    }

    /// What recovery found may be in the page cache only, and count as clean there: that is how a
    /// sync that failed in an earlier process leaves it. A sync makes it durable only when it is
    /// written once more.
    fn write_again(&self, file: &dyn File) -> Result<()> {
        if self.written_again.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let again = write_again(file, self.found.load(Ordering::Relaxed));
        again.map_err(|e| Error::io("write again to", &self.path, e))
    }

    /// Whether a sync of it failed.
    pub(crate) fn sync_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// How often it was synced.
    #[inline]
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Whether its file had been a segment before.
    pub(super) fn recycled(&self) -> bool {
        self.recycled
    }

    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    /// For the log writer: makes it the only one, for good. `false` when there was one, or when the
    /// segment was opened and not created.
    pub(super) fn take(&self) -> bool {
        self.writable && !self.taken.swap(true, Ordering::AcqRel)
    }

    /// For the log writer: everything before `end` is complete.
    #[inline]
    pub(super) fn publish_end(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    fn bytes(&self, at: usize, len: usize) -> Option<&[u8]> {
        // SAFETY: callers name published records, or a segment that is not being written.
        unsafe { self.map.slice(at, len) }
    }
}

/// The file of segment `number`: its path, and its length in bytes.
fn open_file(
    env: &Arc<dyn Env>,
    dir: &Path,
    number: u64,
    writable: bool,
) -> Result<(PathBuf, Arc<dyn File>, u64)> {
    let path = dir.join(filename::segment(number));
    let mode = if writable { OpenMode::ReadWrite } else { OpenMode::Read };
    let file = env.open(&path, mode).map_err(|e| Error::opening(&path, e))?;
    let len = file.len().map_err(|e| Error::io("measure", &path, e))?;
    Ok((path, file, len))
}

/// A complete seal.
fn seal_frame(number: u64, last_seq: Seq, next: u64) -> [u8; SEAL] {
    let mut b = [0; SEAL];
    let len_flags = (SEAL - FRAME_HEADER) as u32 | FLAG_SEAL;
    b[4..8].copy_from_slice(&len_flags.to_le_bytes());
    b[8..16].copy_from_slice(&last_seq.to_le_bytes());
    b[16..24].copy_from_slice(&next.to_le_bytes());
    let sum = frame_checksum(number, &b[4..]);
    b[..4].copy_from_slice(&sum.to_le_bytes());
    b
}

/// Gives an old segment file its new name and size. `None` when it cannot be had: it is gone, or
/// has another name somewhere (a checkpoint's), so that writing to it would change that too.
fn reuse(env: &Arc<dyn Env>, old: &Path, path: &Path, bytes: u64) -> Result<Option<Arc<dyn File>>> {
    let Ok(file) = env.open(old, OpenMode::ReadWrite) else { return Ok(None) };
    if file.links().map_err(|e| Error::io("examine", old, e))? != 1 {
        return Ok(None);
    }
    let len = file.len().map_err(|e| Error::io("measure", old, e))?;
    if len > bytes {
        file.set_len(bytes).map_err(|e| Error::io("shorten", old, e))?;
    }
    // Also where it is long enough: parts of it may have been punched out.
    file.allocate(bytes).map_err(|e| Error::io(format!("allocate {bytes} bytes for"), old, e))?;
    env.rename(old, path).map_err(|e| Error::io("rename", old, e))?;
    Ok(Some(file))
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segment({}, {} of {} bytes)", self.number, self.end(), self.len)
    }
}
