//! Calls that are made to fail, and what is known of every call.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The device fails.
    Eio,
    /// The disk is full.
    Enospc,
    /// There are no descriptors left.
    Emfile,
    /// A signal came.
    Eintr,
    /// The disk is full; a write got half of its bytes in before.
    ShortWrite,
}

impl Fault {
    pub(crate) const ALL: [Fault; 5] =
        [Fault::Eio, Fault::Enospc, Fault::Emfile, Fault::Eintr, Fault::ShortWrite];

    pub(super) fn error(self) -> io::Error {
        use rustix::io::Errno;
        let errno = match self {
            Fault::Eio => Errno::IO,
            Fault::Enospc | Fault::ShortWrite => Errno::NOSPC,
            Fault::Emfile => Errno::MFILE,
            Fault::Eintr => Errno::INTR,
        };
        errno.into()
    }
}

/// Which calls fail, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultPlan {
    /// The number of the call.
    pub at: u64,
    pub fault: Fault,
    /// Whether all calls after it fail too.
    pub from_then_on: bool,
}

/// The first call of a kind to a file, which is to fail.
#[derive(Debug)]
pub(super) struct Trap {
    pub kind: CallKind,
    pub path: PathBuf,
    pub fault: Fault,
}

impl FaultPlan {
    pub(super) fn strikes(&self, call: u64) -> bool {
        call == self.at || self.from_then_on && call > self.at
    }
}

/// What the engine asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
    CreateDir,
    List,
    Open,
    Create,
    Exists,
    Rename,
    Remove,
    RemoveDir,
    Link,
    SyncDir,
    Lock,
    Len,
    Allocated,
    Links,
    Read,
    Write,
    Allocate,
    SetLen,
    Punch,
    Sync,
    Map,
}

impl CallKind {
    /// Whether such a call may change what is on the disk.
    pub(crate) fn changes(self) -> bool {
        use CallKind::*;
        !matches!(self, List | Open | Exists | Len | Allocated | Links | Read | Map | Lock)
    }
}

/// One call, for reports.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub kind: CallKind,
    /// The file; where it is renamed, its old name.
    pub path: PathBuf,
    /// Offset and length, or zero.
    pub range: (u64, u64),
    pub failed: bool,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.path.display())?;
        if self.range != (0, 0) {
            write!(f, " {}+{}", self.range.0, self.range.1)?;
        }
        if self.failed { write!(f, " FAILED") } else { Ok(()) }
    }
}
