package io.esker.infinispan;

import io.esker.Cursor;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Removes what had expired at one moment, in the order in which it expired. */
final class ExpiryPurge implements AutoCloseable {
    /** Rows that are looked at together: their stripes are held meanwhile, and each batch is one hop between threads. */
    private static final int ROWS_AT_ONCE = 64;

    private final EntryTable table;
    private final Cursor rows;
    private final long nowMs;
    private final Consumer<? super ExpiryPurge> onClose;
    private boolean started;
    private boolean ended;

    ExpiryPurge(EntryTable table, Cursor rows, long nowMs, Consumer<? super ExpiryPurge> onClose) {
        this.table = table;
        this.rows = rows;
        this.nowMs = nowMs;
        this.onClose = onClose;
    }

    /** Removes some more; null when nothing is left. */
    List<EntryTable.Expired> some() {
        while (!ended) {
            List<byte[]> chunk = nextRows();
            if (!chunk.isEmpty()) {
                List<EntryTable.Expired> removed = table.removeExpired(chunk, nowMs);
                if (!removed.isEmpty()) {
                    return removed;
                }
            }
        }
        return null;
    }

    private List<byte[]> nextRows() {
        List<byte[]> chunk = new ArrayList<>(ROWS_AT_ONCE);
        while (chunk.size() < ROWS_AT_ONCE) {
            boolean onRow = started ? rows.next() : rows.first();
            started = true;
            byte[] row = onRow ? rows.key() : null;
            if (row == null || EntryKeys.timeOf(row) > nowMs) {
                ended = true;
                break;
            }
            chunk.add(row);
        }
        return chunk;
    }

    @Override
    public void close() {
        onClose.accept(this);
        rows.close();
    }
}
