//! A file: what is on the device, what is in memory, and what may have got from one to the other.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use super::page::{self, PAGE, Page};
use crate::env::HeapPages;

/// A file without its names.
#[derive(Debug, Default)]
pub(super) struct Inode {
    /// What the device holds for certain: as of the last sync.
    pub durable: Vec<Page>,
    pub durable_len: u64,
    /// The contents now; `None` as long as they are the durable ones. All maps share this memory.
    /// Bytes from `len` on are zero.
    live: Option<Arc<HeapPages>>,
    pub len: u64,
    /// Pages as they were at some moment since the last sync: the kernel may have written them.
    pub early: Vec<(usize, Page)>,
    /// Pages that a failed sync left clean: they count as written and are not, until they change.
    lost: BTreeMap<usize, Page>,
    /// Set when a sync failed: the contents then.
    pub failed: Option<Vec<Page>>,
    /// Pages punched out and not written since.
    holes: BTreeSet<usize>,
    pub links: u64,
}

impl Inode {
    /// A file that is on the device as it stands.
    pub(super) fn settled(durable: Vec<Page>, len: u64) -> Inode {
        Inode { durable, durable_len: len, len, ..Inode::default() }
    }

    /// Page `n` as it is now.
    fn now(&self, n: usize) -> Page {
        let old = self.durable.get(n).cloned().flatten();
        match &self.live {
            Some(live) if n * PAGE < live.len() => page::page(&page::copy(live, n), &old),
            Some(_) => None,
            None => old,
        }
    }

    /// All pages now.
    pub(super) fn pages_now(&self) -> Vec<Page> {
        (0..page::count(self.len)).map(|n| self.now(n)).collect()
    }

    /// Pages whose contents now are not on the device for certain.
    pub(super) fn dirty(&self) -> Vec<(usize, Page)> {
        if self.live.is_none() {
            return Vec::new();
        }
        let pages = page::count(self.len.max(self.durable_len));
        let differs = |n: &usize| {
            let old = self.durable.get(*n).cloned().flatten();
            self.now(*n) != old
        };
        (0..pages).filter(differs).map(|n| (n, self.now(n))).collect()
    }

    /// Memory with the contents, for at least `len` bytes.
    pub(super) fn memory(&mut self, len: u64) -> io::Result<Arc<HeapPages>> {
        let want = page::count(len.max(self.len)).max(1) * PAGE;
        if let Some(live) = &self.live
            && live.len() >= want
        {
            return Ok(Arc::clone(live));
        }
        let fresh = match &self.live {
            None => {
                let fresh = HeapPages::new(want);
                for (n, page) in self.durable.iter().enumerate().take(page::count(self.len)) {
                    if let Some(page) = page {
                        fresh.write(n * PAGE, &page[..]);
                    }
                }
                fresh
            }
            Some(live) if Arc::strong_count(live) > 1 => {
                let why = "the simulated file system cannot lengthen a file that is mapped";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
            Some(live) => {
                let fresh = HeapPages::new(want.max(live.len() * 2));
                for n in 0..live.len() / PAGE {
                    fresh.write(n * PAGE, &page::copy(live, n));
                }
                fresh
            }
        };
        self.live = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if offset + buf.len() as u64 > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut at = offset as usize;
        if let Some(live) = &self.live {
            live.read(at, buf);
            return Ok(());
        }
        let mut rest = buf;
        while !rest.is_empty() {
            let from = at % PAGE;
            let n = rest.len().min(PAGE - from);
            let old = self.durable.get(at / PAGE).cloned().flatten();
            rest[..n].copy_from_slice(&page::bytes(&old)[from..from + n]);
            rest = &mut rest[n..];
            at += n;
        }
        Ok(())
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        self.memory(end)?.write(offset as usize, bytes);
        self.len = self.len.max(end);
        let (first, last) = (offset as usize / PAGE, page::count(end));
        // Dirty again, though they may be as they were.
        self.lost.retain(|n, _| !(first..last).contains(n));
        self.holes.retain(|n| !(first..last).contains(n));
        Ok(())
    }

    pub(super) fn allocate(&mut self, len: u64) -> io::Result<()> {
        self.memory(len)?;
        self.len = self.len.max(len);
        self.holes.retain(|n| *n >= page::count(len));
        Ok(())
    }

    pub(super) fn set_len(&mut self, len: u64) -> io::Result<()> {
        let live = self.memory(len)?;
        if len < self.len {
            live.write(len as usize, &vec![0; (self.len - len) as usize]);
        }
        self.holes.retain(|n| *n < page::count(len));
        self.len = len;
        Ok(())
    }

    pub(super) fn punch(&mut self, offset: u64, len: u64) -> io::Result<()> {
        let end = (offset + len).min(self.len);
        if offset < end {
            self.memory(end)?.write(offset as usize, &vec![0; (end - offset) as usize]);
            self.holes.extend(page::count(offset)..end as usize / PAGE);
        }
        Ok(())
    }

    pub(super) fn allocated(&self) -> u64 {
        (page::count(self.len) - self.holes.len()) as u64 * PAGE as u64
    }

    /// What is dirty reaches the device.
    pub(super) fn sync(&mut self) {
        for (n, now) in self.dirty() {
            if self.lost.get(&n) == Some(&now) {
                continue;
            }
            self.lost.remove(&n);
            if self.durable.len() <= n {
                self.durable.resize(n + 1, None);
            }
            self.durable[n] = now;
        }
        self.durable.resize(page::count(self.len), None);
        self.durable_len = self.len;
        let lost = &self.lost;
        self.early.retain(|(n, _)| lost.contains_key(n));
    }

    /// A sync fails: what was dirty may have been written or not, and counts as clean.
    pub(super) fn fail_sync(&mut self) {
        self.lost.extend(self.dirty());
        self.failed = Some(self.pages_now());
    }

    /// The kernel writes back a page on its own account: one version more that may be found.
    pub(super) fn write_back(&mut self, random: u64) {
        let dirty = self.dirty();
        if !dirty.is_empty() && self.early.len() < 64 {
            self.early.push(dirty[random as usize % dirty.len()].clone());
        }
    }
}
