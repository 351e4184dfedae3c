package io.esker;

import java.nio.ByteBuffer;
import java.util.Objects;

/** Checks of keys and values. */
final class Bytes {
    static final byte[] NONE = {};

    private Bytes() {}

    static void checkKey(byte[] key) {
        checkKeyLength(Objects.requireNonNull(key, "key").length);
    }

    static void checkKeyLength(int length) {
        if (length > Esker.MAX_KEY_LENGTH) {
            throw new IllegalArgumentException(
                    "a key has at most " + Esker.MAX_KEY_LENGTH + " bytes, and this one has " + length);
        }
    }

    static void checkValue(byte[] value) {
        checkValueLength(Objects.requireNonNull(value, "value").length);
    }

    static void checkValueLength(int length) {
        if (length > Esker.MAX_VALUE_LENGTH) {
            throw new IllegalArgumentException(
                    "a value has at most " + Esker.MAX_VALUE_LENGTH + " bytes, and this one has " + length);
        }
    }

    /** The bytes of a buffer on the heap whose array is hidden. */
    private static byte[] copyOf(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(buffer.position(), bytes);
        return bytes;
    }

    /**
     * The part of a buffer from its position to its limit, as the library is given it: in an array, or from the address of a
     * direct buffer. Position and limit are asked once, and both lie within the buffer whatever other threads do to them; so
     * does the part.
     *
     * @param array the array, if the buffer has one
     * @param direct the buffer, if it is direct
     * @param at where the part begins in either
     * @param position the position that the buffer had
     * @param length how long the part is
     */
    record Part(byte[] array, ByteBuffer direct, int at, int position, int length) {
        static Part of(ByteBuffer buffer) {
            int position = buffer.position();
            int length = Math.max(0, buffer.limit() - position);
            if (buffer.isDirect()) {
                // The memory of a buffer over a closed arena is gone, which its own methods notice and native code does not.
                if (length > 0) buffer.get(position);
                return new Part(null, buffer, position, position, length);
            }
            if (buffer.hasArray()) {
                return new Part(buffer.array(), null, buffer.arrayOffset() + position, position, length);
            }
            byte[] copy = copyOf(buffer);
            return new Part(copy, null, 0, position, copy.length);
        }

        static Part ofKey(ByteBuffer key) {
            Part part = of(key);
            checkKeyLength(part.length);
            return part;
        }

        static Part ofValue(ByteBuffer value) {
            Part part = of(value);
            checkValueLength(part.length);
            return part;
        }
    }
}
