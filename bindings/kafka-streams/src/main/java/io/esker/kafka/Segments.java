package io.esker.kafka;

import io.esker.WriteBatch;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * The segments of time of a store, a keyspace each, so that what expires goes with its keyspace, at once and without deletions.
 *
 * <p>A segment may have an index by time beside its values. One thread writes; any number reads.
 */
final class Segments {
    private static final String VALUES = "segment.";
    private static final String TIMES = "times.";
    private static final byte[] NOTHING = new byte[0];
    private static final int INDEX_BATCH_BYTES = 1 << 20;
    /** A key of an index, before all others, that is there when nothing is missing. (Of one with other keys it was {0}.) */
    private static final byte[] COMPLETE = {0, 0};

    /** One segment. */
    static final class Segment {
        private final Table values;
        /** The index, null where the store has none. */
        private final Table times;

        Segment(Table values, Table times) {
            this.values = values;
            this.times = times;
        }

        Table values() {
            return values;
        }

        Table times() {
            return times;
        }
    }

    private final TaskStore store;
    private final Format format;
    private final long retentionMs;
    private final long intervalMs;
    private final TimeFirst index;
    private final ConcurrentSkipListMap<Long, Segment> segments = new ConcurrentSkipListMap<>();
    /** Segments before this one that are missing are made in memory only. */
    private long firstKept = Long.MIN_VALUE;

    /**
     * @param index what keys of the index by time are; null when there is to be none
     */
    Segments(TaskStore store, Format format, long retentionMs, long intervalMs, TimeFirst index) {
        this.store = store;
        this.format = format;
        this.retentionMs = retentionMs;
        this.intervalMs = intervalMs;
        this.index = index;
    }

    /**
     * Opens the segments there are. Where an index is missing or was not finished it is made, where nobody wants it, or its segment is
     * gone, it is dropped: at once, as the segment may be made again before the next commit.
     */
    void open() {
        segments.clear();
        Collection<String> names = store.tableNames();
        for (String name : names) {
            if (name.startsWith(TIMES)) {
                String values = VALUES + name.substring(TIMES.length()) + format.suffix();
                if (index == null || !names.contains(values)) store.dropAtOnce(name);
            }
            if (!name.startsWith(VALUES)) continue;
            Segment segment = add(id(name));
            if (index != null && store.get(segment.times, COMPLETE) == null) makeIndex(segment);
        }
    }

    private long id(String keyspace) {
        try {
            return Long.parseLong(keyspace.substring(VALUES.length(), keyspace.length() - format.suffix().length()));
        } catch (NumberFormatException | IndexOutOfBoundsException e) {
            throw new ProcessorStateException("Store " + store.name() + " has a keyspace " + keyspace + ", which is no segment of it", e);
        }
    }

    /** Of values that were all committed: so it waits for no commit itself. */
    private void makeIndex(Segment segment) {
        synchronized (store) {
            WriteBatch batch = new WriteBatch();
            try (KeyValueIterator<Bytes, byte[]> values = segment.values.iterate(null, null, true, true)) {
                while (values.hasNext()) {
                    store.add(batch, segment.times, index.of(values.next().key.get()), NOTHING);
                    if (batch.byteSize() < INDEX_BATCH_BYTES) continue;
                    store.writeIndex(batch);
                    batch.clear();
                }
            }
            store.add(batch, segment.times, COMPLETE, NOTHING);
            store.writeIndex(batch);
        }
    }

    /** The number of the segment whose values a keyspace holds, in whatever format; null where it is no such keyspace. */
    static Long idOf(String keyspace) {
        int end = keyspace.lastIndexOf('.');
        if (!keyspace.startsWith(VALUES) || end < VALUES.length()) return null;
        try {
            return Long.valueOf(keyspace.substring(VALUES.length(), end));
        } catch (NumberFormatException e) {
            return null;
        }
    }

    private Segment add(long id) {
        String values = VALUES + id + format.suffix();
        return segments.computeIfAbsent(id, key -> new Segment(
                id < firstKept ? store.passingTable(values) : store.table(values), index != null ? store.table(TIMES + id) : null));
    }

    /** The key of the value of a key in the index. */
    byte[] ofIndexed(byte[] indexed) {
        return index.stored(indexed);
    }

    /** Whether segments have an index by time. */
    boolean isIndexed() {
        return index != null;
    }

    void clear() {
        segments.clear();
    }

    long id(long timeMs) {
        return timeMs / intervalMs;
    }

    /** The segment of a time, or null. */
    Segment of(long timeMs) {
        return segments.get(id(timeMs));
    }

    /** The segment of that number, made where it is missing; null when it expired. Drops those that expired. */
    Segment live(long id, long streamTimeMs) {
        if (id < id(streamTimeMs - retentionMs)) return null;
        Segment segment = segments.get(id);
        if (segment == null) {
            segment = add(id);
            if (index != null) store.put(segment.times, COMPLETE, NOTHING);
        }
        dropExpired(streamTimeMs);
        return segment;
    }

    /**
     * Until {@link #passed}, segments that will have expired at a time are made in memory only: what is restored up to then finds in
     * them what came before it.
     */
    void passTo(long streamTimeMs) {
        firstKept = id(streamTimeMs - retentionMs);
    }

    /** Those that were made in memory only stay: what is restored next may be so by another process, which has to find them. */
    void keepPassing() {
        segments.values().forEach(segment -> store.keep(segment.values));
    }

    void passed(long streamTimeMs) {
        firstKept = Long.MIN_VALUE;
        expire(streamTimeMs);
    }

    /** Lets those that expired go with the next commit, or now when too many wait for it. */
    void dropExpired(long streamTimeMs) {
        if (expire(streamTimeMs)) store.limitDoomed();
    }

    /** Lets those that expired go with the next commit or restored batch. Returns whether any did. */
    boolean expire(long streamTimeMs) {
        NavigableMap<Long, Segment> expired = segments.headMap(id(streamTimeMs - retentionMs), false);
        boolean any = false;
        while (true) {
            var first = expired.pollFirstEntry();
            if (first == null) return any;
            any = true;
            store.drop(first.getValue().values);
            if (first.getValue().times != null) store.drop(first.getValue().times);
        }
    }

    /** The segments between two times, both among them. */
    List<Segment> between(long fromMs, long toMs, boolean forward) {
        long from = id(fromMs);
        long to = id(toMs);
        if (from > to) return List.of();
        NavigableMap<Long, Segment> part = segments.subMap(from, true, to, true);
        return new ArrayList<>((forward ? part : part.descendingMap()).values());
    }

    /** Adds a write and what the index has of it; a null value deletes. No query begins between the two. */
    void put(Segment segment, byte[] key, byte[] value) {
        synchronized (store) {
            synchronized (store.position()) {
                store.put(segment.values, key, value);
                if (segment.times != null) store.put(segment.times, index.of(key), value == null ? null : NOTHING);
            }
        }
    }

    /** The same into a batch. */
    void add(WriteBatch batch, Segment segment, byte[] key, byte[] value) {
        store.add(batch, segment.values, key, value);
        if (segment.times != null) store.add(batch, segment.times, index.of(key), value == null ? null : NOTHING);
    }
}
