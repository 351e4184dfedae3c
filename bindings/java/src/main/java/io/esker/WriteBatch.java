package io.esker;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Writes that {@link Esker#write(WriteBatch)} applies together or not at all, in the order in which they were added: of two
 * for one key the later one counts. Keys and values are copied at once, into memory of Java's.
 *
 * <p>One thread at a time may use a batch. It can be written several times, and cleared and filled again.
 */
public final class WriteBatch {
    /** Bytes that a batch may have, less than an array may. */
    private static final int MOST_BYTES = Integer.MAX_VALUE - 64;
    private static final int HEAD_BYTES = 13;
    private static final int FEW_KEYSPACES = 4;
    private static final byte PUT = 0;
    private static final byte DELETE = 1;
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    /** Records: what to do (1 byte), number of the keyspace, lengths of key and value (4 bytes each), key, value. */
    private byte[] records = new byte[256];
    private int end;
    private int count;
    /** Those named so far; number 1 is the first, 0 the default keyspace of whichever store. */
    private List<Keyspace> keyspaces = new ArrayList<>();
    /** Their numbers. A program may ask the store for a keyspace at each write, and has a new object each time. */
    private Map<Keyspace, Integer> numbers = new IdentityHashMap<>(FEW_KEYSPACES);
    private Keyspace lastKeyspace;
    private int lastNumber;

    /** An empty batch. */
    public WriteBatch() {}

    /**
     * Gives a key a value, in the default keyspace.
     *
     * @param key the key
     * @param value the value
     * @return this batch
     * @throws IllegalArgumentException if one is too long, or the batch would have 2 GiB
     */
    public WriteBatch put(byte[] key, byte[] value) {
        return add(PUT, 0, key, value);
    }

    /**
     * Gives a key a value.
     *
     * @param keyspace the keyspace; a batch has those of one store
     * @param key the key
     * @param value the value
     * @return this batch
     * @throws IllegalArgumentException if one is too long, or the batch would have 2 GiB, or the keyspace is of another store
     *     than one named before
     */
    public WriteBatch put(Keyspace keyspace, byte[] key, byte[] value) {
        return add(PUT, number(keyspace), key, value);
    }

    /**
     * Takes the value of a key away, in the default keyspace.
     *
     * @param key the key, whether it is there or not
     * @return this batch
     * @throws IllegalArgumentException if it is too long, or the batch would have 2 GiB
     */
    public WriteBatch delete(byte[] key) {
        return add(DELETE, 0, key, Bytes.NONE);
    }

    /**
     * Takes the value of a key away.
     *
     * @param keyspace the keyspace; a batch has those of one store
     * @param key the key, whether it is there or not
     * @return this batch
     * @throws IllegalArgumentException if it is too long, or the batch would have 2 GiB, or the keyspace is of another store
     *     than one named before
     */
    public WriteBatch delete(Keyspace keyspace, byte[] key) {
        return add(DELETE, number(keyspace), key, Bytes.NONE);
    }

    /** Removes everything. Memory stays for the next use, up to 1 MiB. */
    public void clear() {
        if (records.length > 1 << 20) records = new byte[256];
        end = 0;
        count = 0;
        if (keyspaces.size() > FEW_KEYSPACES) {
            keyspaces = new ArrayList<>();
            numbers = new IdentityHashMap<>(FEW_KEYSPACES);
        }
        keyspaces.clear();
        numbers.clear();
        lastKeyspace = null;
    }

    /**
     * How many writes there are.
     *
     * @return their number
     */
    public int count() {
        return count;
    }

    /**
     * How large the batch is.
     *
     * @return bytes of keys and values, and {@value #HEAD_BYTES} for each write
     */
    public int byteSize() {
        return end;
    }

    private int number(Keyspace keyspace) {
        Objects.requireNonNull(keyspace, "keyspace");
        if (keyspace == lastKeyspace) return lastNumber;
        Integer known = numbers.get(keyspace);
        int number = known == null ? keyspaces.size() + 1 : known;
        if (known == null) {
            if (!keyspaces.isEmpty() && keyspaces.get(0).store() != keyspace.store()) {
                throw new IllegalArgumentException("keyspaces of two stores in one batch");
            }
            keyspaces.add(keyspace);
            numbers.put(keyspace, number);
        }
        lastKeyspace = keyspace;
        lastNumber = number;
        return number;
    }

    private WriteBatch add(byte what, int keyspace, byte[] key, byte[] value) {
        Bytes.checkKey(key);
        Bytes.checkValue(value);
        long needed = (long) end + HEAD_BYTES + key.length + value.length;
        if (needed > records.length) grow(needed);
        byte[] to = records;
        int at = end;
        to[at] = what;
        INT.set(to, at + 1, keyspace);
        INT.set(to, at + 5, key.length);
        INT.set(to, at + 9, value.length);
        System.arraycopy(key, 0, to, at + HEAD_BYTES, key.length);
        System.arraycopy(value, 0, to, at + HEAD_BYTES + key.length, value.length);
        end = (int) needed;
        count++;
        return this;
    }

    private void grow(long needed) {
        if (needed > MOST_BYTES) {
            throw new IllegalArgumentException("a batch has less than 2 GiB: write this one, and begin another");
        }
        records = Arrays.copyOf(records, (int) Math.min(MOST_BYTES, Math.max(needed, 2L * records.length)));
    }

    byte[] records() {
        return records;
    }

    List<Keyspace> keyspaces() {
        return keyspaces;
    }
}
