//! Figures of a store and of a keyspace, flat.
//!
//! The caller says how large the struct is that it was compiled with: a later library with more figures
//! leaves those out, an earlier one sets those that it does not have to 0.

use std::mem::size_of;

use crate::db::esker_db;
use crate::error::{Failure, esker_code, esker_error};
use crate::ffi::{call, place, shared};
use crate::keyspace::esker_keyspace;
use crate::text::esker_string;

use esker_code::*;

/// The shape of a store, and what it has done since it was opened. Later versions add figures at the
/// end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct esker_stats {
    /// The number of the last commit.
    pub sequence: u64,
    /// Keyspaces.
    pub keyspaces: u64,
    /// 1 when writes are stopped (ESKER_HALTED; the property `esker.halted` says why), else 0.
    pub halted: u64,
    /// Segments of the log.
    pub log_segments: u64,
    /// Bytes set aside for them, and for files kept to make the next ones from.
    pub log_bytes: u64,
    /// Bytes of values that live in log segments.
    pub blob_bytes: u64,
    /// Bytes that those segments take on the disk beside them.
    pub blob_garbage_bytes: u64,
    /// Bytes of files that nothing needs but a value or a cursor that is still held.
    pub pinned_bytes: u64,
    /// Bytes of table files.
    pub table_bytes: u64,
    /// Bytes that the directory takes on the disk.
    pub disk_bytes: u64,
    /// The memory setting, in bytes.
    pub memory_budget: u64,
    /// What indexes and buffers take of it, in bytes.
    pub memory_used: u64,
    /// Since open: bytes of keys and values written by the program.
    pub bytes_written: u64,
    /// Since open: bytes written to the log.
    pub log_bytes_written: u64,
    /// Since open: bytes read by merges.
    pub compaction_bytes_read: u64,
    /// Since open: bytes written by flushes and merges.
    pub compaction_bytes_written: u64,
    /// Since open: flushes and merges.
    pub compactions: u64,
    /// Since open: syncs of the log.
    pub log_syncs: u64,
    /// Since open: time that writers were made to wait for flushes, in nanoseconds.
    pub write_stall_ns: u64,
    /// Snapshots held.
    pub snapshots: u64,
    /// Files held open.
    pub open_files: u64,
    /// Mappings of tables and log segments.
    pub mappings: u64,
}

/// The shape of a keyspace. Later versions add figures at the end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct esker_keyspace_stat {
    /// Its number in the store.
    pub id: u64,
    /// Entries in tables, all versions and deletes counted.
    pub entries: u64,
    /// Deletes among them.
    pub tombstones: u64,
    /// Sorted runs; a settled keyspace has one, or none, and perhaps some small ones, less than 7 % of it.
    pub runs: u64,
    /// Tables in them.
    pub tables: u64,
    /// Bytes of those files.
    pub table_bytes: u64,
    /// Bytes of keys and values in them before compression; of values in the log, their pointers.
    pub raw_bytes: u64,
    /// Tables that pack values with a dictionary for LZ4.
    pub lz4_tables: u64,
    /// Tables that pack values with a dictionary for Zstandard.
    pub zstd_tables: u64,
    /// Entries not in tables yet.
    pub memtable_entries: u64,
    /// Bytes of their keys and values.
    pub memtable_bytes: u64,
    /// From how many bytes on a value stays in the log.
    pub blob_threshold: u64,
}

/// Writes as much of the figures as the caller has room for.
///
/// # Safety
/// `at` is NULL or has `size` bytes that can be written.
unsafe fn fill<T: Copy>(
    at: *mut T,
    size: usize,
    figures: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    let at = place(at, "stats")?.cast::<u8>();
    if size == 0 || !size.is_multiple_of(size_of::<u64>()) || size > 1 << 16 {
        return Err(Failure::invalid(format!("size is {size}, not the size of the struct")));
    }
    // SAFETY: the caller's.
    unsafe {
        at.write_bytes(0, size);
        let figures = figures()?;
        let known = size.min(size_of::<T>());
        std::ptr::copy_nonoverlapping((&raw const figures).cast(), at, known);
    }
    Ok(())
}

/// Figures of a store. `size` is sizeof(esker_stats), so that programs and libraries of different
/// versions fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_stats(
    db: *const esker_db,
    stats: *mut esker_stats,
    size: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            fill(stats, size, || Ok(of_store(&shared(db)?.stats())))?;
            Ok(ESKER_OK)
        })
    }
}

fn of_store(s: &esker::Stats) -> esker_stats {
    esker_stats {
        sequence: s.sequence,
        keyspaces: s.keyspaces.len() as u64,
        halted: u64::from(s.halted.is_some()),
        log_segments: s.log_segments as u64,
        log_bytes: s.log_bytes,
        blob_bytes: s.blob_bytes,
        blob_garbage_bytes: s.blob_garbage_bytes,
        pinned_bytes: s.pinned_bytes,
        table_bytes: s.table_bytes,
        disk_bytes: s.disk_bytes,
        memory_budget: s.memory_budget,
        memory_used: s.memory_used,
        bytes_written: s.bytes_written,
        log_bytes_written: s.log_bytes_written,
        compaction_bytes_read: s.compaction_bytes_read,
        compaction_bytes_written: s.compaction_bytes_written,
        compactions: s.compactions,
        log_syncs: s.log_syncs,
        write_stall_ns: s.write_stall_ns,
        snapshots: s.snapshots as u64,
        open_files: s.open_files as u64,
        mappings: s.mappings as u64,
    }
}

/// Figures of a keyspace, as it is now. `size` is sizeof(esker_keyspace_stat). Errors: ESKER_CLOSED,
/// ESKER_KEYSPACE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_stats(
    keyspace: *const esker_keyspace,
    stats: *mut esker_keyspace_stat,
    size: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            fill(stats, size, || {
                let of = shared(keyspace)?;
                let figures = of.keyspace.stats();
                // Asked afterwards: one that is dropped meanwhile has nothing.
                of.check_open()?;
                Ok(of_keyspace(&figures))
            })?;
            Ok(ESKER_OK)
        })
    }
}

/// The name of the order of a keyspace's keys: "esker.bytewise", "esker.reverse", or that of the
/// comparator it was made with. For languages that cannot ask the library which of two keys comes first.
/// It is the caller's (esker_string_free). Errors: ESKER_CLOSED, ESKER_KEYSPACE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_comparator(
    keyspace: *const esker_keyspace,
    name: *mut esker_string,
    error: *mut *mut esker_error,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        call(error, || {
            let at = place(name, "name")?;
            at.write(esker_string::NONE);
            let of = shared(keyspace)?;
            of.check_open()?;
            at.write(esker_string::new(of.keyspace.comparator_name().to_owned()));
            Ok(ESKER_OK)
        })
    }
}

fn of_keyspace(k: &esker::KeyspaceStats) -> esker_keyspace_stat {
    let sum = |of: fn(&esker::RunStats) -> u64| k.runs.iter().map(of).sum();
    esker_keyspace_stat {
        id: u64::from(k.id),
        entries: sum(|r| r.entries),
        tombstones: sum(|r| r.tombstones),
        runs: k.runs.len() as u64,
        tables: sum(|r| r.tables as u64),
        table_bytes: sum(|r| r.bytes),
        raw_bytes: sum(|r| r.raw_bytes),
        lz4_tables: sum(|r| r.lz4_tables as u64),
        zstd_tables: sum(|r| r.zstd_tables as u64),
        memtable_entries: k.memtable_entries,
        memtable_bytes: k.memtable_bytes,
        blob_threshold: k.blob_threshold as u64,
    }
}
