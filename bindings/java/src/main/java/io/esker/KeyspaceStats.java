package io.esker;

import java.util.List;

/**
 * The shape of one keyspace.
 *
 * @param name its name
 * @param id its number, which the log uses
 * @param comparator the name of its order
 * @param compression how what is written from now on is compressed: "none", "lz4" or "zstd"
 * @param blobThresholdBytes from which size on values stay in the log
 * @param runs sorted runs, newest first; a settled keyspace has one, and perhaps some small ones, less than 7 % of it
 * @param memtableEntries entries not in tables yet
 * @param memtableBytes bytes of their keys and values
 */
public record KeyspaceStats(
        String name,
        long id,
        String comparator,
        String compression,
        long blobThresholdBytes,
        List<RunStats> runs,
        long memtableEntries,
        long memtableBytes) {}
