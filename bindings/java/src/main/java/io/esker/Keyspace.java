package io.esker;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;

/**
 * A named map of a store, in the order of its keys. Any number of threads may use it.
 *
 * <p>Reads are described by {@link ReadableKeyspace}. Keys have up to {@value Esker#MAX_KEY_LENGTH} bytes, values up to 1 GiB,
 * and both may be empty; what is longer is an {@link IllegalArgumentException}.
 */
public final class Keyspace extends Reader implements AutoCloseable {
    private final String name;
    private final boolean isDefault;
    private volatile boolean closed;
    /** Null until somebody asks for it: of a keyspace that exists, the store has to be asked. */
    private volatile Order order;

    /** The reader's box, which is freed when no keyspace refers to it. Refers to no keyspace. */
    private record Box(long pointer) implements Runnable {
        @Override
        public void run() {
            Native.freeReader(pointer);
        }
    }

    Keyspace(Esker store, String name, boolean isDefault, long pointer, Order order) {
        super(store, pointer);
        this.name = name;
        this.order = order;
        this.isDefault = isDefault;
        Native.CLEANER.register(this, new Box(pointer));
    }

    /** Throws when this object was closed. */
    void check() {
        if (closed) throw new IllegalStateException("the keyspace was closed");
    }

    @Override
    int enter() {
        check();
        return store().gate().enter();
    }

    @Override
    void exit(int cell) {
        store().gate().exit(cell);
        Reference.reachabilityFence(this);
    }

    /**
     * The name that it was made with.
     *
     * @return the name; also after it was closed
     */
    public String name() {
        return name;
    }

    @Override
    public Order order() {
        int cell = enter();
        try {
            Order known = order;
            if (known == null) {
                known = Order.values()[Native.order(pointer)];
                order = known;
            }
            return known;
        } finally {
            exit(cell);
        }
    }

    /**
     * Gives a key a value, with the store's durability.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        put(key, value, Durability.DEFAULT);
    }

    /**
     * Gives a key a value.
     *
     * @param key the key
     * @param value the value
     * @param durability when the write counts as done
     */
    public void put(byte[] key, byte[] value, Durability durability) {
        Bytes.checkKey(key);
        Bytes.checkValue(value);
        int number = durability.ordinal();
        int cell = enter();
        try {
            Native.put(pointer, key, key.length, value, value.length, number);
        } finally {
            exit(cell);
        }
    }

    /**
     * Gives a key a value, both in buffers of any kind: their bytes from the position to the limit, which stay as they are.
     *
     * @param key the key
     * @param value the value
     */
    public void put(ByteBuffer key, ByteBuffer value) {
        put(key, value, Durability.DEFAULT);
    }

    /**
     * Gives a key a value, both in buffers of any kind: their bytes from the position to the limit, which stay as they are.
     *
     * @param key the key
     * @param value the value
     * @param durability when the write counts as done
     */
    public void put(ByteBuffer key, ByteBuffer value, Durability durability) {
        Bytes.Part keyPart = Bytes.Part.ofKey(key);
        Bytes.Part valuePart = Bytes.Part.ofValue(value);
        int number = durability.ordinal();
        int cell = enter();
        try {
            Native.putBuffers(pointer, keyPart.array(), keyPart.direct(), keyPart.at(), keyPart.length(),
                    valuePart.array(), valuePart.direct(), valuePart.at(), valuePart.length(), number);
        } finally {
            exit(cell);
        }
    }

    /**
     * Takes the value of a key away, whether there is one or not, with the store's durability.
     *
     * @param key the key
     */
    public void delete(byte[] key) {
        delete(key, Durability.DEFAULT);
    }

    /**
     * Takes the value of a key away, whether there is one or not.
     *
     * @param key the key
     * @param durability when the write counts as done
     */
    public void delete(byte[] key, Durability durability) {
        Bytes.checkKey(key);
        int number = durability.ordinal();
        int cell = enter();
        try {
            Native.delete(pointer, key, key.length, number);
        } finally {
            exit(cell);
        }
    }

    /**
     * This keyspace as a snapshot sees it. Asking again gives the same object.
     *
     * @param snapshot a snapshot of this store
     * @return what can be read until the snapshot is closed
     */
    public ReadableKeyspace at(Snapshot snapshot) {
        Objects.requireNonNull(snapshot, "snapshot");
        int cell = enter();
        try {
            return snapshot.of(this);
        } finally {
            exit(cell);
        }
    }

    /**
     * Loads entries in ascending order straight into tables, past the log. All of them appear at once, and durably, when the
     * call returns. They replace the values of keys that are there.
     *
     * <p>The iterator is asked for some hundred entries at a time, in this thread. It may use the store. What it throws ends
     * the load, of which nothing is kept, and is thrown on; should it close the store, the load ends with
     * {@link IllegalStateException}.
     *
     * @param sorted entries, each key after the one before in the keyspace's {@linkplain #order() order}
     * @return how many there were
     * @throws IllegalArgumentException if one is out of order
     */
    public long bulkLoad(Iterator<Entry> sorted) {
        BulkLoad source = new BulkLoad(this, Objects.requireNonNull(sorted, "sorted"));
        source.cell = enter();
        try {
            return Native.bulkLoad(pointer, source);
        } finally {
            if (source.cell >= 0) exit(source.cell);
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Rewrites the tables in a range at once: drops what was deleted or overwritten, and packs values as the keyspace does now.
     *
     * @param range the range
     */
    public void compactRange(Range range) {
        Range bounds = range.resolve(order());
        int cell = enter();
        try {
            Native.compactRange(pointer, bounds.from(), bounds.fromInclusive(), bounds.to(), bounds.toInclusive());
        } finally {
            exit(cell);
        }
    }

    /**
     * About how many bytes of files a range takes, with values that stayed in the log and what is not flushed yet. It reads no values.
     *
     * @param range the range
     * @return bytes on the disk
     */
    public long approximateSize(Range range) {
        Range bounds = range.resolve(order());
        int cell = enter();
        try {
            return Native.approximateSize(
                    pointer, bounds.from(), bounds.fromInclusive(), bounds.to(), bounds.toInclusive());
        } finally {
            exit(cell);
        }
    }

    /**
     * The shape of the keyspace.
     *
     * @return what {@link Esker#stats} says of it
     * @throws EskerException with {@link EskerException.Code#KEYSPACE} if it was dropped
     */
    public KeyspaceStats stats() {
        check();
        List<KeyspaceStats> all = store().stats().keyspaces();
        // Says whether it was dropped. Asked afterwards: another may have its name now.
        multiGet(List.of());
        for (KeyspaceStats stats : all) {
            if (stats.name().equals(name)) return stats;
        }
        throw new EskerException(EskerException.Code.KEYSPACE, "keyspace \"" + name + "\" was dropped");
    }

    /**
     * Ends the use of this object; the keyspace and other objects of it stay. The default keyspace is open as long as its
     * store is: this does nothing to it.
     */
    @Override
    public void close() {
        if (!isDefault) closed = true;
    }

    @Override
    public String toString() {
        return "Keyspace(" + name + ")";
    }
}
