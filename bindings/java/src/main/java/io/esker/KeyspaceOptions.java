package io.esker;

import java.util.Objects;

/** Settings of a keyspace, which are stored with it when it is made. What is not set is the store's, as of each open. */
public final class KeyspaceOptions {
    /** Null: the store's. */
    Compression compression;
    /** -1: the store's. */
    int blobThresholdBytes = -1;
    Order order = Order.BYTEWISE;

    /** The defaults: the store's compression and threshold, the order of the bytes. */
    public KeyspaceOptions() {}

    /**
     * The compression of values, whatever the store is opened with.
     *
     * @param compression the store's by default
     * @return these options
     */
    public KeyspaceOptions compression(Compression compression) {
        this.compression = Objects.requireNonNull(compression, "compression");
        return this;
    }

    /**
     * From which size on a value is written once and stays in the log.
     *
     * @param bytes from 64 on; the store's by default
     * @return these options
     */
    public KeyspaceOptions blobThreshold(int bytes) {
        blobThresholdBytes = (int) Options.within("blobThreshold", bytes, 64, Integer.MAX_VALUE);
        return this;
    }

    /**
     * The order of the keys.
     *
     * @param order {@link Order#BYTEWISE} by default
     * @return these options
     */
    public KeyspaceOptions order(Order order) {
        this.order = Objects.requireNonNull(order, "order");
        return this;
    }
}
