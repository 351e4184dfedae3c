package io.esker.kafka;

import java.util.Arrays;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * Writes of one keyspace that are not in its store yet, in key order. One thread writes, any number reads.
 *
 * <p>A write has a sequence number. A key keeps an older version only where a reader that is still about might need it, that is
 * when the version is not newer than the newest reader; so there are at most as many of them as readers began since the last
 * commit.
 */
final class WriteBuffer {
    /** What one entry takes beside its bytes: the node, its share of the index, two array headers and the version. */
    private static final int ENTRY_BYTES = 144;

    /** One value of a key; a null value says that the key was deleted. */
    static final class Version {
        final byte[] value;
        final long sequence;
        private final Version older;
        /** The sequence number of the oldest version that this one replaced and that nobody needed then. */
        private final long replaced;

        Version(byte[] value, long sequence, Version older, long replaced) {
            this.value = value;
            this.sequence = sequence;
            this.older = older;
            this.replaced = replaced;
        }

        /**
         * What a reader that began at a sequence number sees; null when it sees nothing of this buffer for the key. A reader that
         * began on another thread while its version was being replaced is shown the one that took its place.
         */
        Version at(long sequence) {
            Version version = this;
            while (version != null && version.sequence > sequence && version.replaced > sequence) version = version.older;
            return version;
        }
    }

    private final ConcurrentSkipListMap<byte[], Version> entries = new ConcurrentSkipListMap<>(Arrays::compareUnsigned);

    /**
     * Adds a write.
     *
     * @param newestReader sequence number of the newest reader there ever was
     * @return by how many bytes the buffer grew; negative when it shrank
     */
    long put(byte[] key, byte[] value, long sequence, long newestReader) {
        Version before = entries.get(key);
        boolean keep = before != null && before.sequence <= newestReader;
        Version older = before == null ? null : keep ? before : before.older;
        long replaced = before == null || keep ? Long.MAX_VALUE : Math.min(before.sequence, before.replaced);
        entries.put(key, new Version(value, sequence, older, replaced));
        if (before == null) return sizeBytes(key, value);
        return keep ? sizeBytes(key, value) : length(value) - length(before.value);
    }

    /** The newest version of a key, or null. */
    Version newest(byte[] key) {
        return entries.get(key);
    }

    boolean isEmpty() {
        return entries.isEmpty();
    }

    int size() {
        return entries.size();
    }

    /** All keys with their newest versions. */
    Iterable<Map.Entry<byte[], Version>> newest() {
        return entries.entrySet();
    }

    /** The part between two bounds, null for none, in either direction. */
    NavigableMap<byte[], Version> part(byte[] from, byte[] to, boolean toInclusive, boolean forward) {
        ConcurrentNavigableMap<byte[], Version> part;
        if (from == null) {
            part = to == null ? entries : entries.headMap(to, toInclusive);
        } else {
            part = to == null ? entries.tailMap(from, true) : entries.subMap(from, true, to, toInclusive);
        }
        return forward ? part : part.descendingMap();
    }

    /** What a write takes of memory, roughly. */
    static long sizeBytes(byte[] key, byte[] value) {
        return ENTRY_BYTES + (long) key.length + length(value);
    }

    private static long length(byte[] value) {
        return value == null ? 0 : value.length;
    }
}
