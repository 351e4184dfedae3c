package io.esker.kafka;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A key-value store of bytes. Iterators show it as it was when they were made. */
class EskerKeyValueStore implements KeyValueStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(EskerKeyValueStore.class);

    private final TaskStore store;
    private final Format format;
    private Table values;
    private StateStoreContext context;
    private boolean consistency;

    /** With values as they are. */
    EskerKeyValueStore(String name) {
        this(name, Format.PLAIN);
    }

    private EskerKeyValueStore(String name, Format format) {
        this.store = new TaskStore(name, Kind.VALUES, 0);
        this.format = format;
    }

    /** With values that begin with a timestamp. */
    static final class Timestamped extends EskerKeyValueStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name, Format.TIMESTAMPED);
        }
    }

    /** With values that begin with headers and a timestamp. As with the built-in ones, interactive queries are not answered here. */
    static final class Headers extends EskerKeyValueStore implements HeadersBytesStore {
        Headers(String name) {
            super(name, Format.HEADERS);
        }

        @Override
        public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
            return Queries.unknown(query, config, this, getPosition());
        }
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        this.context = context;
        open();
        consistency = Queries.isConsistencyEnabled(context);
        StoreMetrics.register(context, store, "esker");
        context.register(root, (RecordBatchingStateRestoreCallback) this::restore);
    }

    private void open() {
        store.open(context, format);
        values = store.table("values" + format.suffix());
    }

    private void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        if (records.isEmpty()) return;
        // One that was closed has a table in a store that is gone.
        open();
        Restoring.batch(store, records, batch -> {
            for (ConsumerRecord<byte[], byte[]> record : records) {
                ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(record, consistency, store.position());
                store.add(batch, values, record.key(), record.value());
            }
        });
    }

    @Override
    public String name() {
        return store.name();
    }

    @Override
    public boolean persistent() {
        return true;
    }

    @Override
    public boolean isOpen() {
        return store.isOpen();
    }

    @Override
    public byte[] get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        return store.get(values, key.get());
    }

    @Override
    public void put(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        store.put(values, key.get(), value);
    }

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (store) {
            byte[] before = get(key);
            if (before == null && value != null) put(key, value);
            return before;
        }
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        for (KeyValue<Bytes, byte[]> entry : entries) Objects.requireNonNull(entry.key, "key cannot be null");
        synchronized (store) {
            for (KeyValue<Bytes, byte[]> entry : entries) put(entry.key, entry.value);
        }
    }

    @Override
    public byte[] delete(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (store) {
            byte[] before = get(key);
            put(key, null);
            return before;
        }
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return range(null, null, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return range(null, null, false);
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean forward) {
        store.checkOpen();
        if (from != null && to != null && from.compareTo(to) > 0) {
            LOG.warn(Keys.INVALID_RANGE);
            return MergedIterator.empty();
        }
        return iterate(from == null ? null : from.get(), to == null ? null : to.get(), true, forward);
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS serializer) {
        store.checkOpen();
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        byte[] from = serializer.serialize(null, prefix);
        return iterate(from, Keys.afterPrefix(from), false, true);
    }

    private KeyValueIterator<Bytes, byte[]> iterate(byte[] from, byte[] to, boolean toInclusive, boolean forward) {
        return store.reading("opening an iterator", () -> values.iterate(from, to, toInclusive, forward));
    }

    @Override
    public long approximateNumEntries() {
        store.checkOpen();
        return store.reading("counting entries", values::approximateEntries);
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        return StoreQueryUtils.handleBasicQueries(query, bound, config, this, store.position(), context);
    }

    @Override
    public Position getPosition() {
        return store.position();
    }

    @Override
    public void commit(Map<TopicPartition, Long> changelogOffsets) {
        store.commit(changelogOffsets);
    }

    @Override
    @SuppressWarnings("deprecation") // to be asked until Kafka Streams takes it for granted
    public boolean managesOffsets() {
        return true;
    }

    @Override
    public Long committedOffset(TopicPartition partition) {
        return store.committedOffset(partition);
    }

    @Override
    public void close() {
        store.close();
    }
}
