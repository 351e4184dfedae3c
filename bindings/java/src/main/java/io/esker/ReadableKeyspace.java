package io.esker;

import java.nio.ByteBuffer;
import java.util.List;

/**
 * What can be read from: a {@link Keyspace}, or one as a {@link Snapshot} sees it. All methods may be called by any number of
 * threads, and throw {@link IllegalStateException} once the store, the keyspace or the snapshot was closed.
 *
 * <p>Keys have up to {@value Esker#MAX_KEY_LENGTH} bytes; a longer one is an {@link IllegalArgumentException}.
 */
public sealed interface ReadableKeyspace permits Reader {
    /**
     * The order of its keys.
     *
     * @return the order
     */
    Order order();

    /**
     * The value of a key.
     *
     * @param key the key
     * @return the value, which is the caller's; null when there is none
     */
    byte[] get(byte[] key);

    /**
     * Copies the value of a key into a buffer: as much of it as fits, from the position on. The position moves behind what
     * was copied, the limit stays.
     *
     * @param key the key
     * @param into a direct buffer or one on the heap
     * @return the length of the whole value, which may be more than fitted; -1 when there is none
     * @throws java.nio.ReadOnlyBufferException if the buffer cannot be written
     */
    int get(byte[] key, ByteBuffer into);

    /**
     * The same for a key in a buffer: its bytes from the position to the limit, which both stay as they are.
     *
     * @param key a direct buffer or one on the heap
     * @param into a direct buffer or one on the heap
     * @return the length of the whole value, which may be more than fitted; -1 when there is none
     * @throws java.nio.ReadOnlyBufferException if the buffer cannot be written
     */
    int get(ByteBuffer key, ByteBuffer into);

    /**
     * The value of a key where it lies, not copied unless it is stored compressed. Its files, and the lock of the directory,
     * are kept until the buffer and all that was made of it (slices, duplicates) are unreachable, also when the store is
     * closed.
     *
     * @param key the key
     * @return a direct buffer that can only be read; null when there is no value
     * @throws OutOfMemoryError if as much is lent already as the property {@code esker.lentBytes} allows, by default as many
     *     bytes as the heap may have, 1 GiB at least
     */
    ByteBuffer getBuffer(byte[] key);

    /**
     * Whether a key has a value. Cheaper than {@link #get(byte[])} for large values.
     *
     * @param key the key
     * @return whether there is one
     */
    boolean contains(byte[] key);

    /**
     * The values of several keys as of one moment, faster than one after the other.
     *
     * @param keys the keys
     * @return the values in the same order, null where there is none; a list that can be changed
     */
    List<byte[]> multiGet(List<byte[]> keys);

    /**
     * A cursor over the present state, on no entry yet.
     *
     * @return a cursor to be closed
     */
    default Cursor cursor() {
        return cursor(false);
    }

    /**
     * A cursor over the present state, on no entry yet.
     *
     * @param keysOnly whether to leave the values alone: they are empty then
     * @return a cursor to be closed
     */
    Cursor cursor(boolean keysOnly);

    /**
     * All entries, in order.
     *
     * @return what makes iterators over them
     */
    default Entries entries() {
        return entries(Range.all());
    }

    /**
     * The entries of a range, in order.
     *
     * @param range the range
     * @return what makes iterators over them
     */
    Entries entries(Range range);
}
