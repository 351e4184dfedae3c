package io.esker.infinispan;

import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Writes and removals that are made together. Of several for one key the last counts. Filled by any threads; read when all have
 * ended.
 */
final class Changes {
    /** What becomes of a key: bytes that are stored and when they expire, or neither when it is removed. */
    record Change(byte[] stored, long expiryMs) {
        boolean isRemoval() {
            return stored == null;
        }
    }

    private static final Change REMOVAL = new Change(null, StoredEntry.NEVER);

    /** By the key of the entry; the buffers are there for their equality. */
    private final Map<ByteBuffer, Change> byKey = new LinkedHashMap<>();

    synchronized void put(byte[] entryKey, byte[] stored, long expiryMs) {
        byKey.put(ByteBuffer.wrap(entryKey), new Change(stored, expiryMs));
    }

    /** Takes null too, which is a key that no entry can have. */
    synchronized void remove(byte[] entryKey) {
        if (entryKey != null) {
            byKey.put(ByteBuffer.wrap(entryKey), REMOVAL);
        }
    }

    synchronized boolean isEmpty() {
        return byKey.isEmpty();
    }

    synchronized Map<ByteBuffer, Change> byKey() {
        return byKey;
    }
}
