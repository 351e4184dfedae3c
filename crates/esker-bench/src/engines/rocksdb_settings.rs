//! What RocksDB is told, from what every engine is given.

use crate::engine::{Config, Sync};
use anyhow::Result;

/// What its settings are called by.
const NAME: &str = "rocksdb";
/// Flushed files that are merged into the next level together (its default).
const FLUSHED_FILES: u64 = 4;
/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Bytes of a key's prefix.
pub const PREFIX: usize = 12;
/// From so many bytes on a value is a blob.
pub const BLOB: u64 = 4096;
/// A file in which so many of so many entries one after the other are deletions is compacted.
pub const WINDOW: usize = 128;
pub const DELETED: usize = 64;

/// What a configuration comes to.
pub struct Settings {
    /// Nothing below is set: the library's defaults are in force.
    pub defaults: bool,
    /// Bytes of each of two.
    pub write_buffer: usize,
    /// Bytes of the block cache.
    pub cache: usize,
    /// Whether files are mapped.
    pub mmap_reads: bool,
    /// At each read of a block.
    pub verify_checksums: bool,
    /// `WALRecoveryMode`.
    pub wal_recovery: Option<u64>,
    /// Dead entries of a memtable that a step of an iterator passes before it is flushed, and files full of deletions are compacted;
    /// `None` for neither.
    pub passed: Option<u32>,
    /// Bytes of the first level below the flushed files.
    pub level_base: u64,
    /// Bytes of a file there.
    pub file_size: u64,
}

impl Settings {
    /// The settings for a configuration.
    pub fn of(config: &Config) -> Result<Settings> {
        let memory = config.memory as usize;
        // A page fault in a mapping reads ahead, which costs more than it gives where little of
        // the store stays in memory.
        let mapped = !config.compression && !config.larger_than_memory;
        let mmap_reads = config.number(NAME, "mmap_reads")?.unwrap_or(mapped as u64);
        // A document's split, as LevelDB has it; else a write buffer and the block cache, which mapped files leave empty. A
        // second buffer, filled while the first is flushed, comes on top, as LevelDB's does.
        let split = config.number(NAME, "write_buffer")?;
        let of_memory = if mmap_reads != 0 { memory / 16 * 15 } else { memory / 2 };
        let to_write = split.map_or(of_memory.min(super::MOST_TO_WRITE as usize), |b| b as usize);
        let to_read = config.only_reads && split.is_none();
        let write_buffer = if to_read { memory / 16 } else { to_write };
        let cache = config.number(NAME, "cache")?;
        // The level below the flushed files as large as these together, and ten files in it; as it was written, for who only reads.
        let level_base = to_write as u64 * FLUSHED_FILES;
        Ok(Settings {
            defaults: config.as_it_comes(NAME)?,
            level_base,
            file_size: (level_base / 10).max(1 << 20),
            write_buffer,
            cache: cache.map_or(memory.saturating_sub(write_buffer), |bytes| bytes as usize),
            mmap_reads: mmap_reads != 0,
            // A mapped block is never cached, so its checksum would be computed at each read.
            verify_checksums: config.is_on(NAME, "verify_checksums")?,
            wal_recovery: config.number(NAME, "wal_recovery")?,
            passed: config.number(NAME, "scan_flush")?.map(u32::try_from).transpose()?,
        })
    }

    /// All of it for people.
    pub fn words(&self, config: &Config, prefix: bool) -> String {
        let s = self;
        let synced = if config.sync == Sync::Synced { "on" } else { "off" };
        if s.defaults {
            let compression = if config.compression { "as it comes" } else { "off" };
            return format!(
                "the library's defaults, its memory too; compression {compression}, log on, sync {synced}, C interface"
            );
        }
        let prefix = if prefix {
            format!(", prefix bloom of {PREFIX} bytes in tables and memtables")
        } else {
            String::new()
        };
        format!(
            "a write buffer of {} and another on top, block cache {}, first level of {} in files of {}, blob files for values from {BLOB} bytes on, blocks of {BLOCK} \
             bytes with hash index, bloom 10 bits{prefix}, mmap reads {}, checksums {}verified at reads, \
             compression {}, files written back every 1 MiB (bytes_per_sync), log on, sync {}, C interface",
            super::mib(s.write_buffer as u64),
            super::mib(s.cache as u64),
            super::mib(s.level_base),
            super::mib(s.file_size),
            if s.mmap_reads { "on" } else { "off" },
            if s.verify_checksums { "" } else { "not " },
            if config.compression { "lz4 but for flushed files" } else { "off" },
            synced,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_splits_the_memory_as_it_does_for_leveldb() {
        let mut config = crate::conformance::config(Sync::Buffered, true);
        config.memory = 128 << 20;
        let split = |config: &Config| Settings::of(config).map(|s| (s.write_buffer, s.cache));
        assert_eq!(split(&config).unwrap(), (64 << 20, 64 << 20));
        let level_base = Settings::of(&config).unwrap().level_base;
        config.only_reads = true;
        assert_eq!(split(&config).unwrap(), (8 << 20, 120 << 20), "whoever reads has the cache");
        assert_eq!(Settings::of(&config).unwrap().level_base, level_base, "and finds its levels");
        config.only_reads = false;
        config.tuning.insert("rocksdb.write_buffer".into(), (8 << 20).to_string());
        assert_eq!(split(&config).unwrap(), (8 << 20, 120 << 20));
        config.tuning.insert("cache".into(), (16 << 20).to_string());
        assert_eq!(split(&config).unwrap(), (8 << 20, 16 << 20));
    }

    #[test]
    fn levels_are_in_proportion_to_the_memory() {
        for memory in [4 << 20, 128 << 20, 1 << 30] {
            for compression in [false, true] {
                let mut config = crate::conformance::config(Sync::Buffered, compression);
                config.memory = memory;
                let s = Settings::of(&config).unwrap();
                assert!((s.write_buffer + s.cache) as u64 <= memory, "{memory}");
                assert_eq!(s.level_base, 4 * s.write_buffer as u64);
                assert!(s.file_size <= s.level_base && s.file_size * 12 > s.level_base, "{memory}");
            }
        }
    }
}
