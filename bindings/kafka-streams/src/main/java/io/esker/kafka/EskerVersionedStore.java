package io.esker.kafka;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A versioned key-value store of bytes. The latest version of each key is in one keyspace and never expires; older ones are in the
 * {@link History}, by the time at which they ended to be valid.
 */
final class EskerVersionedStore implements VersionedKeyValueStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(EskerVersionedStore.class);

    private final TaskStore store;
    private final long retentionMs;
    private final History history;
    private Table latest;
    private InternalProcessorContext<?, ?> context;
    private Sensor expiredRecords;
    private boolean consistency;
    private volatile long streamTimeMs = ConsumerRecord.NO_TIMESTAMP;

    EskerVersionedStore(String name, long retentionMs, long segmentMs) {
        this.store = new TaskStore(name, Kind.VERSIONS, segmentMs);
        this.retentionMs = retentionMs;
        this.history = new History(store, new Segments(store, Format.PLAIN, retentionMs, segmentMs, null));
    }

    @Override
    public void init(StateStoreContext given, StateStore root) {
        context = ProcessorContextUtils.asInternalProcessorContext(given);
        expiredRecords = TaskMetrics.droppedRecordsSensor(
                Thread.currentThread().getName(), given.taskId().toString(), ProcessorContextUtils.metricsImpl(given));
        consistency = Queries.isConsistencyEnabled(given);
        open();
        StoreMetrics.register(given, store, "esker");
        given.register(root, (RecordBatchingStateRestoreCallback) this::restore);
    }

    private void open() {
        store.open(context, Format.PLAIN);
        latest = store.table("latest" + Format.PLAIN.suffix());
        history.open();
    }

    private void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        if (records.isEmpty()) return;
        // One that was closed has tables in a store that is gone.
        if (!store.isOpen()) open();
        long endMs = streamTimeMs;
        for (ConsumerRecord<byte[], byte[]> record : records) endMs = Math.max(endMs, record.timestamp());
        synchronized (store) {
            // What a record means depends on the history of its time, also on what will have expired at the end of the batch.
            history.passTo(endMs);
            store.setRestoring(true);
            try {
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (record.timestamp() < streamTimeMs - retentionMs) continue; // it was not put in the first place
                    streamTimeMs = Math.max(streamTimeMs, record.timestamp());
                    history.expire(streamTimeMs);
                    synchronized (store.position()) {
                        insert(Bytes.wrap(record.key()), record.value(), record.timestamp(), streamTimeMs);
                        ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(record, consistency, store.position());
                    }
                    if (!store.isFull()) continue;
                    // Behind a whole record, with its offset: half of one could not be restored once more.
                    history.keepPassing();
                    Restoring.batch(store, List.of(record), batch -> {});
                }
            } finally {
                store.setRestoring(false);
                history.passed(endMs);
            }
            Restoring.batch(store, records, batch -> {});
        }
    }

    @Override
    public long put(Bytes key, byte[] value, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (store) {
            store.checkOpen();
            if (isTooLate(timestamp)) {
                store.notePosition();
                return PUT_RETURN_CODE_NOT_PUT;
            }
            streamTimeMs = Math.max(streamTimeMs, timestamp);
            synchronized (store.position()) { // which the first of several writes notes: no query begins between them
                long validTo = insert(key, value, timestamp, streamTimeMs);
                store.notePosition();
                return validTo;
            }
        }
    }

    @Override
    public VersionedRecord<byte[]> delete(Bytes key, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (store) {
            store.checkOpen();
            if (isTooLate(timestamp)) return null;
            VersionedRecord<byte[]> before = get(key, timestamp);
            streamTimeMs = Math.max(streamTimeMs, timestamp);
            synchronized (store.position()) {
                insert(key, null, timestamp, streamTimeMs);
                store.notePosition();
            }
            return before;
        }
    }

    /** Whether a write comes after the history that it belongs into is gone. */
    private boolean isTooLate(long timestamp) {
        if (timestamp >= streamTimeMs - retentionMs) return false;
        expiredRecords.record(1.0d, context.currentSystemTimeMs());
        LOG.debug("Store {} skips a write of {}, before its history", name(), timestamp);
        return true;
    }

    /**
     * Adds a version, or a deletion for a null value.
     *
     * @return the time at which it ends to be valid, or the code that says that there is none
     */
    private long insert(Bytes key, byte[] value, long timeMs, long nowMs) {
        int most = TaskStore.MOST_KEY_BYTES - History.ADDED_KEY_BYTES;
        if (key.get().length > most) { // or it could be put, and not be put once more
            if (value == null) return PUT_RETURN_CODE_VALID_TO_UNDEFINED;
            throw new IllegalArgumentException("a key of a versioned store has at most " + most + " bytes, this one " + key.get().length
                    + ": shorten it, or keep it in a store without versions, or in one of RocksDB");
        }
        history.dropExpired(nowMs);
        VersionedRecord<byte[]> newest = latestOf(key);
        if (newest != null && timeMs >= newest.timestamp()) {
            if (timeMs > newest.timestamp()) {
                history.put(key, newest.value(), newest.timestamp(), timeMs, nowMs);
            } else if (value == null) {
                history.markDeleted(key, timeMs, nowMs);
            }
            putLatest(key, value, timeMs);
            return PUT_RETURN_CODE_VALID_TO_UNDEFINED;
        }
        History.Version at = history.around(key, timeMs);
        if (at != null && at.isValidAt(timeMs)) {
            history.put(key, value, timeMs, at.validTo(), nowMs);
            history.cut(key, at, timeMs, nowMs);
            return at.validTo();
        }
        if (at == null && newest == null) {
            if (value == null) {
                history.markDeleted(key, timeMs, nowMs);
            } else {
                putLatest(key, value, timeMs);
            }
            return PUT_RETURN_CODE_VALID_TO_UNDEFINED;
        }
        long validTo = at != null ? at.validFrom() : newest.timestamp();
        if (value == null) {
            history.markDeleted(key, timeMs, nowMs);
        } else {
            history.put(key, value, timeMs, validTo, nowMs);
        }
        return validTo;
    }

    private void putLatest(Bytes key, byte[] value, long timeMs) {
        store.put(latest, key.get(), value == null ? null
                : ByteBuffer.allocate(Long.BYTES + value.length).putLong(timeMs).put(value).array());
    }

    private VersionedRecord<byte[]> latestOf(Bytes key) {
        byte[] stored = store.get(latest, key.get());
        if (stored == null) return null;
        return new VersionedRecord<>(Arrays.copyOfRange(stored, Long.BYTES, stored.length), ByteBuffer.wrap(stored).getLong());
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        return latestOf(key);
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key, long asOfTimestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        while (true) {
            long cuts = history.cuts();
            VersionedRecord<byte[]> found = find(key, asOfTimestamp);
            // One that was cut meanwhile may have been passed in each of its places.
            if (found != null || cuts == history.cuts()) return found;
        }
    }

    private VersionedRecord<byte[]> find(Bytes key, long asOfTimestamp) {
        VersionedRecord<byte[]> newest = latestOf(key);
        if (newest != null && newest.timestamp() <= asOfTimestamp) return newest;
        if (asOfTimestamp < streamTimeMs - retentionMs) return null;
        History.Version at = history.around(key, asOfTimestamp);
        return at != null && at.isValidAt(asOfTimestamp) && at.value() != null ? at.asRecord() : null;
    }

    /** The versions of a key that were valid at some time between two, both included, as of now. */
    VersionedRecordIterator<byte[]> get(Bytes key, long fromTimestamp, long toTimestamp, ResultOrder order) {
        List<VersionedRecord<byte[]>> versions = new ArrayList<>();
        synchronized (store) {
            if (toTimestamp >= streamTimeMs - retentionMs) versions.addAll(history.between(key, fromTimestamp, toTimestamp));
            VersionedRecord<byte[]> newest = latestOf(key);
            if (newest != null && newest.timestamp() <= toTimestamp) versions.add(newest);
        }
        if (order != ResultOrder.ASCENDING) Collections.reverse(versions);
        return new Versions(versions.iterator());
    }

    @Override
    @SuppressWarnings("unchecked") // a query's type says what its result is
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        if (!(query instanceof MultiVersionedKeyQuery<?, ?>)) {
            return StoreQueryUtils.handleBasicQueries(query, bound, config, this, store.position(), context);
        }
        long start = System.nanoTime();
        MultiVersionedKeyQuery<Bytes, byte[]> versions = (MultiVersionedKeyQuery<Bytes, byte[]>) query;
        synchronized (store) {
            QueryResult<R> result;
            int partition = context.taskId().partition();
            if (StoreQueryUtils.isPermitted(store.position(), bound, partition)) {
                result = (QueryResult<R>) QueryResult.forResult(get(versions.key(), versions.fromTime().get().toEpochMilli(),
                        versions.toTime().get().toEpochMilli(), versions.resultOrder()));
            } else {
                result = QueryResult.notUpToBound(store.position(), bound, partition);
            }
            if (config.isCollectExecutionInfo()) {
                result.addExecutionInfo("Handled in " + getClass() + " in " + (System.nanoTime() - start) + "ns");
            }
            result.setPosition(store.position().copy());
            return result;
        }
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

    /** Versions that were read. */
    private record Versions(Iterator<VersionedRecord<byte[]>> versions) implements VersionedRecordIterator<byte[]> {
        @Override
        public boolean hasNext() {
            return versions.hasNext();
        }

        @Override
        public VersionedRecord<byte[]> next() {
            return versions.next();
        }

        @Override
        public void close() {}
    }
}
