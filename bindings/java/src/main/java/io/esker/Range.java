package io.esker;

import java.util.Arrays;
import java.util.Objects;

/**
 * A range of keys, in the order of the keyspace that it is used with. Immutable.
 */
public final class Range {
    private static final Range ALL = new Range(null, null, true, null, false);

    private final byte[] prefix;
    private final byte[] from;
    private final boolean fromInclusive;
    private final byte[] to;
    private final boolean toInclusive;

    private Range(byte[] prefix, byte[] from, boolean fromInclusive, byte[] to, boolean toInclusive) {
        this.prefix = prefix;
        this.from = from;
        this.fromInclusive = fromInclusive;
        this.to = to;
        this.toInclusive = toInclusive;
    }

    /**
     * All keys.
     *
     * @return that range
     */
    public static Range all() {
        return ALL;
    }

    /**
     * The keys that begin with some bytes, whatever the order.
     *
     * @param prefix the bytes; none stands for all keys
     * @return that range
     */
    public static Range prefix(byte[] prefix) {
        Objects.requireNonNull(prefix, "prefix");
        return prefix.length == 0 ? ALL : new Range(prefix.clone(), null, true, null, false);
    }

    /**
     * The keys from one to another, without that.
     *
     * @param from the first key; null for no bound
     * @param to the key before which the range ends; null for no bound
     * @return that range
     */
    public static Range of(byte[] from, byte[] to) {
        return between(from, true, to, false);
    }

    /**
     * The keys from one to another.
     *
     * @param from where the range begins; null for no bound
     * @param fromInclusive whether {@code from} is in it
     * @param to where the range ends; null for no bound
     * @param toInclusive whether {@code to} is in it
     * @return that range
     */
    public static Range between(byte[] from, boolean fromInclusive, byte[] to, boolean toInclusive) {
        return new Range(null, from == null ? null : from.clone(), fromInclusive, to == null ? null : to.clone(), toInclusive);
    }

    /**
     * The keys from one on.
     *
     * @param from the first key
     * @return that range
     */
    public static Range atLeast(byte[] from) {
        return of(Objects.requireNonNull(from, "from"), null);
    }

    /**
     * The keys before one.
     *
     * @param to the key before which the range ends
     * @return that range
     */
    public static Range before(byte[] to) {
        return of(null, Objects.requireNonNull(to, "to"));
    }

    /** The same with bounds only, under an order. */
    Range resolve(Order order) {
        if (prefix == null) return this;
        byte[] end = after(prefix);
        return order == Order.BYTEWISE
                ? new Range(null, prefix, true, end, false)
                : new Range(null, end, false, prefix, true);
    }

    /** The least bytes that are greater than all that begin with {@code prefix}; null when there are none. */
    private static byte[] after(byte[] prefix) {
        int length = prefix.length;
        while (length > 0 && prefix[length - 1] == (byte) 0xff) length--;
        if (length == 0) return null;
        byte[] after = Arrays.copyOf(prefix, length);
        after[length - 1]++;
        return after;
    }

    byte[] from() {
        return from;
    }

    boolean fromInclusive() {
        return fromInclusive;
    }

    byte[] to() {
        return to;
    }

    boolean toInclusive() {
        return toInclusive;
    }

    /** Whether a key lies behind the beginning. Of a resolved range. */
    boolean begins(Order order, byte[] key) {
        if (from == null) return true;
        int compared = order.compare(key, from);
        return fromInclusive ? compared >= 0 : compared > 0;
    }

    /** Whether a key lies before the end. Of a resolved range. */
    boolean ends(Order order, byte[] key) {
        if (to == null) return true;
        int compared = order.compare(key, to);
        return toInclusive ? compared <= 0 : compared < 0;
    }
}
