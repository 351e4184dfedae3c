package io.esker.kafka;

import java.time.Duration;
import java.util.Objects;

import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Suppliers of persistent state stores that keep their data in Esker. They take the place of those that
 * {@link org.apache.kafka.streams.state.Stores} has for RocksDB, in {@code Materialized.as}, {@code StreamJoined} and the builders
 * of {@code Stores}. {@link EskerDslStoreSuppliers} does it for a whole topology.
 *
 * <p>The settings are in {@link EskerStreamsConfig}.
 */
public final class EskerStores {
    private EskerStores() {}

    /**
     * A key-value store.
     *
     * @param name the name of the store
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier persistentKeyValueStore(String name) {
        return new KeyValueSupplier(named(name), Format.PLAIN);
    }

    /**
     * A key-value store whose values have timestamps. A store that was made by {@link #persistentKeyValueStore} is taken over when it
     * is opened.
     *
     * @param name the name of the store
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier persistentTimestampedKeyValueStore(String name) {
        return new KeyValueSupplier(named(name), Format.TIMESTAMPED);
    }

    /**
     * A key-value store whose values have timestamps and the headers of their records. A store of the two simpler kinds is taken over
     * when it is opened.
     *
     * @param name the name of the store
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier persistentTimestampedKeyValueStoreWithHeaders(String name) {
        return new KeyValueSupplier.Headers(named(name));
    }

    /**
     * A versioned key-value store.
     *
     * @param name the name of the store
     * @param historyRetention for how long old versions can be asked for, and writes may be late; not negative
     * @return its supplier
     */
    public static VersionedBytesStoreSupplier persistentVersionedKeyValueStore(String name, Duration historyRetention) {
        long retentionMs = millis(historyRetention, "historyRetention");
        return new KeyValueSupplier.Versioned(named(name), retentionMs, segmentMs(retentionMs));
    }

    /**
     * A versioned key-value store.
     *
     * @param name the name of the store
     * @param historyRetention for how long old versions can be asked for, and writes may be late; not negative
     * @param segmentInterval in steps of how much time old versions are dropped; at least a millisecond
     * @return its supplier
     */
    public static VersionedBytesStoreSupplier persistentVersionedKeyValueStore(
            String name, Duration historyRetention, Duration segmentInterval) {
        long segmentMs = millis(segmentInterval, "segmentInterval");
        if (segmentMs < 1) throw new IllegalArgumentException("segmentInterval cannot be zero or negative");
        return new KeyValueSupplier.Versioned(named(name), millis(historyRetention, "historyRetention"), segmentMs);
    }

    /**
     * A window store.
     *
     * @param name the name of the store
     * @param retentionPeriod for how long windows are kept at least; not shorter than a window
     * @param windowSize the length of a window
     * @param retainDuplicates whether a window keeps all its values, as joins need it; then null values are ignored
     * @return its supplier
     */
    public static WindowBytesStoreSupplier persistentWindowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return window(name, Format.PLAIN, retentionPeriod, windowSize, retainDuplicates, false);
    }

    /**
     * A window store whose values have timestamps. The parameters are those of {@link #persistentWindowStore}.
     *
     * @param name the name of the store
     * @param retentionPeriod for how long windows are kept at least
     * @param windowSize the length of a window
     * @param retainDuplicates whether a window keeps all its values
     * @return its supplier
     */
    public static WindowBytesStoreSupplier persistentTimestampedWindowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return window(name, Format.TIMESTAMPED, retentionPeriod, windowSize, retainDuplicates, false);
    }

    /**
     * A window store whose values have timestamps and headers. The parameters are those of {@link #persistentWindowStore}.
     *
     * @param name the name of the store
     * @param retentionPeriod for how long windows are kept at least
     * @param windowSize the length of a window
     * @param retainDuplicates whether a window keeps all its values
     * @return its supplier
     */
    public static WindowBytesStoreSupplier persistentTimestampedWindowStoreWithHeaders(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return window(name, Format.HEADERS, retentionPeriod, windowSize, retainDuplicates, false);
    }

    /**
     * A session store.
     *
     * @param name the name of the store
     * @param retentionPeriod for how long sessions are kept at least, after they ended; not negative
     * @return its supplier
     */
    public static SessionBytesStoreSupplier persistentSessionStore(String name, Duration retentionPeriod) {
        return new SessionSupplier(named(name), millis(retentionPeriod, "retentionPeriod"), false);
    }

    /**
     * A session store whose values have headers.
     *
     * @param name the name of the store
     * @param retentionPeriod for how long sessions are kept at least, after they ended; not negative
     * @return its supplier
     */
    public static SessionBytesStoreSupplier persistentSessionStoreWithHeaders(String name, Duration retentionPeriod) {
        return new SessionSupplier.Headers(named(name), millis(retentionPeriod, "retentionPeriod"), false);
    }

    /** A window store of any kind; with an index by time where results are emitted as windows close. */
    static WindowBytesStoreSupplier window(
            String name, Format format, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates, boolean indexed) {
        long retentionMs = millis(retentionPeriod, "retentionPeriod");
        long windowMs = millis(windowSize, "windowSize");
        if (windowMs > retentionMs) {
            throw new IllegalArgumentException("The retention period of the window store " + name
                    + " must be no smaller than its window size. Got size=[" + windowSize + "], retention=[" + retentionPeriod + "]");
        }
        return format == Format.HEADERS
                ? new WindowSupplier.Headers(named(name), retentionMs, windowMs, retainDuplicates, indexed)
                : new WindowSupplier(named(name), format, retentionMs, windowMs, retainDuplicates, indexed);
    }

    /** A session store of any kind. */
    static SessionBytesStoreSupplier session(String name, Format format, Duration retentionPeriod, boolean indexed) {
        long retentionMs = millis(retentionPeriod, "retentionPeriod");
        return format == Format.HEADERS
                ? new SessionSupplier.Headers(named(name), retentionMs, indexed)
                : new SessionSupplier(named(name), retentionMs, indexed);
    }

    private static String named(String name) {
        return Objects.requireNonNull(name, "name cannot be null");
    }

    private static long millis(Duration duration, String what) {
        Objects.requireNonNull(duration, what + " cannot be null");
        long millis;
        try {
            millis = duration.toMillis();
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(what + " cannot be told in milliseconds: " + duration, e);
        }
        if (millis < 0) throw new IllegalArgumentException(what + " cannot be negative");
        return millis;
    }

    /** Short histories go in few steps, long ones in many, so that a segment is worth its files and little is kept for too long. */
    private static long segmentMs(long retentionMs) {
        if (retentionMs <= 60_000L) return Math.max(retentionMs / 3, 2_000L);
        if (retentionMs <= 300_000L) return Math.max(retentionMs / 5, 20_000L);
        if (retentionMs <= 3_600_000L) return Math.max(retentionMs / 12, 60_000L);
        return Math.max(retentionMs / 24, 300_000L);
    }
}
