package io.esker.kafka;

import io.esker.Cursor;
import io.esker.EskerException;
import io.esker.Keyspace;
import io.esker.KeyspaceStats;
import io.esker.RunStats;
import io.esker.WriteBatch;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * One keyspace of a {@link TaskStore} with the writes that wait for a commit in front of it.
 *
 * <p>What is read is the newest of three layers: the active buffer, which takes writes; the frozen one, which a commit is just
 * writing; the keyspace. Readers take no lock. A reader looks at the layers before it looks at the keyspace: what it does not find
 * in the frozen buffer the commit does not write, and a buffer that is no longer there is in the keyspace already.
 */
final class Table {
    /** The buffers, replaced as a pair. The frozen one is null but while a commit writes. */
    private record Layers(WriteBuffer active, WriteBuffer frozen) {}

    private final TaskStore store;
    private final String name;
    private volatile boolean passing;
    /** Null until the first write of a new one. */
    private volatile Keyspace keyspace;
    private volatile Layers layers = new Layers(new WriteBuffer(), null);
    private volatile boolean dropped;

    /**
     * @param passing whether it goes before the next commit, and has no keyspace, unless it is kept
     */
    Table(TaskStore store, String name, boolean passing) {
        this.store = store;
        this.name = name;
        this.passing = passing;
    }

    /** The name of the keyspace. */
    String name() {
        return name;
    }

    boolean isPassing() {
        return passing;
    }

    void keep() {
        passing = false;
    }

    boolean isBound() {
        return keyspace != null;
    }

    void bind(Keyspace keyspace) {
        this.keyspace = keyspace;
    }

    /** The newest value of a key; null when there is none. */
    byte[] get(byte[] key) {
        Layers now = layers;
        WriteBuffer.Version version = now.active.newest(key);
        if (version == null && now.frozen != null) version = now.frozen.newest(key);
        if (version != null) return version.value;
        Keyspace stored = keyspace;
        if (stored == null || key.length > TaskStore.MOST_KEY_BYTES) return null;
        try {
            return stored.get(key);
        } catch (EskerException e) {
            if (dropped) return null; // the segment expired under this reader
            throw e;
        }
    }

    /**
     * Entries between two bounds as of now, null for none. It is to be closed; closing the store closes it too.
     *
     * @param from the first key that may be among them
     * @param to the last key, which is among them when {@code toInclusive}
     */
    KeyValueIterator<Bytes, byte[]> iterate(byte[] from, byte[] to, boolean toInclusive, boolean forward) {
        if (from != null && to != null && Arrays.compareUnsigned(from, to) > 0) return MergedIterator.empty();
        while (true) {
            Layers then = layers;
            long sequence = store.beginReading();
            Keyspace stored = keyspace;
            Cursor cursor;
            try {
                cursor = stored == null ? null : stored.cursor();
            } catch (EskerException e) {
                if (dropped) return MergedIterator.empty();
                throw e;
            }
            // A commit that froze the buffer in between may have put later writes into the keyspace.
            if (layers.active != then.active) {
                if (cursor != null) cursor.close();
                continue;
            }
            List<MergedIterator.Source> sources = new ArrayList<>(3);
            sources.add(MergedIterator.buffered(then.active.part(from, to, toInclusive, forward), sequence));
            if (then.frozen != null) {
                sources.add(MergedIterator.buffered(then.frozen.part(from, to, toInclusive, forward), sequence));
            }
            if (cursor != null) sources.add(MergedIterator.stored(cursor, from, to, toInclusive, forward));
            return store.opened(new MergedIterator(store, sources, cursor, forward));
        }
    }

    /**
     * How many entries there are, roughly: old versions count until they are merged away, and so do deletions until they are in tables,
     * where each is taken for one of a key that is there.
     */
    long approximateEntries() {
        Layers now = layers;
        long entries = now.active.size() + (now.frozen == null ? 0 : now.frozen.size());
        Keyspace stored = keyspace;
        return stored == null ? entries : approximateEntries(entries, stored.stats());
    }

    static long approximateEntries(long buffered, KeyspaceStats stats) {
        long entries = buffered + stats.memtableEntries();
        for (RunStats run : stats.runs()) entries += run.entries() - 2 * run.tombstones();
        return Math.max(0, entries);
    }

    /** Adds a write, under the store's lock. Returns by how many bytes the buffer grew. */
    long put(byte[] key, byte[] value, long sequence, long newestReader) {
        return layers.active.put(key, value, sequence, newestReader);
    }

    /** Puts the buffer into a batch and begins another, under the store's lock. */
    void freezeInto(WriteBatch batch) {
        WriteBuffer active = layers.active;
        if (active.isEmpty()) return;
        for (Map.Entry<byte[], WriteBuffer.Version> entry : active.newest()) {
            add(batch, entry.getKey(), entry.getValue().value);
        }
        layers = new Layers(new WriteBuffer(), active);
    }

    /** Adds a write to a batch; a null value deletes. */
    void add(WriteBatch batch, byte[] key, byte[] value) {
        if (value == null) {
            batch.delete(keyspace, key);
        } else {
            batch.put(keyspace, key, value);
        }
    }

    /** The batch was written: what was frozen is in the keyspace. */
    void thaw() {
        Layers now = layers;
        if (now.frozen != null) layers = new Layers(now.active, null);
    }

    /** The batch was refused: what was frozen takes writes again. Nothing was written since, as the lock was held. */
    void unfreeze() {
        Layers now = layers;
        if (now.frozen != null) layers = new Layers(now.frozen, null);
    }

    /** Writes that nobody committed are forgotten. */
    void discard() {
        layers = new Layers(new WriteBuffer(), null);
    }

    void markDropped() {
        dropped = true;
    }
}
