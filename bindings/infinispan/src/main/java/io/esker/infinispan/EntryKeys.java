package io.esker.infinispan;

import java.util.Arrays;

/**
 * How keys look inside a store.
 *
 * <p>An entry's key is its segment in two bytes, most significant first, and the marshalled key: the entries of a segment lie
 * beside each other. A row of the expiry index is the time at which its entry expires, in eight bytes that sort as the number
 * does, and the entry's key. A store has these two keyspaces, however many segments there are.
 */
final class EntryKeys {
    /** Segments that two bytes can tell apart. */
    static final int MAX_SEGMENTS = 1 << 16;

    private static final int SEGMENT_BYTES = 2;
    private static final int TIME_BYTES = 8;
    private static final int MAX_ESKER_KEY_BYTES = 65_536;
    /** Bytes that a marshalled key may have, so that its row of the expiry index is a key too. */
    static final int MAX_KEY_BYTES = MAX_ESKER_KEY_BYTES - SEGMENT_BYTES - TIME_BYTES;

    private EntryKeys() {}

    /** The key of an entry. */
    static byte[] entry(int segment, byte[] key, int offset, int length) {
        byte[] entryKey = new byte[SEGMENT_BYTES + length];
        putSegment(entryKey, segment);
        System.arraycopy(key, offset, entryKey, SEGMENT_BYTES, length);
        return entryKey;
    }

    /** What all keys of a segment begin with; also the first key at or behind which they lie. */
    static byte[] segmentPrefix(int segment) {
        byte[] prefix = new byte[SEGMENT_BYTES];
        putSegment(prefix, segment);
        return prefix;
    }

    static int segmentOf(byte[] entryKey) {
        return (entryKey[0] & 0xff) << 8 | entryKey[1] & 0xff;
    }

    /** The marshalled key in an entry's key. */
    static byte[] marshalledKey(byte[] entryKey) {
        return Arrays.copyOfRange(entryKey, SEGMENT_BYTES, entryKey.length);
    }

    /** The row of the expiry index for an entry that expires at a time, in milliseconds. */
    static byte[] expiryRow(long timeMs, byte[] entryKey) {
        byte[] row = new byte[TIME_BYTES + entryKey.length];
        for (int i = 0; i < TIME_BYTES; i++) {
            row[i] = (byte) (timeMs >>> (TIME_BYTES - 1 - i) * 8);
        }
        System.arraycopy(entryKey, 0, row, TIME_BYTES, entryKey.length);
        return row;
    }

    static long timeOf(byte[] expiryRow) {
        long timeMs = 0;
        for (int i = 0; i < TIME_BYTES; i++) {
            timeMs = timeMs << 8 | expiryRow[i] & 0xff;
        }
        return timeMs;
    }

    /** The entry's key in a row of the expiry index. */
    static byte[] entryKeyOf(byte[] expiryRow) {
        return Arrays.copyOfRange(expiryRow, TIME_BYTES, expiryRow.length);
    }

    private static void putSegment(byte[] key, int segment) {
        key[0] = (byte) (segment >>> 8);
        key[1] = (byte) segment;
    }
}
