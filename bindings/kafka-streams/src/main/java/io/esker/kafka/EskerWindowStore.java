package io.esker.kafka;

import java.util.Objects;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.apache.kafka.streams.state.internals.WindowKeySchema;

/** A window store of bytes. Within a segment of time entries are in the order of keys, then of times. */
class EskerWindowStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    private final boolean retainDuplicates;
    private final long windowMs;
    /** Numbers the values of one window, where they are all kept. */
    private int duplicate;

    /**
     * @param indexed whether an index by time is kept, which makes {@link #fetchAll} read what it returns and no more
     */
    EskerWindowStore(WindowSupplier supplier, boolean indexed) {
        this(supplier, Format.PLAIN, indexed);
    }

    private EskerWindowStore(WindowSupplier supplier, Format format, boolean indexed) {
        super(supplier.name(), format, supplier.retentionPeriod(), supplier.segmentIntervalMs(), new WindowKeySchema(), false, indexed);
        this.retainDuplicates = supplier.retainDuplicates();
        this.windowMs = supplier.windowSize();
    }

    /** With values that begin with a timestamp. */
    static final class Timestamped extends EskerWindowStore implements TimestampedBytesStore {
        Timestamped(WindowSupplier supplier, boolean indexed) {
            super(supplier, Format.TIMESTAMPED, indexed);
        }
    }

    /** With values that begin with headers and a timestamp. */
    static final class Headers extends EskerWindowStore implements TimestampedBytesStore, HeadersBytesStore {
        Headers(WindowSupplier supplier, boolean indexed) {
            super(supplier, Format.HEADERS, indexed);
        }
    }

    @Override
    public void put(Bytes key, byte[] value, long windowStartTimestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        if (value == null && retainDuplicates) return; // which of the duplicates it would delete nobody can say
        if (retainDuplicates) duplicate = (duplicate + 1) & 0x7fffffff;
        putStored(WindowKeySchema.toStoreKeyBinary(key, windowStartTimestamp, duplicate), value);
    }

    @Override
    public byte[] fetch(Bytes key, long timeMs) {
        Objects.requireNonNull(key, "key cannot be null");
        return getStored(WindowKeySchema.toStoreKeyBinary(key, timeMs, duplicate));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long timeFrom, long timeTo) {
        Objects.requireNonNull(key, "key cannot be null");
        return new Values(fetchStored(key, timeFrom, timeTo, true));
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long timeFrom, long timeTo) {
        Objects.requireNonNull(key, "key cannot be null");
        return new Values(fetchStored(key, timeFrom, timeTo, false));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return new Windows(fetchStored(keyFrom, keyTo, timeFrom, timeTo, true));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return new Windows(fetchStored(keyFrom, keyTo, timeFrom, timeTo, false));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return new Windows(fetchAllStored(0, Long.MAX_VALUE, true));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return new Windows(fetchAllStored(0, Long.MAX_VALUE, false));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long timeFrom, long timeTo) {
        return new Windows(fetchAllStored(timeFrom, timeTo, true));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long timeFrom, long timeTo) {
        return new Windows(fetchAllStored(timeFrom, timeTo, false));
    }

    /** Start times and values. */
    private static final class Values implements WindowStoreIterator<byte[]> {
        private final KeyValueIterator<Bytes, byte[]> stored;

        Values(KeyValueIterator<Bytes, byte[]> stored) {
            this.stored = stored;
        }

        @Override
        public Long peekNextKey() {
            return Keys.windowStartMs(stored.peekNextKey());
        }

        @Override
        public boolean hasNext() {
            return stored.hasNext();
        }

        @Override
        public KeyValue<Long, byte[]> next() {
            KeyValue<Bytes, byte[]> entry = stored.next();
            return new KeyValue<>(Keys.windowStartMs(entry.key), entry.value);
        }

        @Override
        public void close() {
            stored.close();
        }
    }

    /** Windows and values. */
    private final class Windows implements KeyValueIterator<Windowed<Bytes>, byte[]> {
        private final KeyValueIterator<Bytes, byte[]> stored;

        Windows(KeyValueIterator<Bytes, byte[]> stored) {
            this.stored = stored;
        }

        @Override
        public Windowed<Bytes> peekNextKey() {
            return Keys.window(stored.peekNextKey(), windowMs);
        }

        @Override
        public boolean hasNext() {
            return stored.hasNext();
        }

        @Override
        public KeyValue<Windowed<Bytes>, byte[]> next() {
            KeyValue<Bytes, byte[]> entry = stored.next();
            return new KeyValue<>(Keys.window(entry.key, windowMs), entry.value);
        }

        @Override
        public void close() {
            stored.close();
        }
    }
}
