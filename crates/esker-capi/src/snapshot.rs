//! Snapshots.

use esker::Snapshot;

use crate::db::esker_db;
use crate::error::{esker_code, esker_error};
use crate::ffi::{self, Kind, call, place, shared};

use esker_code::*;

/// The whole store, all keyspaces, as it was at one moment: esker_keyspace_at reads at it. Any number
/// of threads use it. What it sees takes room in the store for as long as it is open.
pub struct esker_snapshot(());

impl Kind for esker_snapshot {
    type State = Snapshot;
    const MARK: u64 = u64::from_ne_bytes(*b"esker-sn");
    const NAME: &'static str = "esker_snapshot";
}

/// Takes a snapshot of the store as it is now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_open(
    db: *const esker_db,
    snapshot: *mut *mut esker_snapshot,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let at = place(snapshot, "snapshot")?;
            at.write(std::ptr::null_mut());
            at.write(ffi::hand_out(shared(db)?.snapshot()));
            Ok(ESKER_OK)
        })
    }
}

/// The number of the last commit that a snapshot sees; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_sequence(snapshot: *const esker_snapshot) -> u64 {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { shared(snapshot).map_or(0, Snapshot::sequence) }
}

/// Closes a snapshot. Handles that esker_keyspace_at made of it keep what they see.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_close(snapshot: *mut *mut esker_snapshot) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::close(snapshot) }
}
