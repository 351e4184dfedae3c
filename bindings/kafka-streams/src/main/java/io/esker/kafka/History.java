package io.esker.kafka;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.VersionedRecord;

/**
 * The versions of keys that are no longer valid, each in the segment of the time at which it ended to be, where it expires with the
 * segment. Those of a key do not overlap.
 *
 * <p>A version is stored under the length of its key (4 bytes), the key, and the time from which it was valid (8 bytes, the sign
 * turned around so that they sort); so those of a key lie side by side in the order of time. Its value is the time to which it was
 * valid (8 bytes), whether there is a value (1), and the value. A deletion is the end of a version, or a version without a value, or,
 * where neither would tell, a version that begins and ends with it: what comes later with an earlier time finds when it ends.
 */
final class History {
    /** By how much a key as it is stored is longer. */
    static final int ADDED_KEY_BYTES = Integer.BYTES + Long.BYTES;
    private static final int HEAD_BYTES = Long.BYTES + 1;

    /** A version, valid from one time to before another; without a value it says that there was none. */
    record Version(byte[] value, long validFrom, long validTo) {
        boolean isValidAt(long timeMs) {
            return validFrom <= timeMs && timeMs < validTo;
        }

        VersionedRecord<byte[]> asRecord() {
            return new VersionedRecord<>(value, validFrom, validTo);
        }
    }

    private final TaskStore store;
    private final Segments segments;
    /** How many versions left a segment for another, or are about to. One thread cuts; any number looks whether one was. */
    private volatile long cuts;

    History(TaskStore store, Segments segments) {
        this.store = store;
        this.segments = segments;
    }

    void open() {
        segments.open();
    }

    void dropExpired(long nowMs) {
        segments.dropExpired(nowMs);
    }

    /** The same with the next batch that is restored. */
    void expire(long nowMs) {
        segments.expire(nowMs);
    }

    /** Records up to a time are restored, each with the history of its own time, until {@link #passed}. */
    void passTo(long endMs) {
        segments.passTo(endMs);
    }

    /** What was passed until now is written with the next batch. */
    void keepPassing() {
        segments.keepPassing();
    }

    void passed(long endMs) {
        segments.passed(endMs);
    }

    /** Adds a version, unless its segment expired. */
    void put(Bytes key, byte[] value, long validFrom, long validTo, long nowMs) {
        Segments.Segment segment = segments.live(segments.id(validTo), nowMs);
        if (segment == null) return;
        int length = value == null ? 0 : value.length;
        ByteBuffer stored = ByteBuffer.allocate(HEAD_BYTES + length).putLong(validTo).put((byte) (value == null ? 0 : 1));
        if (value != null) stored.put(value);
        store.put(segment.values(), storedKey(key, validFrom), stored.array());
    }

    /** Notes that the key was deleted at a time. */
    void markDeleted(Bytes key, long timeMs, long nowMs) {
        put(key, null, timeMs, timeMs, nowMs);
    }

    /**
     * Lets a version end earlier, at the beginning of one that was put already: one that began with it took its place. It is in the
     * segment of its new end before it leaves that of its old one, so that a reader finds it in one of them, unless it looked into the
     * first before and into the second after that: then {@link #cuts} has changed.
     */
    void cut(Bytes key, Version version, long validTo, long nowMs) {
        if (version.validFrom() >= validTo) return;
        put(key, version.value(), version.validFrom(), validTo, nowMs);
        if (segments.id(validTo) == segments.id(version.validTo())) return;
        Segments.Segment segment = segments.of(version.validTo());
        if (segment == null) return;
        cuts = cuts + 1; // behind the put and before the delete: whoever misses both saw it change
        store.put(segment.values(), storedKey(key, version.validFrom()), null);
    }

    long cuts() {
        return cuts;
    }

    /** The version that is valid at a time, or else the first that begins later; null when there is neither. */
    Version around(Bytes key, long timeMs) {
        for (Segments.Segment segment : segments.between(timeMs, Long.MAX_VALUE, true)) {
            Version at = first(segment, storedKey(key, Long.MIN_VALUE), storedKey(key, timeMs), false);
            if (at != null && at.isValidAt(timeMs)) return at;
            if (timeMs == Long.MAX_VALUE) continue;
            Version later = first(segment, storedKey(key, timeMs + 1), storedKey(key, Long.MAX_VALUE), true);
            if (later != null) return later;
        }
        return null;
    }

    /** The versions of a key that were valid at some time between two, in the order of time. */
    List<VersionedRecord<byte[]>> between(Bytes key, long fromMs, long toMs) {
        List<VersionedRecord<byte[]>> found = new ArrayList<>();
        for (Segments.Segment segment : segments.between(fromMs, Long.MAX_VALUE, true)) {
            try (KeyValueIterator<Bytes, byte[]> versions = open(segment, storedKey(key, Long.MIN_VALUE), storedKey(key, toMs), true)) {
                while (versions.hasNext()) {
                    Version version = read(versions.next());
                    if (version.value() != null && version.validTo() > fromMs) found.add(version.asRecord());
                }
            }
        }
        return found;
    }

    private Version first(Segments.Segment segment, byte[] from, byte[] to, boolean forward) {
        try (KeyValueIterator<Bytes, byte[]> versions = open(segment, from, to, forward)) {
            return versions.hasNext() ? read(versions.next()) : null;
        }
    }

    private KeyValueIterator<Bytes, byte[]> open(Segments.Segment segment, byte[] from, byte[] to, boolean forward) {
        return store.reading("opening an iterator", () -> segment.values().iterate(from, to, true, forward));
    }

    private static byte[] storedKey(Bytes key, long validFrom) {
        byte[] bytes = key.get();
        return ByteBuffer.allocate(bytes.length + ADDED_KEY_BYTES)
                .putInt(bytes.length).put(bytes).putLong(validFrom ^ Long.MIN_VALUE).array();
    }

    private static Version read(KeyValue<Bytes, byte[]> stored) {
        byte[] key = stored.key.get();
        long validFrom = ByteBuffer.wrap(key).getLong(key.length - Long.BYTES) ^ Long.MIN_VALUE;
        boolean present = stored.value[Long.BYTES] != 0;
        return new Version(present ? Arrays.copyOfRange(stored.value, HEAD_BYTES, stored.value.length) : null,
                validFrom, ByteBuffer.wrap(stored.value).getLong());
    }
}
