package io.esker.kafka;

import java.nio.ByteBuffer;

/**
 * Keys of an index by time: those of the values with what they say of time in front. They are as long, and their order is that of the
 * time-ordered built-in stores, so that what closes at one moment is emitted in one order whatever the store.
 */
enum TimeFirst {
    /** Of {@code key, start, sequence number}: {@code start, key, sequence number}. */
    WINDOWS(Long.BYTES, Integer.BYTES),
    /** Of {@code key, end, start}: {@code end, start, key}. */
    SESSIONS(2 * Long.BYTES, 0);

    private final int timesLength;
    private final int tailLength;

    TimeFirst(int timesLength, int tailLength) {
        this.timesLength = timesLength;
        this.tailLength = tailLength;
    }

    /** The key in the index of the key of a value. */
    byte[] of(byte[] stored) {
        int keyLength = stored.length - timesLength - tailLength;
        return ByteBuffer.allocate(stored.length)
                .put(stored, keyLength, timesLength)
                .put(stored, 0, keyLength)
                .put(stored, keyLength + timesLength, tailLength)
                .array();
    }

    /** The key of the value of a key in the index. */
    byte[] stored(byte[] indexed) {
        int keyLength = indexed.length - timesLength - tailLength;
        return ByteBuffer.allocate(indexed.length)
                .put(indexed, timesLength, keyLength)
                .put(indexed, 0, timesLength)
                .put(indexed, timesLength + keyLength, tailLength)
                .array();
    }

    /** Where the entries of a time, which is not negative, begin in the index. */
    static byte[] bound(long timeMs) {
        return ByteBuffer.allocate(Long.BYTES).putLong(timeMs).array();
    }
}
