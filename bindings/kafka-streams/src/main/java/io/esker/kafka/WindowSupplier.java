package io.esker.kafka;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** Makes window stores of one kind. */
class WindowSupplier implements WindowBytesStoreSupplier {
    private final String name;
    private final Format format;
    private final long retentionMs;
    private final long windowMs;
    private final boolean retainDuplicates;
    private final boolean indexed;

    WindowSupplier(String name, Format format, long retentionMs, long windowMs, boolean retainDuplicates, boolean indexed) {
        this.name = name;
        this.format = format;
        this.retentionMs = retentionMs;
        this.windowMs = windowMs;
        this.retainDuplicates = retainDuplicates;
        this.indexed = indexed;
    }

    /** The same for values with headers, which Kafka Streams knows by the type of the supplier. */
    static final class Headers extends WindowSupplier implements HeadersBytesStoreSupplier {
        Headers(String name, long retentionMs, long windowMs, boolean retainDuplicates, boolean indexed) {
            super(name, Format.HEADERS, retentionMs, windowMs, retainDuplicates, indexed);
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public WindowStore<Bytes, byte[]> get() {
        return switch (format) {
            case PLAIN -> new EskerWindowStore(this, indexed);
            case TIMESTAMPED -> new EskerWindowStore.Timestamped(this, indexed);
            case HEADERS -> new EskerWindowStore.Headers(this, indexed);
        };
    }

    @Override
    public String metricsScope() {
        return "esker-window";
    }

    @Override
    public long segmentIntervalMs() {
        return Math.max(retentionMs / 2, 60_000L);
    }

    @Override
    public long windowSize() {
        return windowMs;
    }

    @Override
    public boolean retainDuplicates() {
        return retainDuplicates;
    }

    @Override
    public long retentionPeriod() {
        return retentionMs;
    }
}
