package io.esker;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Iterator;

/** Where the library gets the entries of a bulk load from: a chunk at a time. */
final class BulkLoad {
    private static final int CHUNK_BYTES = 256 << 10;
    private static final int HEAD_BYTES = 8;
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private final Keyspace keyspace;
    private final Iterator<Entry> entries;
    private byte[] chunk = new byte[8 << 10];
    /** An entry that did not fit into the last chunk. */
    private Entry left;
    /** Of the gate, which is open for others while the iterator runs. */
    int cell;

    BulkLoad(Keyspace keyspace, Iterator<Entry> entries) {
        this.keyspace = keyspace;
        this.entries = entries;
    }

    /**
     * Called by the library: the next chunk, or null at the end. It is the number of bytes used, then entries: lengths of key
     * and value (4 bytes each), key, value. The iterator may close the store: nobody waits for this call meanwhile.
     */
    byte[] fill() {
        keyspace.exit(cell);
        cell = -1;
        int end;
        try {
            end = pull();
        } catch (Throwable e) {
            try {
                cell = keyspace.enter();
            } catch (IllegalStateException closed) {
                if (closed != e) e.addSuppressed(closed);
            }
            throw e;
        }
        // Throws when the store was closed, which ends the load. Then there is nothing to leave.
        cell = keyspace.enter();
        if (end == 4) return null;
        INT.set(chunk, 0, end);
        return chunk;
    }

    private int pull() {
        if (chunk.length > CHUNK_BYTES) chunk = new byte[CHUNK_BYTES];
        int end = 4;
        while (left != null || entries.hasNext()) {
            Entry entry = left != null ? left : entries.next();
            left = null;
            if (entry == null) throw new NullPointerException("the iterator gave null instead of an entry");
            Bytes.checkKey(entry.key());
            Bytes.checkValue(entry.value());
            int needed = HEAD_BYTES + entry.key().length + entry.value().length;
            if (end > 4 && end + needed > CHUNK_BYTES) {
                left = entry;
                return end;
            }
            if (end + needed > chunk.length) {
                chunk = java.util.Arrays.copyOf(chunk, Math.max(end + needed, Math.min(CHUNK_BYTES, 2 * chunk.length)));
            }
            INT.set(chunk, end, entry.key().length);
            INT.set(chunk, end + 4, entry.value().length);
            System.arraycopy(entry.key(), 0, chunk, end + HEAD_BYTES, entry.key().length);
            System.arraycopy(entry.value(), 0, chunk, end + HEAD_BYTES + entry.key().length, entry.value().length);
            end += needed;
        }
        return end;
    }
}
