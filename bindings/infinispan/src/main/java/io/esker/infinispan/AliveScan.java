package io.esker.infinispan;

import java.util.function.Consumer;

/** A walk over entries that passes by those that have expired. */
final class AliveScan implements AutoCloseable {
    private final EntryScan entries;
    private final boolean keysOnly;
    private final long nowMs;
    private final Consumer<? super AliveScan> onClose;
    private byte[] stored;

    AliveScan(EntryScan entries, boolean keysOnly, long nowMs, Consumer<? super AliveScan> onClose) {
        this.entries = entries;
        this.keysOnly = keysOnly;
        this.nowMs = nowMs;
        this.onClose = onClose;
    }

    /** Goes to the next entry; false at the end. */
    boolean next() {
        while (entries.next()) {
            if (keysOnly) {
                return true;
            }
            stored = entries.stored();
            if (!StoredEntry.isExpired(StoredEntry.expiryOf(stored), nowMs)) {
                return true;
            }
        }
        return false;
    }

    byte[] entryKey() {
        return entries.entryKey();
    }

    /** What is stored; null when the walk is over keys only. */
    byte[] stored() {
        return stored;
    }

    @Override
    public void close() {
        onClose.accept(this);
        entries.close();
    }
}
