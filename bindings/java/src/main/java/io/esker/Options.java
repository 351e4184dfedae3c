package io.esker;

import java.util.Objects;

/**
 * How to open a store. What is not set has its default. It belongs to one thread at a time; a store keeps none of it.
 *
 * <p>A value out of its bounds is an {@link IllegalArgumentException} where it is set.
 */
public final class Options {
    long memoryBytes = 128L << 20;
    Durability durability = Durability.BUFFERED;
    Compression compression = Compression.LZ4;
    boolean createIfMissing = true;
    boolean errorIfExists;
    boolean readOnly;
    boolean paranoidChecks;
    boolean flushOnClose = true;
    int blobThresholdBytes = 4096;
    int blockSizeBytes = 4096;
    /** 0: as the memory says. */
    long segmentSizeBytes;
    /** Null: the one that the store was made with; bytewise for a new one. */
    Order order;

    /** The defaults. */
    public Options() {}

    /**
     * Memory that the store may use for itself: write buffers, indexes, merge work. Mapped files are not counted.
     *
     * @param bytes from 1 MiB on; 128 MiB by default
     * @return these options
     */
    public Options memory(long bytes) {
        memoryBytes = within("memory", bytes, 1 << 20, Long.MAX_VALUE);
        return this;
    }

    /**
     * The durability of writes that do not name their own.
     *
     * @param durability {@link Durability#BUFFERED} by default, which {@link Durability#DEFAULT} stands for here
     * @return these options
     */
    public Options durability(Durability durability) {
        Objects.requireNonNull(durability, "durability");
        this.durability = durability == Durability.DEFAULT ? Durability.BUFFERED : durability;
        return this;
    }

    /**
     * The compression of keyspaces that were made without one of their own, the default keyspace among them. It is not
     * stored: what each open says holds until the next.
     *
     * @param compression {@link Compression#LZ4} by default
     * @return these options
     */
    public Options compression(Compression compression) {
        this.compression = Objects.requireNonNull(compression, "compression");
        return this;
    }

    /**
     * Whether to make the store when there is none.
     *
     * @param yes true by default
     * @return these options
     */
    public Options createIfMissing(boolean yes) {
        createIfMissing = yes;
        return this;
    }

    /**
     * Whether to refuse a store that exists.
     *
     * @param yes false by default
     * @return these options
     */
    public Options errorIfExists(boolean yes) {
        errorIfExists = yes;
        return this;
    }

    /**
     * Whether to open without writing anything. Any number of processes may do so at a time, as long as nobody writes.
     *
     * @param yes false by default
     * @return these options
     */
    public Options readOnly(boolean yes) {
        readOnly = yes;
        return this;
    }

    /**
     * Whether to verify the whole store when it is opened, and to take any doubt for damage. Opening reads everything then.
     *
     * @param yes false by default
     * @return these options
     */
    public Options paranoidChecks(boolean yes) {
        paranoidChecks = yes;
        return this;
    }

    /**
     * Whether closing writes what is in memory into tables, so that the next open has nothing to recover. Nothing is lost
     * without: all of it is in the log.
     *
     * @param yes true by default
     * @return these options
     */
    public Options flushOnClose(boolean yes) {
        flushOnClose = yes;
        return this;
    }

    /**
     * From which size on a value is written once and stays in the log, in keyspaces that have no threshold of their own.
     *
     * @param bytes from 64 on; 4096 by default
     * @return these options
     */
    public Options blobThreshold(int bytes) {
        blobThresholdBytes = (int) within("blobThreshold", bytes, 64, Integer.MAX_VALUE);
        return this;
    }

    /**
     * The smallest block of a table. Larger entries get larger blocks by themselves.
     *
     * @param bytes a multiple of 4096 up to 65536; 4096 by default
     * @return these options
     */
    public Options blockSize(int bytes) {
        within("blockSize", bytes, 4096, 65536);
        if (bytes % 4096 != 0) throw new IllegalArgumentException("blockSize must be a multiple of 4096, not " + bytes);
        blockSizeBytes = bytes;
        return this;
    }

    /**
     * The size of a log segment.
     *
     * @param bytes from 64 KiB to 4 GiB; by default a quarter of the memory or of the log that may wait for its
     *     flush, whichever is less, up to 32 MiB, or an eighth of it up to 64 MiB where that is more; 2 MiB and a 64th of that log at least
     * @return these options
     */
    public Options segmentSize(long bytes) {
        segmentSizeBytes = within("segmentSize", bytes, 64 << 10, 4L << 30);
        return this;
    }

    /**
     * The order of the default keyspace, which is fixed when the store is made. For a store that exists it must be the one
     * that it was made with.
     *
     * @param order {@link Order#BYTEWISE} by default for a new store
     * @return these options
     */
    public Options order(Order order) {
        this.order = Objects.requireNonNull(order, "order");
        return this;
    }

    static long within(String option, long value, long least, long most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(most == Long.MAX_VALUE || most == Integer.MAX_VALUE
                    ? option + " must be at least " + least + ", not " + value
                    : option + " must be from " + least + " to " + most + ", not " + value);
        }
        return value;
    }
}
