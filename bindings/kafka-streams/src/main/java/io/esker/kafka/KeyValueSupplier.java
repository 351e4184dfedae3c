package io.esker.kafka;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.internals.VersionedKeyValueToBytesStoreAdapter;

/** Makes key-value stores of one kind. */
class KeyValueSupplier implements KeyValueBytesStoreSupplier {
    private final String name;
    private final Format format;

    KeyValueSupplier(String name, Format format) {
        this.name = name;
        this.format = format;
    }

    /** The same for values with headers, which Kafka Streams knows by the type of the supplier. */
    static final class Headers extends KeyValueSupplier implements HeadersBytesStoreSupplier {
        Headers(String name) {
            super(name, Format.HEADERS);
        }
    }

    /** The same for stores that keep the history of a key. */
    static final class Versioned extends KeyValueSupplier implements VersionedBytesStoreSupplier {
        private final long historyRetentionMs;
        private final long segmentIntervalMs;

        Versioned(String name, long historyRetentionMs, long segmentIntervalMs) {
            super(name, Format.PLAIN);
            this.historyRetentionMs = historyRetentionMs;
            this.segmentIntervalMs = segmentIntervalMs;
        }

        @Override
        public long historyRetentionMs() {
            return historyRetentionMs;
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return new VersionedKeyValueToBytesStoreAdapter(new EskerVersionedStore(name(), historyRetentionMs, segmentIntervalMs));
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public KeyValueStore<Bytes, byte[]> get() {
        return switch (format) {
            case PLAIN -> new EskerKeyValueStore(name);
            case TIMESTAMPED -> new EskerKeyValueStore.Timestamped(name);
            case HEADERS -> new EskerKeyValueStore.Headers(name);
        };
    }

    @Override
    public String metricsScope() {
        return "esker";
    }
}
