package io.esker.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/** How keys of stores are put together and taken apart. Those of windows and sessions are the ones of the changelog. */
final class Keys {
    /** What is logged when a range ends before it begins: the words of the built-in stores, which Kafka's suites look for. */
    static final String INVALID_RANGE = "Returning empty iterator for fetch with invalid key range: from > to. "
            + "This may be due to range arguments set in the wrong order, "
            + "or serdes that don't preserve ordering when lexicographically comparing the serialized bytes. "
            + "Note that the built-in numerical serdes do not follow this for negative numbers";

    private static final int SEQUENCE_BYTES = 4;
    /** By how much the key of a window is longer. */
    static final int WINDOW_SUFFIX_BYTES = Long.BYTES + SEQUENCE_BYTES;

    private Keys() {}

    /** The least bytes that are greater than all that begin with a prefix; null when there are none. */
    static byte[] afterPrefix(byte[] prefix) {
        int length = prefix.length;
        while (length > 0 && prefix[length - 1] == (byte) 0xff) length--;
        if (length == 0) return null;
        byte[] after = Arrays.copyOf(prefix, length);
        after[length - 1]++;
        return after;
    }

    /** The window of a key that is followed by its start, 8 bytes, and a sequence number, 4. */
    static Windowed<Bytes> window(Bytes stored, long sizeMs) {
        byte[] bytes = stored.get();
        long startMs = windowStartMs(stored);
        long endMs = startMs + sizeMs;
        return new Windowed<>(Bytes.wrap(Arrays.copyOf(bytes, bytes.length - WINDOW_SUFFIX_BYTES)),
                new TimeWindow(startMs, endMs < 0 ? Long.MAX_VALUE : endMs));
    }

    static long windowStartMs(Bytes stored) {
        return ByteBuffer.wrap(stored.get()).getLong(stored.get().length - WINDOW_SUFFIX_BYTES);
    }
}
