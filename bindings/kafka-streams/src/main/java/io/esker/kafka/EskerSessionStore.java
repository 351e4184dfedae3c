package io.esker.kafka;

import java.util.Objects;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.internals.SessionKeySchema;

/** A session store of bytes. The end of a session is its time; within a segment entries are in the order of keys, ends and starts. */
class EskerSessionStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    /**
     * @param indexed whether an index by time is kept, which makes {@link #findSessions(long, long)} read what it returns and no more
     */
    EskerSessionStore(SessionSupplier supplier, boolean indexed) {
        this(supplier, Format.PLAIN, indexed);
    }

    private EskerSessionStore(SessionSupplier supplier, Format format, boolean indexed) {
        super(supplier.name(), format, supplier.retentionPeriod(), supplier.segmentIntervalMs(), new SessionKeySchema(), true, indexed);
    }

    /** With values that begin with headers. */
    static final class Headers extends EskerSessionStore implements HeadersBytesStore {
        Headers(SessionSupplier supplier, boolean indexed) {
            super(supplier, Format.HEADERS, indexed);
        }
    }

    @Override
    public void put(Windowed<Bytes> session, byte[] aggregate) {
        Objects.requireNonNull(session, "sessionKey cannot be null");
        putStored(SessionKeySchema.toBinary(session), aggregate);
    }

    @Override
    public void remove(Windowed<Bytes> session) {
        Objects.requireNonNull(session, "sessionKey cannot be null");
        removeStored(SessionKeySchema.toBinary(session));
    }

    @Override
    public byte[] fetchSession(Bytes key, long sessionStartTime, long sessionEndTime) {
        Objects.requireNonNull(key, "key cannot be null");
        return getStored(SessionKeySchema.toBinary(key, sessionStartTime, sessionEndTime));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(long earliestSessionEndTime, long latestSessionEndTime) {
        return new Sessions(byTime(earliestSessionEndTime, latestSessionEndTime, true));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes key, long earliestSessionEndTime, long latestSessionStartTime) {
        Objects.requireNonNull(key, "key cannot be null");
        return new Sessions(fetchStored(key, earliestSessionEndTime, latestSessionStartTime, true));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestSessionEndTime, long latestSessionStartTime) {
        Objects.requireNonNull(key, "key cannot be null");
        return new Sessions(fetchStored(key, earliestSessionEndTime, latestSessionStartTime, false));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes keyFrom, Bytes keyTo, long earliestSessionEndTime, long latestSessionStartTime) {
        return new Sessions(fetchStored(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime, true));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes keyFrom, Bytes keyTo, long earliestSessionEndTime, long latestSessionStartTime) {
        return new Sessions(fetchStored(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime, false));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return findSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return backwardFindSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return findSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return backwardFindSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    /** Sessions and their aggregates. */
    private static final class Sessions implements KeyValueIterator<Windowed<Bytes>, byte[]> {
        private final KeyValueIterator<Bytes, byte[]> stored;

        Sessions(KeyValueIterator<Bytes, byte[]> stored) {
            this.stored = stored;
        }

        @Override
        public Windowed<Bytes> peekNextKey() {
            return SessionKeySchema.from(stored.peekNextKey());
        }

        @Override
        public boolean hasNext() {
            return stored.hasNext();
        }

        @Override
        public KeyValue<Windowed<Bytes>, byte[]> next() {
            KeyValue<Bytes, byte[]> entry = stored.next();
            return new KeyValue<>(SessionKeySchema.from(entry.key), entry.value);
        }

        @Override
        public void close() {
            stored.close();
        }
    }
}
