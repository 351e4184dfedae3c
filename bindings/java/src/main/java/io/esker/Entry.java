package io.esker;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.Objects;

/**
 * A key and its value. Two are equal when their bytes are. The arrays are not copied.
 *
 * @param key the key
 * @param value the value; empty where a walk leaves values out
 */
public record Entry(byte[] key, byte[] value) {
    /**
     * Takes both as they are.
     *
     * @param key the key
     * @param value the value
     * @throws NullPointerException if one is null
     */
    public Entry {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Entry that && Arrays.equals(key, that.key) && Arrays.equals(value, that.value);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(key) + Arrays.hashCode(value);
    }

    /** The key in hexadecimal digits, and how long the value is. */
    @Override
    public String toString() {
        return "Entry[key=" + HexFormat.of().formatHex(key) + ", value=" + value.length + " bytes]";
    }
}
