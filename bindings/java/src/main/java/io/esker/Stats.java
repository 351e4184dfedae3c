package io.esker;

import java.util.List;
import java.util.Optional;

/**
 * The shape of a store, and what it has done since it was opened.
 *
 * @param keyspaces its keyspaces, by their numbers
 * @param sequence the last commit's sequence
 * @param logSegments segments of the log
 * @param logBytes bytes set aside for them, and for files kept to make the next ones from
 * @param blobBytes bytes of values that live in log segments
 * @param blobGarbageBytes bytes that those segments take on the disk beside them
 * @param pinnedBytes bytes of files that only a buffer or cursor still needs
 * @param tableBytes bytes of table files
 * @param diskBytes bytes that the directory takes on the disk
 * @param memoryBudgetBytes the memory setting
 * @param memoryUsedBytes what indexes and buffers take of it
 * @param bytesWritten bytes of keys and values written by the program
 * @param logBytesWritten bytes written to the log
 * @param compactionBytesRead bytes read by merges
 * @param compactionBytesWritten bytes written by flushes and merges
 * @param compactions flushes and merges
 * @param logSyncs syncs of the log; threads that wait share one
 * @param writeStallNanos time that writers were made to wait, in nanoseconds
 * @param snapshots snapshots held
 * @param openFiles files held open; tables and sealed segments are mapped and need none
 * @param mappings mappings of tables and log segments
 * @param halted why writes are stopped, if they are
 */
public record Stats(
        List<KeyspaceStats> keyspaces,
        long sequence,
        long logSegments,
        long logBytes,
        long blobBytes,
        long blobGarbageBytes,
        long pinnedBytes,
        long tableBytes,
        long diskBytes,
        long memoryBudgetBytes,
        long memoryUsedBytes,
        long bytesWritten,
        long logBytesWritten,
        long compactionBytesRead,
        long compactionBytesWritten,
        long compactions,
        long logSyncs,
        long writeStallNanos,
        long snapshots,
        long openFiles,
        long mappings,
        Optional<String> halted) {
    /**
     * Bytes written to files for each byte that the program wrote, since the store was opened.
     *
     * @return the factor; 0 when nothing was written
     */
    public double writeAmplification() {
        return bytesWritten == 0 ? 0 : (double) (logBytesWritten + compactionBytesWritten) / bytesWritten;
    }
}
