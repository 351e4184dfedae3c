package io.esker;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The functions of the native library. Pointers are to boxes that live until their {@code free} function, which is called
 * when nothing can call with them any more: by a cleaner, or by a close that has waited for all calls.
 *
 * <p>Texts come and go as UTF-8, not as strings: what JNI calls UTF-8 is none. All functions throw what {@link #failure}
 * makes, and {@link OutOfMemoryError}. Lengths beside keys and values are those of the arrays: asking for them is a call.
 */
final class Native {
    /** Frees what was forgotten. */
    static final Cleaner CLEANER = Cleaner.create();

    static final int FIRST = 0;
    static final int LAST = 1;
    static final int SEEK = 2;
    static final int SEEK_BACK = 3;
    static final int NEXT = 4;
    static final int PREVIOUS = 5;
    /** Goes on behind a key that the cursor has been on, which it may have left in the other direction. */
    static final int NEXT_OF = 6;
    static final int PREVIOUS_OF = 7;

    private Native() {}

    /** Called by the library: the exception for an error. Codes are those of the library's {@code Failure}. */
    static RuntimeException failure(int code, byte[] message, int osCode) {
        String text = new String(message, StandardCharsets.UTF_8);
        return switch (code) {
            case 1 -> new IllegalArgumentException(text);
            case 2 -> new IllegalStateException("the store was closed");
            default -> new EskerException(EskerException.Code.values()[code - 3], text, osCode);
        };
    }

    static native byte[] version();

    static native long open(byte[] path, long memory, int durability, int compression, int flags, int blobThreshold,
            int blockSize, long segmentSize, int order);
    static native void closeStore(long store);
    static native void freeStore(long store);
    static native void flush(long store);
    static native void sync(long store);
    static native void waitForCompactions(long store);
    static native void resume(long store);
    static native void checkpoint(long store, byte[] path);
    static native byte[] stats(long store);
    static native byte[] property(long store, byte[] name);
    static native byte[] verifyStore(long store);
    static native void write(long store, byte[] records, int length, long[] keyspaces, int durability);

    static native byte[] verify(byte[] path);
    static native byte[] repair(byte[] path, int compression, int blockSize, int order);
    static native void destroy(byte[] path);

    static native long defaultKeyspace(long store);
    static native long keyspace(long store, byte[] name);
    static native long createKeyspace(long store, byte[] name, int compression, int blobThreshold, int order);
    static native void dropKeyspace(long store, byte[] name);
    static native byte[] keyspaces(long store);
    static native int order(long keyspace);
    static native void compactRange(long keyspace, byte[] from, boolean fromInclusive, byte[] to, boolean toInclusive);
    static native long approximateSize(long keyspace, byte[] from, boolean fromInclusive, byte[] to, boolean toInclusive);
    static native long bulkLoad(long keyspace, BulkLoad source);
    static native void put(long keyspace, byte[] key, int keyLength, byte[] value, int valueLength, int durability);
    static native void putBuffers(long keyspace, byte[] keyArray, ByteBuffer keyBuffer, int keyAt, int keyLength,
            byte[] valueArray, ByteBuffer valueBuffer, int valueAt, int valueLength, int durability);
    static native void delete(long keyspace, byte[] key, int keyLength, int durability);

    static native long snapshot(long store);
    static native long sequence(long snapshot);
    static native void freeSnapshot(long snapshot);
    /** A reader of the keyspace as the snapshot sees it. */
    static native long at(long keyspace, long snapshot);

    /** A reader is a keyspace, or one at a snapshot. */
    static native void freeReader(long reader);
    static native byte[] get(long reader, byte[] key, int keyLength);
    static native int getInto(long reader, byte[] keyArray, ByteBuffer keyBuffer, int keyAt, int keyLength,
            byte[] array, ByteBuffer buffer, int at, int room);
    /** The address and the length of a value, and the slice that keeps it; false when there is none. */
    static native boolean lend(long reader, byte[] key, int keyLength, long[] addressLengthSlice);
    static native ByteBuffer buffer(long address, long length);
    static native void freeSlice(long slice);
    static native boolean contains(long reader, byte[] key, int keyLength);
    static native byte[][] multiGet(long reader, byte[][] keys);

    static native long cursor(long reader, boolean keysOnly);
    static native byte[] read(long cursor, int move, byte[] key, int entries, int bytes, byte[] into, boolean mayWithhold);
    static native byte[] value(long cursor);
    static native void freeCursor(long cursor);
}
