//! Options of stores and of keyspaces.

use std::ffi::c_char;

use esker::{Compression, Durability, KeyOrder, KeyspaceOptions, Options};

use crate::comparator::{self, esker_comparator};
use crate::error::{Failure, esker_code};
use crate::ffi::{self, Kind, call, quietly};

/// When a write counts as done.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_durability {
    /// As the store's options say, which is buffered if they say nothing.
    ESKER_DURABILITY_DEFAULT = 0,
    /// When it is in the page cache: it survives a killed process, not a power cut.
    ESKER_DURABILITY_BUFFERED = 1,
    /// When it is on the device: it survives a power cut, and with it everything written before it.
    ESKER_DURABILITY_SYNCED = 2,
}

/// How values are compressed in tables.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_compression {
    /// Not at all.
    ESKER_COMPRESSION_NONE = 0,
    /// LZ4, value by value, with a dictionary for each table; the default.
    ESKER_COMPRESSION_LZ4 = 1,
    /// Zstandard in the same way: slower, smaller.
    ESKER_COMPRESSION_ZSTD = 2,
}

/// The orders of keys that come with the library.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum esker_order {
    /// Unsigned bytes, shorter first among equal prefixes; the default.
    ESKER_ORDER_BYTEWISE = 0,
    /// The reverse of that.
    ESKER_ORDER_REVERSE = 1,
}

/// As it comes from C: any number.
pub type esker_durability_arg = i32;
/// As it comes from C: any number.
pub type esker_compression_arg = i32;
/// As it comes from C: any number.
pub type esker_order_arg = i32;

/// `None` is the store's own.
#[inline]
pub(crate) fn durability(d: esker_durability_arg) -> Result<Option<Durability>, Failure> {
    match d {
        0 => Ok(None),
        1 => Ok(Some(Durability::Buffered)),
        2 => Ok(Some(Durability::Synced)),
        _ => Err(Failure::invalid(format!("{d} is no durability"))),
    }
}

fn compression(c: esker_compression_arg) -> Result<Compression, Failure> {
    match c {
        0 => Ok(Compression::None),
        1 => Ok(Compression::Lz4),
        2 => Ok(Compression::Zstd),
        _ => Err(Failure::invalid(format!("{c} is no compression"))),
    }
}

fn order(o: esker_order_arg) -> Result<KeyOrder, Failure> {
    match o {
        0 => Ok(KeyOrder::Bytewise),
        1 => Ok(KeyOrder::Reverse),
        _ => Err(Failure::invalid(format!("{o} is no order"))),
    }
}

/// How to open a store. One thread uses it at a time; any number of stores may be opened with it.
pub struct esker_options(());

impl Kind for esker_options {
    type State = Options;
    const MARK: u64 = u64::from_ne_bytes(*b"esker-op");
    const NAME: &'static str = "esker_options";
}

/// How to make a keyspace. One thread uses it at a time.
pub struct esker_keyspace_options(());

impl Kind for esker_keyspace_options {
    type State = KeyspaceOptions;
    const MARK: u64 = u64::from_ne_bytes(*b"esker-ko");
    const NAME: &'static str = "esker_keyspace_options";
}

/// Changes options, if what comes out can be.
///
/// # Safety
/// `options` is NULL or a handle that nobody else uses.
unsafe fn change(
    options: *mut esker_options,
    how: impl FnOnce(Options) -> Result<Options, Failure>,
) -> esker_code {
    // SAFETY: the caller's; no error object is asked for.
    unsafe {
        call(std::ptr::null_mut(), || {
            let options = ffi::exclusive(options)?;
            let changed = how(options.clone())?;
            changed.validate()?;
            *options = changed;
            Ok(esker_code::ESKER_OK)
        })
    }
}

/// As [`change`], of a keyspace.
///
/// # Safety
/// The same.
unsafe fn change_keyspace(
    options: *mut esker_keyspace_options,
    how: impl FnOnce(KeyspaceOptions) -> Result<KeyspaceOptions, Failure>,
) -> esker_code {
    // SAFETY: the caller's; no error object is asked for.
    unsafe {
        call(std::ptr::null_mut(), || {
            let options = ffi::exclusive(options)?;
            let changed = how(options.clone())?;
            // A store refuses the same values.
            let mut store = Options::new();
            if let Some(compression) = changed.compression {
                store = store.compression(compression);
            }
            if let Some(bytes) = changed.blob_threshold {
                store = store.blob_threshold(bytes);
            }
            store.validate()?;
            *options = changed;
            Ok(esker_code::ESKER_OK)
        })
    }
}

/// Options with their defaults, for esker_options_free. NULL only after a bug.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_new() -> *mut esker_options {
    quietly(std::ptr::null_mut(), || ffi::hand_out(Options::new()))
}

/// Gives options back. Stores that were opened with them keep what they need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_free(options: *mut *mut esker_options) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::close(options) }
}

/// Memory that the store may use for itself: write buffers, indexes, merge work. In bytes, 1 MiB at
/// least, 128 MiB by default. Mapped files are the page cache's and not counted.
///
/// Every function that sets an option gives ESKER_INVALID_ARGUMENT for a value that cannot be, and then
/// changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_memory(
    options: *mut esker_options,
    bytes: u64,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.memory(bytes))) }
}

/// Durability of writes that are asked for with ESKER_DURABILITY_DEFAULT. Buffered by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_durability(
    options: *mut esker_options,
    durability: esker_durability_arg,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        change(options, |o| Ok(o.durability(self::durability(durability)?.unwrap_or_default())))
    }
}

/// Whether a store is made where there is none. True by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_create_if_missing(
    options: *mut esker_options,
    yes: bool,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.create_if_missing(yes))) }
}

/// Whether a store that is there is an error (ESKER_STORE_EXISTS). False by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_error_if_exists(
    options: *mut esker_options,
    yes: bool,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.error_if_exists(yes))) }
}

/// Whether opening verifies all tables, and takes any doubt for damage. False by default; opening then
/// reads the whole store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_paranoid_checks(
    options: *mut esker_options,
    yes: bool,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.paranoid_checks(yes))) }
}

/// Whether closing writes what is in memory to tables, so that the next open has nothing to recover from
/// the log. True by default; nothing is lost without. To be unset where closing must not wait for a
/// comparator: the store's own thread calls it then, and a lock that both the comparator and whoever
/// closes the store take would stop both.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_flush_on_close(
    options: *mut esker_options,
    yes: bool,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.flush_on_close(yes))) }
}

/// Whether the store is opened without writing anything; writes give ESKER_READ_ONLY. False by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_read_only(
    options: *mut esker_options,
    yes: bool,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.read_only(yes))) }
}

/// Compression of keyspaces that were made without one of their own, the default keyspace among them.
/// LZ4 by default. Not stored: it holds from this opening to the next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_compression(
    options: *mut esker_options,
    compression: esker_compression_arg,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.compression(self::compression(compression)?))) }
}

/// Smallest block of a table: in bytes, a multiple of 4096 from 4096 (the default) to 65536.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_block_size(
    options: *mut esker_options,
    bytes: usize,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.block_size(bytes))) }
}

/// Size to which segments of the log grow: in bytes, 64 KiB to 4 GiB. By default a quarter of the
/// memory or of the log that may wait for its flush, whichever is less, up to 32 MiB, or an eighth of it up to 64 MiB
/// where that is more; 2 MiB and a 64th of that log at least.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_segment_size(
    options: *mut esker_options,
    bytes: u64,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.segment_size(bytes))) }
}

/// From how many bytes on a value is written once, and stays in the log. 64 at least, 4096 by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_blob_threshold(
    options: *mut esker_options,
    bytes: usize,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.blob_threshold(bytes))) }
}

/// Order of the default keyspace, fixed when the store is made. Bytewise by default. Takes the place of
/// a comparator that was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_order(
    options: *mut esker_options,
    order: esker_order_arg,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.comparator(self::order(order)?))) }
}

/// An order of the program's own for the default keyspace. The struct and its name are copied; `state`
/// belongs to the library from then on, until it calls `destroy`. On an error it stays the caller's.
/// Whether the name may be is asked when a store is opened, with an error that says why not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_comparator(
    options: *mut esker_options,
    comparator: *const esker_comparator,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change(options, |o| Ok(o.comparator(comparator::order(comparator)?))) }
}

/// The order of a keyspace that was made with one of the program's own, by its name; needed to open its
/// store. Otherwise as esker_options_set_comparator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_keyspace_comparator(
    options: *mut esker_options,
    keyspace: *const c_char,
    comparator: *const esker_comparator,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe {
        change(options, |o| {
            let keyspace = ffi::text(keyspace, "keyspace")?;
            Ok(o.keyspace_comparator(keyspace, comparator::order(comparator)?))
        })
    }
}

/// Keyspace options with their defaults, for esker_keyspace_options_free. NULL only after a bug.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_options_new() -> *mut esker_keyspace_options {
    quietly(std::ptr::null_mut(), || ffi::hand_out(KeyspaceOptions::new()))
}

/// Gives keyspace options back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_free(options: *mut *mut esker_keyspace_options) {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { ffi::close(options) }
}

/// Compression of the keyspace's values, whatever the store is opened with. That of the store by
/// default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_compression(
    options: *mut esker_keyspace_options,
    compression: esker_compression_arg,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change_keyspace(options, |o| Ok(o.compression(self::compression(compression)?))) }
}

/// From how many bytes on a value stays in the log. 64 at least; that of the store by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_blob_threshold(
    options: *mut esker_keyspace_options,
    bytes: usize,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change_keyspace(options, |o| Ok(o.blob_threshold(bytes))) }
}

/// Order of the keyspace's keys. Bytewise by default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_order(
    options: *mut esker_keyspace_options,
    order: esker_order_arg,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change_keyspace(options, |o| Ok(o.comparator(self::order(order)?))) }
}

/// An order of the program's own; as esker_options_set_comparator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_comparator(
    options: *mut esker_keyspace_options,
    comparator: *const esker_comparator,
) -> esker_code {
    // SAFETY: the caller keeps the rules of the header.
    unsafe { change_keyspace(options, |o| Ok(o.comparator(comparator::order(comparator)?))) }
}
