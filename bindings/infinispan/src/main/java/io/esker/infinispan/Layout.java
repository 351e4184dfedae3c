package io.esker.infinispan;

import io.esker.Esker;
import io.esker.WriteBatch;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.infinispan.persistence.spi.PersistenceException;

/**
 * What the default keyspace of a store says about the others: which pair of keyspaces counts, and how their keys were made.
 *
 * <p>Removing everything makes a new pair and lets this record name it, in one write; what the record does not name is left over
 * and dropped when the store is opened.
 *
 * @param segmented whether keys begin with the segment that Infinispan gave; otherwise with 0
 * @param segments how many segments there are
 * @param generation the number in the names of both keyspaces
 */
record Layout(boolean segmented, int segments, long generation) {
    private static final byte[] KEY = "layout".getBytes(StandardCharsets.US_ASCII);
    static final String DEFAULT = "default";
    private static final byte VERSION = 1;
    private static final int BYTES = 14;

    /** The record of this store; null when the store is new. */
    static Layout read(Esker esker) {
        byte[] stored = esker.keyspace().get(KEY);
        if (stored == null) {
            return null;
        }
        if (stored.length != BYTES || stored[0] != VERSION) {
            throw new PersistenceException("the store in " + esker.directory()
                    + " was made by a newer version of the Esker cache store; open it with that, or with purge=\"true\" to begin empty");
        }
        ByteBuffer fields = ByteBuffer.wrap(stored, 1, BYTES - 1);
        return new Layout(fields.get() != 0, fields.getInt(), fields.getLong());
    }

    /**
     * Refuses a store with entries to which no record leads: whatever is not named is dropped. One that is damaged may be such a store,
     * one whose manifest was lost and that was repaired, where keyspaces have other names, or one of another program.
     */
    static void check(Esker esker, Layout found) {
        List<String> keyspaces = esker.keyspaces();
        if (found != null && keyspaces.contains(found.entriesName()) && keyspaces.contains(found.expiryName())) {
            return;
        }
        for (String keyspace : keyspaces) {
            if (found != null && keyspace.equals(DEFAULT) || EntryTable.isEmpty(esker.keyspace(keyspace))) {
                continue;
            }
            String missing = found == null
                    ? "no record of its layout" : "not both of '" + found.entriesName() + "' and '" + found.expiryName() + "'";
            throw new PersistenceException("the store in " + esker.directory() + " has entries in keyspace '" + keyspace + "' and " + missing
                    + ": it is damaged, or of another program. Put a copy of it in its place, or move it away;"
                    + " with purge=\"true\" the cache begins empty, and what is there is removed");
        }
    }

    void addTo(WriteBatch batch) {
        batch.put(KEY, ByteBuffer.allocate(BYTES).put(VERSION).put((byte) (segmented ? 1 : 0)).putInt(segments)
                .putLong(generation).array());
    }

    boolean makesSameKeysAs(Layout other) {
        return segmented == other.segmented && (!segmented || segments == other.segments);
    }

    Layout withGeneration(long number) {
        return new Layout(segmented, segments, number);
    }

    String entriesName() {
        return "entries-" + generation;
    }

    String expiryName() {
        return "expiry-" + generation;
    }

    boolean names(String keyspace) {
        return keyspace.equals(DEFAULT) || keyspace.equals(entriesName()) || keyspace.equals(expiryName());
    }
}
