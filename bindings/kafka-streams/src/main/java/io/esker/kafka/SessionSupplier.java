package io.esker.kafka;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;

/** Makes session stores of one kind. */
class SessionSupplier implements SessionBytesStoreSupplier {
    private final String name;
    private final long retentionMs;
    private final boolean indexed;

    SessionSupplier(String name, long retentionMs, boolean indexed) {
        this.name = name;
        this.retentionMs = retentionMs;
        this.indexed = indexed;
    }

    /** The same for values with headers, which Kafka Streams knows by the type of the supplier. */
    static final class Headers extends SessionSupplier implements HeadersBytesStoreSupplier {
        private final boolean indexed;

        Headers(String name, long retentionMs, boolean indexed) {
            super(name, retentionMs, indexed);
            this.indexed = indexed;
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return new EskerSessionStore.Headers(this, indexed);
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public SessionStore<Bytes, byte[]> get() {
        return new EskerSessionStore(this, indexed);
    }

    @Override
    public String metricsScope() {
        return "esker-session";
    }

    @Override
    public long segmentIntervalMs() {
        return Math.max(retentionMs / 2, 60_000L);
    }

    @Override
    public long retentionPeriod() {
        return retentionMs;
    }
}
