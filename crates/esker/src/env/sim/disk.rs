//! The state of a simulated disk, and the rules that every call on it obeys.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::crash::{Frozen, Promise};
use super::faults::{Call, CallKind, FaultPlan, Trap};
use super::inode::Inode;
use super::names::{NameChange, Namespace, Node, Tree};
use crate::env::LockMode;
use crate::util::Rng;

/// Which calls the disk is frozen before, so that images can be drawn of that moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum CrashPoints {
    #[default]
    Never,
    /// Every call that may change something.
    Always,
    /// One such call in so many.
    OneIn(usize),
}

#[derive(Debug)]
pub(super) struct Disk {
    pub inodes: Vec<Inode>,
    pub names: Namespace,
    /// Files that are locked, once for each who has the lock.
    pub locked: Vec<(usize, LockMode)>,
    pub clock: Duration,
    pub calls: Vec<Call>,
    pub plan: Option<FaultPlan>,
    pub trap: Option<Trap>,
    /// The machine is off: every call fails.
    pub dead: bool,
    pub crash_points: CrashPoints,
    pub promise: Promise,
    pub frozen: Vec<Frozen>,
    /// Bytes that all files may have, where it is not endless. Who asks is told; nothing is refused.
    pub capacity: Option<u64>,
    /// Bytes that all files may have by a quota: nobody is told, and what goes beyond is refused.
    pub quota: Option<u64>,
    /// Rules of the medium that were broken.
    pub violations: Vec<String>,
    rng: Rng,
}

impl Disk {
    /// Bytes of all files that have a name.
    pub(super) fn used(&self) -> u64 {
        let length = |node: &Node| match node {
            Node::File(n) => self.inodes[*n].len,
            Node::Dir => 0,
        };
        self.names.now.values().map(length).sum()
    }

    pub(super) fn new(seed: u64, inodes: Vec<Inode>, tree: Tree) -> Disk {
        let mut inodes = inodes;
        for node in tree.values() {
            if let Node::File(n) = node {
                inodes[*n].links += 1;
            }
        }
        Disk {
            inodes,
            names: Namespace::settled(tree),
            locked: Vec::new(),
            clock: Duration::ZERO,
            calls: Vec::new(),
            plan: None,
            trap: None,
            dead: false,
            capacity: None,
            quota: None,
            crash_points: CrashPoints::Never,
            promise: Promise::default(),
            frozen: Vec::new(),
            violations: Vec::new(),
            rng: Rng::new(seed),
        }
    }

    /// Every call passes here first: it gets its number, the power may fail before it, and it may
    /// be made to fail.
    pub(super) fn call(
        &mut self,
        kind: CallKind,
        path: &Path,
        range: (u64, u64),
    ) -> io::Result<()> {
        if self.dead {
            return Err(io::Error::other("the simulated machine is off"));
        }
        let number = self.calls.len() as u64;
        let changes = kind.changes();
        let crash = match self.crash_points {
            CrashPoints::Never => false,
            CrashPoints::Always => changes,
            CrashPoints::OneIn(n) => changes && self.rng.one_in(n),
        };
        if crash {
            let frozen = self.freeze();
            self.frozen.push(frozen);
        }
        if changes && !self.inodes.is_empty() && self.rng.one_in(8) {
            let n = self.rng.below(self.inodes.len());
            let random = self.rng.next();
            self.inodes[n].write_back(random);
        }
        if let Some(trap) = self.trap.take_if(|t| t.kind == kind && t.path == path) {
            self.plan = Some(FaultPlan { at: number, fault: trap.fault, from_then_on: false });
        }
        let failed = self.plan.filter(|p| p.strikes(number));
        let call = Call { kind, path: path.to_path_buf(), range, failed: failed.is_some() };
        self.calls.push(call);
        failed.map_or(Ok(()), |p| Err(p.fault.error()))
    }

    /// A file is to reach so far: the quota may refuse that.
    pub(super) fn grow(&mut self, inode: usize, end: u64) -> io::Result<()> {
        let more = end.saturating_sub(self.inodes[inode].len);
        if more == 0 || self.quota.is_none_or(|all| self.used() + more <= all) {
            return Ok(());
        }
        if let Some(call) = self.calls.last_mut() {
            call.failed = true;
        }
        Err(rustix::io::Errno::DQUOT.into())
    }

    pub(super) fn freeze(&self) -> Frozen {
        Frozen::of(self)
    }

    /// After a sync of it failed, a file must not be written or synced any more.
    pub(super) fn touch(&mut self, inode: usize) {
        if self.inodes[inode].failed.is_some()
            && let Some(call) = self.calls.last()
        {
            let n = self.calls.len() - 1;
            self.violations.push(format!("call {n}: {call}, after a sync of it failed"));
        }
    }

    /// The file under this name.
    pub(super) fn file(&self, path: &Path) -> io::Result<usize> {
        match self.names.now.get(path) {
            Some(Node::File(n)) => Ok(*n),
            Some(Node::Dir) => Err(io::Error::new(io::ErrorKind::InvalidInput, "a directory")),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// A new file.
    pub(super) fn add_file(&mut self, path: &Path) -> io::Result<usize> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        if self.names.now.get(parent) != Some(&Node::Dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let n = self.inodes.len();
        let mut inode = Inode::settled(Vec::new(), 0);
        inode.links = 1;
        self.inodes.push(inode);
        self.names.change(NameChange::Add(path.to_path_buf(), Node::File(n)));
        Ok(n)
    }
}
