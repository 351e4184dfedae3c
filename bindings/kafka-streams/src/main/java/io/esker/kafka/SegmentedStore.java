package io.esker.kafka;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.function.Function;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.internals.HasNextCondition;
import org.apache.kafka.streams.state.internals.SegmentedBytesStore.KeySchema;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What windows and sessions have in common: values under keys with a time, in segments that expire as the time of the stream goes on.
 * Segments are those that the caches of Kafka Streams expect.
 *
 * <p>As with the built-in stores, a closed one has no segments: iterators over it are empty, and those that are open end. All else
 * throws.
 */
abstract class SegmentedStore implements StateStore {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentedStore.class);

    private final TaskStore store;
    private final Format format;
    private final long retentionMs;
    private final KeySchema schema;
    private final boolean sessions;
    private final Segments segments;
    private InternalProcessorContext<?, ?> context;
    private Sensor expiredRecords;
    private boolean consistency;
    private volatile long streamTimeMs = ConsumerRecord.NO_TIMESTAMP;

    SegmentedStore(String name, Format format, long retentionMs, long segmentMs, KeySchema schema, boolean sessions, boolean indexed) {
        this.store = new TaskStore(name, sessions ? Kind.SESSIONS : Kind.WINDOWS, segmentMs);
        this.format = format;
        this.retentionMs = retentionMs;
        this.schema = schema;
        this.sessions = sessions;
        this.segments = new Segments(store, format, retentionMs, segmentMs,
                indexed ? sessions ? TimeFirst.SESSIONS : TimeFirst.WINDOWS : null);
    }

    @Override
    public void init(StateStoreContext given, StateStore root) {
        context = ProcessorContextUtils.asInternalProcessorContext(given);
        expiredRecords = TaskMetrics.droppedRecordsSensor(
                Thread.currentThread().getName(), given.taskId().toString(), ProcessorContextUtils.metricsImpl(given));
        consistency = Queries.isConsistencyEnabled(given);
        store.open(given, format);
        segments.open();
        segments.dropExpired(streamTimeMs);
        StoreMetrics.register(given, store, sessions ? "esker-session" : "esker-window");
        given.register(root, (RecordBatchingStateRestoreCallback) this::restore);
    }

    private void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        if (records.isEmpty()) return;
        if (!store.isOpen()) {
            store.open(context, format);
            segments.open();
        }
        // Segments that will have expired at the end of the batch are not made.
        for (ConsumerRecord<byte[], byte[]> record : records) {
            streamTimeMs = Math.max(streamTimeMs, schema.segmentTimestamp(Bytes.wrap(record.key())));
        }
        // What expires goes after the batch, and what is made is made before it: the batch is not to name what is dropped meanwhile.
        segments.expire(streamTimeMs);
        for (ConsumerRecord<byte[], byte[]> record : records) {
            segments.live(segments.id(schema.segmentTimestamp(Bytes.wrap(record.key()))), streamTimeMs);
        }
        Restoring.batch(store, records, batch -> {
            for (ConsumerRecord<byte[], byte[]> record : records) {
                Segments.Segment segment = segments.of(schema.segmentTimestamp(Bytes.wrap(record.key())));
                if (segment == null) continue;
                ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(record, consistency, store.position());
                segments.add(batch, segment, record.key(), record.value());
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

    /** Adds a write, unless its time expired; a null value deletes. */
    void putStored(Bytes key, byte[] value) {
        store.checkOpen();
        long timeMs = schema.segmentTimestamp(key);
        streamTimeMs = Math.max(streamTimeMs, timeMs);
        Segments.Segment segment = segments.live(segments.id(timeMs), streamTimeMs);
        if (segment == null) {
            expiredRecords.record(1.0d, context.currentSystemTimeMs());
            return;
        }
        segments.put(segment, key.get(), value);
    }

    /** Deletes, where the segment of the key is there. */
    void removeStored(Bytes key) {
        store.checkOpen();
        long timeMs = schema.segmentTimestamp(key);
        streamTimeMs = Math.max(streamTimeMs, timeMs);
        Segments.Segment segment = segments.of(timeMs);
        if (segment != null) segments.put(segment, key.get(), null);
    }

    /** The value of a key; null when there is none or it expired. */
    byte[] getStored(Bytes key) {
        store.checkOpen();
        long timeMs = schema.segmentTimestamp(key);
        if (timeMs < earliestMs()) return null;
        Segments.Segment segment = segments.of(timeMs);
        return segment == null ? null : store.get(segment.values(), key.get());
    }

    /** The earliest time that did not expire yet. */
    private long earliestMs() {
        return streamTimeMs - retentionMs + 1;
    }

    /** The entries of one key between two times. */
    KeyValueIterator<Bytes, byte[]> fetchStored(Bytes key, long fromMs, long toMs, boolean forward) {
        long from = Math.max(fromMs, earliestMs());
        if (isOver(from, toMs)) return MergedIterator.empty();
        return over(searched(from, toMs, forward), schema.lowerRangeFixedSize(key, from), schema.upperRangeFixedSize(key, toMs), forward,
                schema.hasNextCondition(key, key, from, toMs, forward));
    }

    /** The entries of keys between two, null for none, and between two times. */
    KeyValueIterator<Bytes, byte[]> fetchStored(Bytes keyFrom, Bytes keyTo, long fromMs, long toMs, boolean forward) {
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            LOG.warn(Keys.INVALID_RANGE);
            return MergedIterator.empty();
        }
        long from = Math.max(fromMs, earliestMs());
        if (isOver(from, toMs)) return MergedIterator.empty();
        return over(searched(from, toMs, forward),
                keyFrom == null ? null : schema.lowerRange(keyFrom, from), keyTo == null ? null : schema.upperRange(keyTo, toMs), forward,
                schema.hasNextCondition(keyFrom, keyTo, from, toMs, forward));
    }

    /** All entries between two times: of windows in the order of time where there is an index. */
    KeyValueIterator<Bytes, byte[]> fetchAllStored(long fromMs, long toMs, boolean forward) {
        long from = Math.max(fromMs, earliestMs());
        if (isOver(from, toMs)) return MergedIterator.empty();
        if (segments.isIndexed() && !sessions) return byTime(from, toMs, forward);
        return over(searched(from, toMs, forward), null, null, forward, schema.hasNextCondition(null, null, from, toMs, forward));
    }

    /** All entries whose time lies between two, in the order of time where there is an index. */
    KeyValueIterator<Bytes, byte[]> byTime(long fromMs, long toMs, boolean forward) {
        List<Segments.Segment> between = segments.between(fromMs, toMs, forward);
        return new SegmentIterator(between.iterator(), segment -> segment.times() == null
                ? open(segment, null, null, forward)
                : new IndexIterator(segment, fromMs, toMs, forward), iterator -> {
                    while (iterator.hasNext()) {
                        long timeMs = schema.segmentTimestamp(iterator.peekNextKey());
                        if (timeMs >= fromMs && timeMs <= toMs) return true;
                        iterator.next();
                    }
                    return false;
                });
    }

    /** The times of windows end what is looked for; a session may have begun before. */
    private boolean isOver(long fromMs, long toMs) {
        return !sessions && toMs < fromMs;
    }

    private List<Segments.Segment> searched(long fromMs, long toMs, boolean forward) {
        return segments.between(fromMs, sessions ? Long.MAX_VALUE : toMs, forward);
    }

    private KeyValueIterator<Bytes, byte[]> over(List<Segments.Segment> searched, Bytes from, Bytes to, boolean forward,
            HasNextCondition condition) {
        Function<Segments.Segment, KeyValueIterator<Bytes, byte[]>> opener = segment -> open(segment, from, to, forward);
        return new SegmentIterator(searched.iterator(), opener, condition);
    }

    private KeyValueIterator<Bytes, byte[]> open(Segments.Segment segment, Bytes from, Bytes to, boolean forward) {
        store.checkOpen();
        return store.reading("opening an iterator", () -> segment.values().iterate(
                from == null ? null : from.get(), to == null ? null : to.get(), true, forward));
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        if (format == Format.HEADERS) return Queries.unknown(query, config, this, store.position());
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
        segments.clear();
    }

    /** The entries that the index of a segment has between two times. */
    private final class IndexIterator implements KeyValueIterator<Bytes, byte[]> {
        private final Segments.Segment segment;
        private final KeyValueIterator<Bytes, byte[]> index;
        private KeyValue<Bytes, byte[]> ahead;

        IndexIterator(Segments.Segment segment, long fromMs, long toMs, boolean forward) {
            this.segment = segment;
            byte[] to = toMs == Long.MAX_VALUE ? null : TimeFirst.bound(toMs + 1);
            this.index = store.reading("opening an iterator",
                    () -> segment.times().iterate(TimeFirst.bound(Math.max(0, fromMs)), to, false, forward));
        }

        @Override
        public boolean hasNext() {
            while (ahead == null && index.hasNext()) {
                byte[] key = segments.ofIndexed(index.next().key.get());
                byte[] value = store.get(segment.values(), key);
                if (value != null) ahead = new KeyValue<>(Bytes.wrap(key), value);
            }
            return ahead != null;
        }

        @Override
        public KeyValue<Bytes, byte[]> next() {
            if (!hasNext()) throw new NoSuchElementException();
            KeyValue<Bytes, byte[]> entry = ahead;
            ahead = null;
            return entry;
        }

        @Override
        public Bytes peekNextKey() {
            if (!hasNext()) throw new NoSuchElementException();
            return ahead.key;
        }

        @Override
        public void close() {
            index.close();
        }
    }
}
