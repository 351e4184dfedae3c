//! Power cuts: a disk at one moment, and what may be found of it afterwards.

use super::SimEnv;
use super::disk::Disk;
use super::inode::Inode;
use super::names::{NameChange, Node, Tree, without_orphans};
use super::page::{self, PAGE, Page, SECTOR};
use crate::util::Rng;

/// What the user had been told when the power failed, in numbers of operations of a workload.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Promise {
    /// The first so many are durable.
    pub durable: usize,
    /// The first so many have returned.
    pub acknowledged: usize,
    /// The first so many have begun.
    pub begun: usize,
    /// Names of keyspaces are as after the first so many, or after later ones.
    pub named: usize,
    /// So many checkpoints were complete.
    pub checkpoints: usize,
}

/// What becomes of the writes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The process died, the machine did not: everything is there.
    Kill,
    /// None are there.
    Nothing,
    /// All but one page, and all changes of directories.
    AllButOnePage,
    /// One page, and all changes of directories.
    OnePage,
    /// All data, but only some changes of directories.
    Names,
    /// Any.
    Random,
}

/// A disk at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Frozen {
    /// The number of the call that was about to be made.
    pub call: u64,
    pub promise: Promise,
    durable: Tree,
    pending: Vec<NameChange>,
    files: Vec<FrozenFile>,
}

#[derive(Debug, Clone)]
struct FrozenFile {
    durable: Vec<Page>,
    durable_len: u64,
    len: u64,
    /// Dirty pages with what may be found there beside the old contents; the last is the newest.
    dirty: Vec<(usize, Vec<Page>)>,
}

impl Frozen {
    pub(super) fn of(disk: &Disk) -> Frozen {
        let file = |inode: &Inode| {
            let versions = |(n, now): (usize, Page)| {
                let early = inode.early.iter().filter(|(m, _)| *m == n).map(|(_, p)| p.clone());
                (n, early.chain([now]).collect())
            };
            FrozenFile {
                durable: inode.durable.clone(),
                durable_len: inode.durable_len,
                len: inode.len,
                dirty: inode.dirty().into_iter().map(versions).collect(),
            }
        };
        Frozen {
            call: disk.calls.len() as u64,
            promise: disk.promise,
            durable: disk.names.durable.clone(),
            pending: disk.names.pending.clone(),
            files: disk.inodes.iter().map(file).collect(),
        }
    }

    /// One of the disks that may be found, and how it came about.
    pub(crate) fn draw(&self, cut: Cut, rng: &mut Rng, stepped: bool) -> (SimEnv, String) {
        let mut story = format!("{cut:?}");
        let tree = self.draw_names(cut, rng, &mut story);
        let dirty: usize = self.files.iter().map(|f| f.dirty.len()).sum();
        let mut chosen = rng.below(dirty.max(1));
        // Of each sixteen dirty pages, about so many are written.
        let density = [1, 4, 8, 12, 15][rng.below(5)];
        let mut inodes = Vec::new();
        for (n, file) in self.files.iter().enumerate() {
            let mut used = false;
            if let Some((path, _)) = tree.iter().find(|(_, node)| **node == Node::File(n)) {
                used = true;
                if !file.dirty.is_empty() {
                    story.push_str(&format!("; {}:", path.display()));
                }
            }
            let mut pages = file.durable.clone();
            let len = file.draw_len(cut, rng);
            for (at, versions) in &file.dirty {
                let old = pages.get(*at).cloned().flatten();
                let one = chosen == 0;
                chosen = chosen.wrapping_sub(1);
                let (new, how) = draw_page(cut, one, density, &old, versions, rng);
                if used {
                    story.push_str(&format!(" {at}{how}"));
                }
                if pages.len() <= *at {
                    pages.resize(at + 1, None);
                }
                pages[*at] = new;
            }
            cut_to(&mut pages, len);
            if used && len != file.len {
                story.push_str(&format!(" length {len} of {}", file.len));
            }
            inodes.push(Inode::settled(pages, len));
        }
        let disk = Disk::new(rng.next(), inodes, without_orphans(tree));
        (SimEnv::over(disk, stepped), story)
    }

    fn draw_names(&self, cut: Cut, rng: &mut Rng, story: &mut String) -> Tree {
        let mut tree = self.durable.clone();
        let count = self.pending.len();
        let journal = rng.one_in(2);
        let upto = rng.below(count + 1);
        for (n, change) in self.pending.iter().enumerate() {
            let there = match cut {
                Cut::Kill | Cut::AllButOnePage | Cut::OnePage => true,
                Cut::Nothing => false,
                Cut::Names | Cut::Random if journal => n < upto,
                Cut::Names | Cut::Random => rng.one_in(2),
            };
            if there {
                change.apply(&mut tree);
            }
            story.push_str(&format!("; {}{change}", if there { "" } else { "not: " }));
        }
        tree
    }
}

impl FrozenFile {
    fn draw_len(&self, cut: Cut, rng: &mut Rng) -> u64 {
        let (low, high) = (self.durable_len.min(self.len), self.durable_len.max(self.len));
        match cut {
            Cut::Kill | Cut::AllButOnePage | Cut::OnePage | Cut::Names => self.len,
            Cut::Nothing => self.durable_len,
            Cut::Random => match rng.below(4) {
                0 => self.durable_len,
                1 => low + rng.next() % (high - low + 1),
                _ => self.len,
            },
        }
    }
}

/// What is found in a dirty page, and a word for it.
fn draw_page(
    cut: Cut,
    one: bool,
    density: usize,
    old: &Page,
    versions: &[Page],
    rng: &mut Rng,
) -> (Page, &'static str) {
    let new = versions.last().cloned().flatten();
    let some = match cut {
        Cut::Kill | Cut::Names => return (new, "+"),
        Cut::Nothing => return (old.clone(), "-"),
        Cut::AllButOnePage if !one => return (new, "+"),
        Cut::OnePage if !one => return (old.clone(), "-"),
        Cut::OnePage => true,
        Cut::AllButOnePage => false,
        Cut::Random => rng.below(16) < density,
    };
    if rng.one_in(4) {
        let mut mixed = [0; PAGE];
        let none = std::slice::from_ref(old);
        for at in (0..PAGE).step_by(SECTOR) {
            let from = if rng.one_in(2) { none } else { versions };
            let from = page::bytes(&from[rng.below(from.len())]);
            mixed[at..at + SECTOR].copy_from_slice(&from[at..at + SECTOR]);
        }
        return (page::page(&mixed, old), "~");
    }
    match some {
        true if versions.len() > 1 && rng.one_in(3) => {
            (versions[rng.below(versions.len())].clone(), "<")
        }
        true => (new, "+"),
        false => (old.clone(), "-"),
    }
}

/// Shortens or lengthens pages to a length in bytes; what is beyond it is zero.
fn cut_to(pages: &mut Vec<Page>, len: u64) {
    pages.resize(page::count(len), None);
    let within = len as usize % PAGE;
    if within > 0
        && let Some(last) = pages.last_mut()
    {
        let mut bytes = *page::bytes(last);
        bytes[within..].fill(0);
        *last = page::page(&bytes, last);
    }
}
