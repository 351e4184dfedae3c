package io.esker.infinispan;

import io.esker.Cursor;
import io.esker.Esker;
import io.esker.ReadableKeyspace;
import io.esker.Snapshot;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.infinispan.commons.util.IntSet;

/** Walks over the entries of a table, and over those that expire: they are begun here, and end with the table at the latest. */
final class Walks {
    private final EntryTable table;
    private final Esker esker;
    /** Those that are not closed yet. They would keep the directory locked. */
    private final Set<AutoCloseable> open = ConcurrentHashMap.newKeySet();
    /** Set before the walks are ended that there are then. */
    private volatile boolean ending;

    Walks(EntryTable table, Esker esker) {
        this.table = table;
        this.esker = esker;
    }

    /** How many entries of these segments have not expired. Looks at each key, and at the values of expired ones only. */
    long size(IntSet segments, long nowMs) {
        return table.reading(now -> {
            try (Snapshot snapshot = esker.snapshot();
                    EntryScan scan = new EntryScan(now.entries().at(snapshot), EntryTable.ascending(segments), true)) {
                long size = -expired(now.expiry().at(snapshot), segments, nowMs);
                while (scan.next()) {
                    size++;
                }
                return size;
            }
        });
    }

    private static long expired(ReadableKeyspace expiry, IntSet segments, long nowMs) {
        long expired = 0;
        try (Cursor rows = expiry.cursor(true)) {
            for (boolean onRow = rows.first(); onRow; onRow = rows.next()) {
                byte[] row = rows.key();
                if (EntryKeys.timeOf(row) > nowMs) {
                    break;
                }
                if (segments.contains(EntryKeys.segmentOf(EntryKeys.entryKeyOf(row)))) {
                    expired++;
                }
            }
        }
        return expired;
    }

    /**
     * A walk over the entries of these segments. With {@code keysOnly} it reads values all the same when some have expired, as
     * they say which.
     */
    AliveScan scan(IntSet segments, boolean keysOnly, long nowMs) {
        return walking(now -> {
            try (Snapshot snapshot = esker.snapshot()) {
                boolean without = keysOnly && !anyExpired(now.expiry().at(snapshot), nowMs);
                EntryScan entries = new EntryScan(now.entries().at(snapshot), EntryTable.ascending(segments), without);
                return new AliveScan(entries, without, nowMs, open::remove);
            }
        });
    }

    private static boolean anyExpired(ReadableKeyspace expiry, long nowMs) {
        try (Cursor rows = expiry.cursor(true)) {
            return rows.first() && EntryKeys.timeOf(rows.key()) <= nowMs;
        }
    }

    /** Removes what has expired, a few entries at each call of the result, which has to be closed. */
    ExpiryPurge purge(long nowMs) {
        return walking(now -> new ExpiryPurge(table, now.expiry().cursor(true), nowMs, open::remove));
    }

    /** Begins a walk. One that began behind the drop of its keyspace would say so at its first step only, when nobody looks again. */
    private <W extends AutoCloseable> W walking(Function<Generation, W> begin) {
        while (true) {
            W walk = table.reading(now -> {
                W begun = begin.apply(now);
                if (now == table.generation()) {
                    return begun;
                }
                closeQuietly(begun);
                return null;
            });
            if (walk != null) {
                open.add(walk);
                if (ending) {
                    closeQuietly(walk);
                    throw new IllegalStateException("the store in " + esker.directory() + " is closed");
                }
                return walk;
            }
        }
    }

    /** Closes all of them, also behind one that fails to; from here on none begins. */
    void closeAll() {
        ending = true;
        RuntimeException first = null;
        for (AutoCloseable walk : open) {
            try {
                closeQuietly(walk);
            } catch (RuntimeException e) {
                if (first == null) {
                    first = e;
                } else {
                    first.addSuppressed(e);
                }
            }
        }
        if (first != null) {
            throw first;
        }
    }

    private static void closeQuietly(AutoCloseable walk) {
        try {
            walk.close();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
