package io.esker.bench;

import java.util.Random;

/** A store under test. Keys and values are byte arrays, as programs have them. */
interface Engine extends AutoCloseable {
    /** What the results call it. */
    String name();

    /** Makes an entry, durable as far as the end of the process. */
    void put(byte[] key, byte[] value) throws Exception;

    /** Makes entries together. */
    void putAll(byte[][] keys, byte[][] values) throws Exception;

    /** A value; null when there is none. */
    byte[] get(byte[] key) throws Exception;

    /** Bytes of all keys and values, each copied out, in order or backwards. */
    long scan(boolean backwards) throws Exception;

    /** Bytes of keys and values of so many entries from each of some keys on. */
    long seeks(byte[][] keys, int entries) throws Exception;

    /** Writes all of it into tables, and waits for merging. */
    void settle() throws Exception;

    @Override
    void close() throws Exception;

    /** Text that compresses to about a half, as much data does. */
    static byte[] value(int length, Random random) {
        byte[] value = new byte[length];
        for (int at = 0; at < length; at++) value[at] = (byte) ('a' + (at % 2 == 0 ? random.nextInt(26) : 0));
        return value;
    }
}
