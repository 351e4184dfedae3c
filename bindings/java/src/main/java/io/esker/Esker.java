package io.esker;

import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * An open store: an embedded, ordered, persistent map from bytes to bytes, in a directory. Any number of threads may use it;
 * one process at a time has it open for writing.
 *
 * <pre>{@code
 * try (Esker db = Esker.open(Path.of("trees"))) {
 *     Keyspace trees = db.keyspace();
 *     trees.put("ash".getBytes(UTF_8), "Fraxinus".getBytes(UTF_8));
 * }
 * }</pre>
 *
 * <p>Closing it waits for calls under way. Later ones throw {@link IllegalStateException}, those of its keyspaces and snapshots
 * too. Cursors and lent buffers stay readable, and keep the directory locked until they are closed or collected. A store that
 * is forgotten is closed when it and all its keyspaces are collected.
 *
 * <p>Methods that fail throw {@link EskerException}.
 */
public final class Esker implements AutoCloseable {
    /** Bytes that a key may have. */
    public static final int MAX_KEY_LENGTH = 65536;
    /** Bytes that a value may have. */
    public static final int MAX_VALUE_LENGTH = 1 << 30;

    private final Gate gate = new Gate("store");
    private final long pointer;
    private final Path directory;
    private final Held held;
    private final Keyspace defaultKeyspace;
    /** Held by whoever closes the store. */
    private final Object closing = new Object();

    /** The store's box, which is freed when nothing refers to the store. Refers to no store. */
    private record Box(long pointer) implements Runnable {
        @Override
        public void run() {
            Native.freeStore(pointer);
        }
    }

    private Esker(Path directory, long pointer, Order order) {
        this.directory = directory;
        held = new Held(directory);
        this.pointer = pointer;
        Native.CLEANER.register(this, new Box(pointer));
        defaultKeyspace = new Keyspace(this, "default", true, Native.defaultKeyspace(pointer), order);
    }

    /**
     * Opens the store in a directory with default options; makes it when there is none.
     *
     * @param directory where it is
     * @return the store, to be closed
     */
    public static Esker open(Path directory) {
        return open(directory, new Options());
    }

    /**
     * Opens the store in a directory.
     *
     * @param directory where it is
     * @param options how to open it
     * @return the store, to be closed
     */
    public static Esker open(Path directory, Options options) {
        NativeLibrary.load();
        byte[] path = Paths.bytes(directory);
        int flags = (options.createIfMissing ? 1 : 0) | (options.errorIfExists ? 2 : 0) | (options.readOnly ? 4 : 0)
                | (options.paranoidChecks ? 8 : 0) | (options.flushOnClose ? 16 : 0);
        int order = number(options.order);
        long pointer = Held.afterCollection(directory, () -> Native.open(path, options.memoryBytes,
                options.durability.ordinal(), options.compression.ordinal(), flags, options.blobThresholdBytes,
                options.blockSizeBytes, options.segmentSizeBytes, order));
        return new Esker(directory, pointer, options.order);
    }

    /** The library's number for an order; null is the one that is stored. */
    private static int number(Order order) {
        return order == null ? -1 : order.ordinal();
    }

    long pointer() {
        return pointer;
    }

    Held held() {
        return held;
    }

    Gate gate() {
        return gate;
    }

    private void exit(int cell) {
        gate.exit(cell);
        Reference.reachabilityFence(this);
    }

    /** A call that gives nothing. */
    private interface Call {
        void on(long pointer);
    }

    private void call(Call call) {
        int cell = gate.enter();
        try {
            call.on(pointer);
        } finally {
            exit(cell);
        }
    }

    /**
     * The keyspace that every store has, which is called {@code default}. It is the same object each time, and open as long
     * as the store is.
     *
     * @return the default keyspace
     */
    public Keyspace keyspace() {
        gate.check();
        return defaultKeyspace;
    }

    /**
     * A keyspace by its name.
     *
     * @param name the name
     * @return the keyspace
     * @throws EskerException with {@link EskerException.Code#KEYSPACE} if there is none
     */
    public Keyspace keyspace(String name) {
        byte[] bytes = utf8(name);
        if (name.equals(defaultKeyspace.name())) return keyspace();
        int cell = gate.enter();
        try {
            return new Keyspace(this, name, false, Native.keyspace(pointer, bytes), null);
        } finally {
            exit(cell);
        }
    }

    /**
     * Makes a keyspace with default options. It is durable on return.
     *
     * @param name 1 to 255 bytes of UTF-8
     * @return the keyspace
     * @throws EskerException with {@link EskerException.Code#KEYSPACE} if there is one
     */
    public Keyspace createKeyspace(String name) {
        return createKeyspace(name, new KeyspaceOptions());
    }

    /**
     * Makes a keyspace. It is durable on return.
     *
     * @param name 1 to 255 bytes of UTF-8
     * @param options its settings, which are stored
     * @return the keyspace
     * @throws EskerException with {@link EskerException.Code#KEYSPACE} if there is one
     */
    public Keyspace createKeyspace(String name, KeyspaceOptions options) {
        byte[] bytes = utf8(name);
        int compression = options.compression == null ? -1 : options.compression.ordinal();
        int cell = gate.enter();
        try {
            return new Keyspace(this, name, false, Native.createKeyspace(
                    pointer, bytes, compression, options.blobThresholdBytes, options.order.ordinal()), options.order);
        } finally {
            exit(cell);
        }
    }

    /**
     * A keyspace by its name; makes it with default options when there is none.
     *
     * @param name 1 to 255 bytes of UTF-8
     * @return the keyspace
     */
    public Keyspace openOrCreateKeyspace(String name) {
        return openOrCreateKeyspace(name, new KeyspaceOptions());
    }

    /**
     * A keyspace by its name; makes it when there is none. Of several threads that do so at a time one makes it, and all have it.
     *
     * @param name 1 to 255 bytes of UTF-8
     * @param options its settings, for one that is made; one that is there must have the same order
     * @return the keyspace
     * @throws EskerException with {@link EskerException.Code#COMPARATOR} if there is one with another order
     */
    public Keyspace openOrCreateKeyspace(String name, KeyspaceOptions options) {
        Objects.requireNonNull(options, "options");
        while (true) {
            try {
                return checked(keyspace(name), options);
            } catch (EskerException e) {
                if (e.code() != EskerException.Code.KEYSPACE) throw e;
            }
            try {
                return createKeyspace(name, options);
            } catch (EskerException e) {
                // Another thread has made it meanwhile: then it is there, unless it is dropped again.
                if (e.code() != EskerException.Code.KEYSPACE) throw e;
            }
        }
    }

    private static Keyspace checked(Keyspace keyspace, KeyspaceOptions options) {
        if (keyspace.order() != options.order) {
            throw new EskerException(EskerException.Code.COMPARATOR, "keyspace \"" + keyspace.name() + "\" has the order "
                    + keyspace.order() + ", not " + options.order);
        }
        return keyspace;
    }

    /**
     * Drops a keyspace and all its data. It is durable on return. Objects of it throw {@link EskerException} with
     * {@link EskerException.Code#KEYSPACE} from then on.
     *
     * @param name the name; the default keyspace cannot be dropped
     */
    public void dropKeyspace(String name) {
        byte[] bytes = utf8(name);
        call(store -> Native.dropKeyspace(store, bytes));
    }

    /**
     * The names of all keyspaces.
     *
     * @return {@code default} first, then in the order in which they were made
     */
    public List<String> keyspaces() {
        int cell = gate.enter();
        try {
            Decoder names = new Decoder(Native.keyspaces(pointer));
            return names.list(Decoder::text);
        } finally {
            exit(cell);
        }
    }

    /**
     * Writes a batch with the store's durability: all of it or nothing, across keyspaces.
     *
     * @param batch the batch, which stays as it is
     * @throws IllegalArgumentException if it has keyspaces of another store
     */
    public void write(WriteBatch batch) {
        write(batch, Durability.DEFAULT);
    }

    /**
     * Writes a batch: all of it or nothing, across keyspaces.
     *
     * @param batch the batch, which stays as it is
     * @param durability when the write counts as done
     * @throws IllegalArgumentException if it has keyspaces of another store
     */
    public void write(WriteBatch batch, Durability durability) {
        int number = durability.ordinal();
        Keyspace[] keyspaces = batch.keyspaces().toArray(Keyspace[]::new);
        long[] pointers = new long[keyspaces.length];
        int cell = gate.enter();
        try {
            for (int at = 0; at < keyspaces.length; at++) {
                if (keyspaces[at].store() != this) {
                    throw new IllegalArgumentException("the batch has keyspaces of another store, or from before this one "
                            + "was opened");
                }
                keyspaces[at].check();
                pointers[at] = keyspaces[at].pointer;
            }
            Native.write(pointer, batch.records(), batch.byteSize(), pointers, number);
        } finally {
            exit(cell);
            Reference.reachabilityFence(keyspaces);
        }
    }

    /**
     * The whole store as it is now.
     *
     * @return a snapshot, to be closed
     */
    public Snapshot snapshot() {
        int cell = gate.enter();
        try {
            return new Snapshot(this, Native.snapshot(pointer));
        } finally {
            exit(cell);
        }
    }

    /** Writes everything into tables. It is durable on return. */
    public void flush() {
        call(Native::flush);
    }

    /** Makes everything written so far durable. */
    public void sync() {
        call(Native::sync);
    }

    /** Flushes, and merges what is in tables then until nothing is left to do about it. What is written meanwhile is not waited for. */
    public void waitForCompactions() {
        call(Native::waitForCompactions);
    }

    /**
     * Goes on after a failure that stopped all writes ({@link EskerException.Code#HALTED}), once its cause is removed. Reads
     * went on all the while.
     */
    public void resume() {
        call(Native::resume);
    }

    /**
     * Makes a second store that holds what this one holds now. Files that never change are shared where the file system can.
     *
     * @param directory where to make it; it must not exist
     */
    public void checkpoint(Path directory) {
        byte[] path = Paths.bytes(directory);
        call(store -> Native.checkpoint(store, path));
    }

    /**
     * The shape of the store, and what it has done.
     *
     * @return figures as of now
     */
    public Stats stats() {
        int cell = gate.enter();
        try {
            return new Decoder(Native.stats(pointer)).stats();
        } finally {
            exit(cell);
        }
    }

    /**
     * A property as text: {@code esker.stats}, {@code esker.levels}, {@code esker.sequence}, {@code esker.disk-bytes},
     * {@code esker.memory-used}, {@code esker.write-amplification}, {@code esker.halted}.
     *
     * @param name the name
     * @return its text; empty when there is none of that name
     */
    public Optional<String> property(String name) {
        byte[] bytes = utf8(name);
        int cell = gate.enter();
        try {
            byte[] text = Native.property(pointer, bytes);
            return text == null ? Optional.empty() : Optional.of(new String(text, StandardCharsets.UTF_8));
        } finally {
            exit(cell);
        }
    }

    /**
     * Reads and checks the tables of this store and what they refer to: checksums, order, references. Its log, and large
     * values that were read before, it does not check again.
     *
     * @return what was found
     */
    public VerifyReport verify() {
        int cell = gate.enter();
        try {
            return new Decoder(Native.verifyStore(pointer)).verifyReport();
        } finally {
            exit(cell);
        }
    }

    /**
     * Where the store is.
     *
     * @return the directory that it was opened with; also after it was closed
     */
    public Path directory() {
        return directory;
    }

    /**
     * Whether calls can be made.
     *
     * @return false from the beginning of {@link #close} on
     */
    public boolean isOpen() {
        return !gate.isClosed();
    }

    /**
     * Flushes and closes the store. Calls that are under way end first, or fail: those that may take long (compactions, bulk
     * loads) throw {@link IllegalStateException}. Closing again waits for that, and does nothing.
     *
     * <p>The store is closed also when this throws; what was written is in the log then. A bulk load's iterator may close the
     * store that it loads into.
     */
    @Override
    public void close() {
        synchronized (closing) {
            if (gate.isClosed()) return;
            gate.close();
            try {
                Native.closeStore(pointer);
            } finally {
                gate.drain();
                held.close();
                Reference.reachabilityFence(this);
            }
        }
    }

    /**
     * Verifies a store that is not open for writing, changing nothing, even when it is too damaged to open.
     *
     * @param directory where it is
     * @return what was found
     */
    public static VerifyReport verify(Path directory) {
        NativeLibrary.load();
        byte[] path = Paths.bytes(directory);
        return new Decoder(Held.afterCollection(directory, () -> Native.verify(path))).verifyReport();
    }

    /**
     * Saves what is intact of a damaged store that is not open, and makes it open again. A sound one stays as it is. Damaged
     * files are kept in {@code lost/} inside the directory.
     *
     * @param directory where it is
     * @return what was done
     */
    public static RepairReport repair(Path directory) {
        return repair(directory, new Options());
    }

    /**
     * As {@link #repair(Path)}, for a store that was opened with options. Of these it takes compression and block size for the
     * tables that it writes, and the order of the default keyspace, for when the store does not know it any more.
     *
     * @param directory where it is
     * @param options what the store is opened with
     * @return what was done
     */
    public static RepairReport repair(Path directory, Options options) {
        NativeLibrary.load();
        byte[] path = Paths.bytes(directory);
        return new Decoder(Held.afterCollection(directory, () -> Native.repair(path, options.compression.ordinal(),
                options.blockSizeBytes, number(options.order)))).repairReport();
    }

    /**
     * Removes the store in a directory: all its files, and the directory if nothing else is in it.
     *
     * @param directory where it is; it must not be open
     */
    public static void destroy(Path directory) {
        NativeLibrary.load();
        byte[] path = Paths.bytes(directory);
        Held.afterCollection(directory, () -> {
            Native.destroy(path);
            return null;
        });
    }

    private static byte[] utf8(String name) {
        return Objects.requireNonNull(name, "name").getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String toString() {
        return "Esker(" + directory + ")";
    }
}
