package io.esker.kafka;

import io.esker.Cursor;
import io.esker.EskerException;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NoSuchElementException;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * Entries of several sources in key order. Where two have a key the first of them counts; a null value there hides the key.
 *
 * <p>It looks one entry ahead. One thread uses it; {@link #close} may come from another.
 */
final class MergedIterator implements KeyValueIterator<Bytes, byte[]> {
    /** Entries in the direction of the merge. It stands before the first of them at first. */
    interface Source {
        /** Goes to the next entry; false when there is none. */
        boolean advance();

        byte[] key();

        /** The value, null for a deletion. */
        byte[] value();
    }

    private final TaskStore store;
    private final List<Source> sources;
    private final Source[] standing;
    /** Closed with this; null when nothing is stored. */
    private final Cursor cursor;
    private final boolean forward;
    private KeyValue<Bytes, byte[]> ahead;
    private boolean begun;
    private volatile boolean closed;

    MergedIterator(TaskStore store, List<Source> sources, Cursor cursor, boolean forward) {
        this.store = store;
        this.sources = sources;
        this.standing = new Source[sources.size()];
        this.cursor = cursor;
        this.forward = forward;
    }

    @Override
    public boolean hasNext() {
        if (closed) throw usedAfterClose(null);
        if (ahead == null) ahead = store.reading("reading a range", this::takeUnlessExpired);
        return ahead != null;
    }

    private InvalidStateStoreException usedAfterClose(Throwable cause) {
        return new InvalidStateStoreException("an iterator of store " + store.name() + " was used after it was closed", cause);
    }

    /** A segment that expires while it is being read has nothing more to show. */
    private KeyValue<Bytes, byte[]> takeUnlessExpired() {
        try {
            return take();
        } catch (EskerException e) {
            if (e.code() == EskerException.Code.KEYSPACE) return null;
            throw e;
        } catch (IllegalStateException e) {
            // Closed in another thread, in the middle of this call.
            if (closed && store.isOpen()) throw usedAfterClose(e);
            throw e;
        }
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
        if (closed) return;
        closed = true;
        store.closed(this);
        if (cursor != null) cursor.close();
    }

    /** The next entry that is not hidden, or null. */
    private KeyValue<Bytes, byte[]> take() {
        if (!begun) {
            for (int i = 0; i < standing.length; i++) {
                Source source = sources.get(i);
                standing[i] = source.advance() ? source : null;
            }
            begun = true;
        }
        while (true) {
            int first = -1;
            for (int i = 0; i < standing.length; i++) {
                if (standing[i] != null && (first < 0 || before(standing[i].key(), standing[first].key()))) first = i;
            }
            if (first < 0) return null;
            byte[] key = standing[first].key();
            byte[] value = standing[first].value();
            for (int i = 0; i < standing.length; i++) {
                if (standing[i] == null || i != first && !Arrays.equals(standing[i].key(), key)) continue;
                if (!standing[i].advance()) standing[i] = null;
            }
            if (value != null) return new KeyValue<>(Bytes.wrap(key), value);
        }
    }

    private boolean before(byte[] one, byte[] other) {
        int compared = Arrays.compareUnsigned(one, other);
        return forward ? compared < 0 : compared > 0;
    }

    /** What a reader sees of a part of a buffer. */
    static Source buffered(NavigableMap<byte[], WriteBuffer.Version> part, long sequence) {
        Iterator<Map.Entry<byte[], WriteBuffer.Version>> entries = part.entrySet().iterator();
        return new Source() {
            private byte[] key;
            private byte[] value;

            @Override
            public boolean advance() {
                while (entries.hasNext()) {
                    Map.Entry<byte[], WriteBuffer.Version> entry = entries.next();
                    WriteBuffer.Version version = entry.getValue().at(sequence);
                    if (version == null) continue;
                    key = entry.getKey();
                    value = version.value;
                    return true;
                }
                return false;
            }

            @Override
            public byte[] key() {
                return key;
            }

            @Override
            public byte[] value() {
                return value;
            }
        };
    }

    /** What a cursor has between two bounds. */
    static Source stored(Cursor cursor, byte[] from, byte[] to, boolean toInclusive, boolean forward) {
        return new Source() {
            private boolean begun;
            private byte[] key;

            @Override
            public boolean advance() {
                boolean there;
                if (begun) {
                    there = forward ? cursor.next() : cursor.previous();
                } else {
                    begun = true;
                    there = forward ? begin() : beginBackward();
                }
                if (!there) return false;
                key = cursor.key();
                return forward ? !behind(key) : from == null || Arrays.compareUnsigned(key, from) >= 0;
            }

            private boolean begin() {
                if (from == null) return cursor.first();
                if (!cursor.seek(asKey(from))) return false;
                return Arrays.compareUnsigned(cursor.key(), from) >= 0 || cursor.next();
            }

            private boolean beginBackward() {
                if (to == null) return cursor.last();
                if (!cursor.seekBack(asKey(to))) return false;
                return !behind(cursor.key()) || cursor.previous();
            }

            /** Between a bound that is longer than any key and what it begins with there are no keys. */
            private byte[] asKey(byte[] bound) {
                return bound.length > TaskStore.MOST_KEY_BYTES ? Arrays.copyOf(bound, TaskStore.MOST_KEY_BYTES) : bound;
            }

            private boolean behind(byte[] key) {
                if (to == null) return false;
                int compared = Arrays.compareUnsigned(key, to);
                return toInclusive ? compared > 0 : compared >= 0;
            }

            @Override
            public byte[] key() {
                return key;
            }

            @Override
            public byte[] value() {
                return cursor.value();
            }
        };
    }

    /** An iterator over nothing. */
    static <K, V> KeyValueIterator<K, V> empty() {
        return new KeyValueIterator<>() {
            @Override
            public boolean hasNext() {
                return false;
            }

            @Override
            public KeyValue<K, V> next() {
                throw new NoSuchElementException();
            }

            @Override
            public K peekNextKey() {
                throw new NoSuchElementException();
            }

            @Override
            public void close() {}
        };
    }
}
