package io.esker;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.ConcurrentModificationException;
import java.util.NoSuchElementException;
import java.util.Objects;

/**
 * A walk over the entries of a keyspace, in both directions, as they were when it was made. A new cursor is on no entry.
 *
 * <p>Moves read ahead: entries come in batches, which grow while the walk keeps its direction, from 4 entries up to 1024, or
 * {@value #MOST_BYTES} bytes (one entry at least). A move within a batch asks the store nothing.
 *
 * <p>One thread at a time may use it: a second one gets a {@link ConcurrentModificationException}. It stays usable when its
 * store or snapshot is closed, and keeps the files that it sees and the lock of the directory until it is closed. One that is
 * forgotten is closed when it is collected.
 *
 * <p>A move that fails throws {@link EskerException}; then the cursor is on no entry. {@link #next} and {@link #previous} give
 * the same error again, and a move to a place ({@link #seek} and the like) goes on from there.
 */
public final class Cursor implements AutoCloseable {
    /** Bytes of entries that are read ahead at most. */
    static final int MOST_BYTES = 64 << 10;
    private static final int MOST_ENTRIES = 1024;
    private static final int FEWEST_ENTRIES = 4;
    private static final int FEWEST_BYTES = 4 << 10;
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle BUSY;

    static {
        try {
            BUSY = MethodHandles.lookup().findVarHandle(Cursor.class, "busy", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final Box box;
    private final Cleaner.Cleanable cleanable;
    /** Whether a thread is in a method. */
    @SuppressWarnings("unused")
    private boolean busy;
    /** Set before whoever closes it waits, so that a second thread that is refused meanwhile is told why. */
    private volatile boolean closed;

    /** The number of entries, then each: lengths of key and value (4 bytes each), key, value. In the order of the walk. */
    private byte[] batch = Bytes.NONE;
    /** Where each entry of the batch begins. */
    private int[] starts = new int[FEWEST_ENTRIES];
    private int count;
    /** The entry that the cursor is on; -1 for none. */
    private int at = -1;
    /** Whether the batch was read towards the end. */
    private boolean forward = true;
    /** Whether the library's cursor is where the batch ends, so that it can go on from there. */
    private boolean attached;
    /** Whether a large value is read only when it is asked for: whoever looks at the key first may not want it. */
    private final boolean withholds;
    /** Whether the batch lacks the value of its one entry. */
    private boolean withheld;
    /** Whether the last move had no memory for its entries, which are lost with it. */
    private boolean starved;
    /** How often the library was asked. */
    private int reads;
    private int entriesAhead = FEWEST_ENTRIES;
    private int bytesAhead = FEWEST_BYTES;

    /** The cursor's box. Refers to no cursor. */
    private record Box(long pointer, Held held) implements Runnable {
        @Override
        public void run() {
            Native.freeCursor(pointer);
            held.remove();
        }
    }

    /** With {@code withholds} only for who asks for nothing but moves, {@link #key} and {@link #value}. */
    Cursor(long pointer, Held held, boolean withholds) {
        this.withholds = withholds;
        box = new Box(pointer, held);
        held.add();
        cleanable = Native.CLEANER.register(this, box);
    }

    private void enter() {
        boolean entered = BUSY.compareAndSet(this, false, true);
        if (closed) {
            if (entered) exit();
            throw new IllegalStateException("the cursor was closed");
        }
        if (!entered) throw new ConcurrentModificationException("another thread is using this cursor");
    }

    private void exit() {
        BUSY.setRelease(this, false);
    }

    /**
     * To the first entry.
     *
     * @return whether there is one
     */
    public boolean first() {
        return position(Native.FIRST, null);
    }

    /**
     * To the last entry.
     *
     * @return whether there is one
     */
    public boolean last() {
        return position(Native.LAST, null);
    }

    /**
     * To the first entry whose key is not before one.
     *
     * @param key the key to look for
     * @return whether there is such an entry
     */
    public boolean seek(byte[] key) {
        Bytes.checkKey(key);
        return position(Native.SEEK, key);
    }

    /**
     * To the last entry whose key is not after one.
     *
     * @param key the key to look for
     * @return whether there is such an entry
     */
    public boolean seekBack(byte[] key) {
        Bytes.checkKey(key);
        return position(Native.SEEK_BACK, key);
    }

    /**
     * One entry on.
     *
     * @return whether there is one; false too when the cursor was on no entry
     */
    public boolean next() {
        enter();
        try {
            return step(true);
        } finally {
            exit();
        }
    }

    /**
     * One entry back.
     *
     * @return whether there is one; false too when the cursor was on no entry
     */
    public boolean previous() {
        enter();
        try {
            return step(false);
        } finally {
            exit();
        }
    }

    /**
     * Whether the cursor is on an entry.
     *
     * @return what the last move returned
     */
    public boolean isValid() {
        enter();
        try {
            return at >= 0;
        } finally {
            exit();
        }
    }

    /**
     * The key of the entry.
     *
     * @return a copy, which is the caller's
     * @throws NoSuchElementException if the cursor is on no entry
     */
    public byte[] key() {
        enter();
        try {
            int start = start();
            return Arrays.copyOfRange(batch, start + 8, start + 8 + keyLength(start));
        } finally {
            exit();
        }
    }

    /**
     * The value of the entry.
     *
     * @return a copy, which is the caller's; empty for a cursor of keys only
     * @throws NoSuchElementException if the cursor is on no entry
     */
    public byte[] value() {
        enter();
        try {
            int start = start();
            if (withheld) return Native.value(box.pointer);
            int from = start + 8 + keyLength(start);
            return Arrays.copyOfRange(batch, from, from + valueLength(start));
        } finally {
            exit();
        }
    }

    /**
     * The length of the key.
     *
     * @return bytes
     * @throws NoSuchElementException if the cursor is on no entry
     */
    public int keyLength() {
        enter();
        try {
            return keyLength(start());
        } finally {
            exit();
        }
    }

    /**
     * The length of the value.
     *
     * @return bytes; 0 for a cursor of keys only
     * @throws NoSuchElementException if the cursor is on no entry
     */
    public int valueLength() {
        enter();
        try {
            return valueLength(start());
        } finally {
            exit();
        }
    }

    /**
     * The key of the entry, not copied.
     *
     * @return a buffer on the heap that can only be read; after the next move it may have other bytes
     * @throws NoSuchElementException if the cursor is on no entry
     */
    public ByteBuffer keyBuffer() {
        enter();
        try {
            int start = start();
            return view(start + 8, keyLength(start));
        } finally {
            exit();
        }
    }

    /**
     * The value of the entry, not copied.
     *
     * @return a buffer on the heap that can only be read; after the next move it may have other bytes
     * @throws NoSuchElementException if the cursor is on no entry
     */
    public ByteBuffer valueBuffer() {
        enter();
        try {
            int start = start();
            return view(start + 8 + keyLength(start), valueLength(start));
        } finally {
            exit();
        }
    }

    int reads() {
        return reads;
    }

    private ByteBuffer view(int from, int length) {
        return ByteBuffer.wrap(batch, from, length).slice().asReadOnlyBuffer();
    }

    private int start() {
        if (at < 0) throw new NoSuchElementException("the cursor is on no entry");
        return starts[at];
    }

    private int keyLength(int start) {
        return (int) INT.get(batch, start);
    }

    private int valueLength(int start) {
        return (int) INT.get(batch, start + 4);
    }

    private boolean position(int move, byte[] key) {
        enter();
        try {
            entriesAhead = FEWEST_ENTRIES;
            bytesAhead = FEWEST_BYTES;
            forward = move == Native.FIRST || move == Native.SEEK;
            return read(move, key);
        } finally {
            exit();
        }
    }

    private boolean step(boolean towardsEnd) {
        if (at < 0) return attached && failAgain(towardsEnd);
        int next = towardsEnd == forward ? at + 1 : at - 1;
        if (next >= 0 && next < count) {
            at = next;
            return true;
        }
        if (towardsEnd == forward && attached) {
            entriesAhead = Math.min(MOST_ENTRIES, 2 * entriesAhead);
            bytesAhead = Math.min(MOST_BYTES, 2 * bytesAhead);
            return read(towardsEnd ? Native.NEXT : Native.PREVIOUS, null);
        }
        // The library's cursor is at the other end of the batch.
        int start = starts[at];
        byte[] key = Arrays.copyOfRange(batch, start + 8, start + 8 + keyLength(start));
        forward = towardsEnd;
        entriesAhead = FEWEST_ENTRIES;
        bytesAhead = FEWEST_BYTES;
        return read(towardsEnd ? Native.NEXT_OF : Native.PREVIOUS_OF, key);
    }

    /** A move after one that failed: the library's cursor knows the error. */
    private boolean failAgain(boolean towardsEnd) {
        if (starved) throw new OutOfMemoryError("the last move had no memory for its entries; move the cursor to a place");
        return read(towardsEnd ? Native.NEXT : Native.PREVIOUS, null);
    }

    private boolean read(int move, byte[] key) {
        at = -1;
        count = 0;
        attached = true;
        byte[] into = batch.length <= 4 * MOST_BYTES ? batch : Bytes.NONE;
        int found;
        reads++;
        starved = true;
        try {
            batch = Native.read(box.pointer, move, key, entriesAhead, bytesAhead, into, withholds);
            found = (int) INT.get(batch, 0);
            if (found > starts.length) starts = new int[Math.max(found, 2 * starts.length)];
            starved = false;
        } catch (RuntimeException e) {
            starved = false;
            throw e;
        }
        int start = 4;
        for (int entry = 0; entry < found; entry++) {
            starts[entry] = start;
            start += 8 + keyLength(start) + valueLength(start);
        }
        withheld = start > batch.length;
        count = found;
        attached = found > 0;
        at = found > 0 ? 0 : -1;
        return attached;
    }

    /** Gives back what the cursor holds. Waits for a move under way in another thread. Closing again does nothing. */
    @Override
    public void close() {
        closed = true;
        while (!BUSY.compareAndSet(this, false, true)) Thread.yield();
        try {
            at = -1;
            batch = Bytes.NONE;
            cleanable.clean();
        } finally {
            exit();
        }
    }
}
