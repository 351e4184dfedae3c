package io.esker.bench;

import io.esker.Cursor;
import io.esker.Esker;
import io.esker.Keyspace;
import io.esker.Options;
import io.esker.WriteBatch;
import java.nio.file.Path;

/** Esker with its defaults, but for the memory. */
final class EskerEngine implements Engine {
    private final Esker db;
    private final Keyspace keyspace;

    EskerEngine(Path directory, long memoryBytes) {
        db = Esker.open(directory, new Options().memory(memoryBytes));
        keyspace = db.keyspace();
    }

    @Override
    public String name() {
        return "Esker";
    }

    @Override
    public void put(byte[] key, byte[] value) {
        keyspace.put(key, value);
    }

    @Override
    public void putAll(byte[][] keys, byte[][] values) {
        WriteBatch batch = new WriteBatch();
        for (int at = 0; at < keys.length; at++) batch.put(keys[at], values[at]);
        db.write(batch);
    }

    @Override
    public byte[] get(byte[] key) {
        return keyspace.get(key);
    }

    @Override
    public long scan(boolean backwards) {
        long bytes = 0;
        try (Cursor cursor = keyspace.cursor()) {
            for (boolean on = backwards ? cursor.last() : cursor.first(); on; on = backwards ? cursor.previous() : cursor.next()) {
                bytes += cursor.key().length + cursor.value().length;
            }
        }
        return bytes;
    }

    @Override
    public long seeks(byte[][] keys, int entries) {
        long bytes = 0;
        try (Cursor cursor = keyspace.cursor()) {
            for (byte[] key : keys) {
                boolean on = cursor.seek(key);
                for (int at = 0; at < entries && on; at++, on = cursor.next()) {
                    bytes += cursor.key().length + cursor.value().length;
                }
            }
        }
        return bytes;
    }

    @Override
    public void settle() {
        db.waitForCompactions();
    }

    @Override
    public void close() {
        db.close();
    }
}
