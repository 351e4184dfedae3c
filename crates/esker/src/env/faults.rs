//! What reading mapped files costs a thread.

/// Page faults of the calling thread, since it began, that waited for a device. 0 where the system
/// does not tell.
pub(crate) fn major_faults() -> u64 {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use nix::sys::resource::{UsageWho, getrusage};
        let usage = getrusage(UsageWho::RUSAGE_THREAD);
        usage.map_or(0, |u| u64::try_from(u.major_page_faults()).unwrap_or(0))
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    0
}
