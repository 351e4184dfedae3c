package io.esker.infinispan;

import io.esker.Cursor;
import io.esker.Esker;
import io.esker.WriteBatch;
import java.util.function.ToIntFunction;

/**
 * Gives all entries the keys that another number of segments asks for, when a cache is configured anew. They are copied into a
 * new pair of keyspaces, which counts from one write on: a crash before it leaves the old pair as it was.
 */
final class Resegmenting {
    private final Esker esker;
    private final Layout from;
    private final Layout to;
    private final ToIntFunction<byte[]> segmentOf;

    Resegmenting(Esker esker, Layout from, Layout to, ToIntFunction<byte[]> segmentOf) {
        this.esker = esker;
        this.from = from;
        this.to = to;
        this.segmentOf = segmentOf;
    }

    Generation run() {
        Generation before = Generation.openOrCreate(esker, from);
        Generation after = Generation.openOrCreate(esker, to);
        WriteBatch batch = new WriteBatch();
        try (Cursor cursor = before.entries().cursor()) {
            for (boolean onEntry = cursor.first(); onEntry; onEntry = cursor.next()) {
                addTo(batch, after, EntryKeys.marshalledKey(cursor.key()), cursor.value());
                if (EntryTable.isFull(batch)) {
                    esker.write(batch);
                    batch.clear();
                }
            }
        }
        to.addTo(batch);
        esker.write(batch);
        EntryTable.dropLeftovers(esker, to);
        return after;
    }

    private void addTo(WriteBatch batch, Generation after, byte[] key, byte[] stored) {
        int segment = to.segmented() ? segmentOf.applyAsInt(key) : 0;
        byte[] entryKey = EntryKeys.entry(segment, key, 0, key.length);
        batch.put(after.entries(), entryKey, stored);
        long expiryMs = StoredEntry.expiryOf(stored);
        if (expiryMs != StoredEntry.NEVER) {
            batch.put(after.expiry(), EntryKeys.expiryRow(expiryMs, entryKey), new byte[0]);
        }
    }
}
