package io.esker;

/**
 * One sorted run of tables.
 *
 * @param tables number of tables
 * @param bytes size of their files, in bytes
 * @param rawBytes bytes of their keys and values before compression
 * @param lz4Tables tables among them that have a dictionary for LZ4
 * @param zstdTables tables among them that have a dictionary for Zstandard
 * @param entries entries, all versions and deletes counted
 * @param tombstones deletes among the entries
 */
public record RunStats(
        long tables, long bytes, long rawBytes, long lz4Tables, long zstdTables, long entries, long tombstones) {}
