package io.esker.infinispan;

import io.esker.Esker;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * How many entries each segment has, expired ones included.
 *
 * <p>Every write keeps it right. A clean end stores it, and the next start takes it out of the store, so that a store that was
 * not ended cleanly has none and must be counted.
 */
final class SegmentCounts {
    private static final byte[] KEY = "counts".getBytes(StandardCharsets.US_ASCII);

    private volatile AtomicLongArray counts;
    private volatile boolean known;
    /** How often they were forgotten, and how often when the count that is under way began. */
    private long forgotten;
    private long forgottenBefore;

    private SegmentCounts(AtomicLongArray counts, boolean known) {
        this.counts = counts;
        this.known = known;
    }

    /** Takes what the last clean end left out of the store. */
    static SegmentCounts take(Esker esker, int segments, boolean isEmpty) {
        byte[] stored = esker.keyspace().get(KEY);
        if (stored != null) {
            esker.keyspace().delete(KEY);
        }
        AtomicLongArray counts = new AtomicLongArray(segments);
        if (stored == null || stored.length != segments * Long.BYTES) {
            return new SegmentCounts(counts, isEmpty);
        }
        ByteBuffer numbers = ByteBuffer.wrap(stored);
        for (int segment = 0; segment < segments; segment++) {
            counts.set(segment, numbers.getLong());
        }
        return new SegmentCounts(counts, true);
    }

    /** Stores what is known, when no write will follow. */
    void leave(Esker esker) {
        if (known) {
            ByteBuffer numbers = ByteBuffer.allocate(counts.length() * Long.BYTES);
            for (int segment = 0; segment < counts.length(); segment++) {
                numbers.putLong(counts.get(segment));
            }
            esker.keyspace().put(KEY, numbers.array());
        }
    }

    boolean isKnown() {
        return known;
    }

    void add(int segment, long change) {
        counts.addAndGet(segment, change);
    }

    void set(int segment, long count) {
        counts.set(segment, count);
    }

    long of(int segment) {
        return counts.get(segment);
    }

    /** All are 0 from here on. To be called while nobody writes. */
    void reset() {
        counts = new AtomicLongArray(counts.length());
        known = true;
    }

    /** They must be counted anew, also where a count is under way: it may have begun before what is not known now. */
    synchronized void forget() {
        forgotten++;
        known = false;
    }

    /**
     * Begins anew with 0 in each; whoever counts adds what there is now, while writes add what they change. To be called while
     * nobody writes.
     */
    synchronized void startCounting() {
        counts = new AtomicLongArray(counts.length());
        known = false;
        forgottenBefore = forgotten;
    }

    /** All entries that there were at {@link #startCounting} were added. */
    synchronized void counted() {
        known = forgotten == forgottenBefore;
    }
}
