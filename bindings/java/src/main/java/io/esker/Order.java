package io.esker;

import java.util.Arrays;
import java.util.Objects;

/** The order of a keyspace's keys. It is fixed when the keyspace is made. */
public enum Order {
    /** By unsigned bytes; of two keys of which one begins the other, the shorter is first. */
    BYTEWISE,
    /** The same backwards: the greatest key is first. */
    REVERSE;

    /**
     * Compares two keys.
     *
     * @param a a key
     * @param b another
     * @return less than 0 when {@code a} comes first, more when {@code b} does, 0 when they are equal
     */
    public int compare(byte[] a, byte[] b) {
        Objects.requireNonNull(a, "a");
        Objects.requireNonNull(b, "b");
        int bytewise = Arrays.compareUnsigned(a, b);
        return this == BYTEWISE ? bytewise : -bytewise;
    }
}
