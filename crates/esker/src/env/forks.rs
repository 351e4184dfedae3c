//! What is done in the child of a fork, before anything else runs there: the fork is counted, and the locks of directories are let
//! go of, for they are the parent's alone. A child that went on to hold them would keep others out when its parent is gone.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

use crate::util::forks::note_fork;

/// One of the descriptors that children do not keep. A list of them, as a child can take no lock; what is in it stays, and is used
/// again.
pub(super) struct ParentsOnly {
    /// Or -1.
    descriptor: AtomicI32,
    next: *const ParentsOnly,
}

// SAFETY: `next` is set before others see it, and leads to what is never freed.
unsafe impl Sync for ParentsOnly {}

static FIRST: AtomicPtr<ParentsOnly> = AtomicPtr::new(ptr::null_mut());

fn all() -> impl Iterator<Item = &'static ParentsOnly> {
    let first: *const ParentsOnly = FIRST.load(Ordering::Acquire);
    // SAFETY: what is in the list is never freed, and complete before it comes there.
    let known = |at: *const ParentsOnly| unsafe { at.as_ref() };
    std::iter::successors(known(first), move |entry| known(entry.next))
}

impl ParentsOnly {
    /// Until [`ParentsOnly::forget`], which comes before the descriptor is closed.
    pub(super) fn note(descriptor: i32) -> &'static ParentsOnly {
        let take = |entry: &&ParentsOnly| {
            entry
                .descriptor
                .compare_exchange(-1, descriptor, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        if let Some(free) = all().find(take) {
            return free;
        }
        let descriptor = AtomicI32::new(descriptor);
        let added = Box::leak(Box::new(ParentsOnly { descriptor, next: ptr::null() }));
        loop {
            let first = FIRST.load(Ordering::Acquire);
            added.next = first;
            let swapped = FIRST.compare_exchange(first, added, Ordering::AcqRel, Ordering::Relaxed);
            if swapped.is_ok() {
                return added;
            }
        }
    }

    pub(super) fn forget(&self) {
        self.descriptor.store(-1, Ordering::Release);
    }
}

/// In a child. Nothing but loads, stores and calls that are allowed there.
extern "C" fn in_child() {
    note_fork();
    let mut nothing = -1;
    for entry in all() {
        let descriptor = entry.descriptor.swap(-1, Ordering::AcqRel);
        if descriptor < 0 {
            continue;
        }
        // Another file in the place of the lock's: whoever has the number may still close it.
        // SAFETY: the path ends in a NUL, the numbers are of descriptors that are open, and no memory is touched.
        unsafe {
            if nothing < 0 {
                nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            }
            if nothing >= 0 && libc::dup2(nothing, descriptor) >= 0 {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
    if nothing >= 0 {
        // SAFETY: it is the one that was opened above.
        unsafe { libc::close(nothing) };
    }
}

/// Has the C library run that in each child from now on.
pub(super) fn watch() {
    // No `Once`: a child that was forked in the middle of it would wait for it for ever.
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if cfg!(miri) || WATCHED.load(Ordering::Relaxed) {
        return;
    }
    // Two at once register it twice: a child counts two forks then, which is as good.
    // SAFETY: the function may run wherever a process forks, and is there for as long as the library is; glibc forgets it with
    // that, and where others do not, a library that made threads is not unloaded.
    if unsafe { libc::pthread_atfork(None, None, Some(in_child)) } == 0 {
        WATCHED.store(true, Ordering::Relaxed);
    } // else no memory: the next open tries again.
}
