package io.esker.infinispan;

import io.esker.Cursor;
import io.esker.Esker;
import io.esker.EskerException;
import io.esker.Keyspace;
import io.esker.Options;
import io.esker.ReadableKeyspace;
import io.esker.WriteBatch;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;

/**
 * The entries of one cache in one Esker store: everything that may block, on bytes, without Infinispan's threads and marshallers.
 *
 * <p>What always holds, outside the locks of {@link Stripes}: an entry that expires has exactly one row in the expiry index,
 * one that does not has none, and both are written in one batch; {@link SegmentCounts} counts what is there, once it is known.
 *
 * <p>Reads take no lock. One that meets a keyspace which {@link #clear} has just replaced looks again in the new one.
 */
final class EntryTable implements AutoCloseable {
    /** What a batch that removes or moves many entries may hold; it bounds memory, and how long others wait. */
    private static final int CHUNK_ENTRIES = 1024;
    private static final int CHUNK_BYTES = 1 << 20;

    /** Stands for the time of expiry of an entry that is not there. */
    private static final long ABSENT = -2;

    private final Esker esker;
    private final Stripes stripes;
    private final SegmentCounts counts;
    /**
     * Segments whose entries this node keeps; writes to others are dropped, as those entries would be found when they come
     * back.
     */
    private final IntSet owned;
    private volatile Generation generation;
    /** Held by who removes segments or everything, counts, or closes. */
    private final ReentrantLock structure = new ReentrantLock();
    private final Walks walks;

    private EntryTable(Esker esker, Generation generation, int stripeCount) {
        this.esker = esker;
        this.generation = generation;
        walks = new Walks(this, esker);
        stripes = new Stripes(stripeCount);
        int segments = generation.layout().segments();
        owned = IntSets.concurrentSet(segments);
        for (int segment = 0; segment < segments; segment++) {
            owned.set(segment);
        }
        counts = SegmentCounts.take(esker, segments, isEmpty(generation.entries()));
    }

    /**
     * Opens the store in a directory.
     *
     * @param isPurged whether what there is is removed, whatever it is; it need not be readable
     * @param wanted how keys are to be made; its generation does not count
     * @param segmentOf the segment of a marshalled key, for entries that were stored when there were other segments
     */
    static EntryTable open(Path directory, Options options, int stripeCount, boolean isPurged, Layout wanted,
            ToIntFunction<byte[]> segmentOf) {
        Esker esker = Esker.open(directory, options);
        try {
            Layout found = null;
            if (isPurged) {
                removeAll(esker);
            } else {
                found = Layout.read(esker);
                Layout.check(esker, found);
            }
            Layout layout = found == null ? wanted.withGeneration(1) : wanted.withGeneration(found.generation());
            dropLeftovers(esker, found);
            Generation generation;
            if (found != null && !found.makesSameKeysAs(wanted)) {
                generation = new Resegmenting(esker, found, layout.withGeneration(found.generation() + 1), segmentOf).run();
            } else {
                generation = Generation.openOrCreate(esker, layout);
                name(esker, layout);
            }
            return new EntryTable(esker, generation, stripeCount);
        } catch (RuntimeException | Error e) {
            closeAfter(esker, e);
            throw e;
        }
    }

    private static void removeAll(Esker esker) {
        dropLeftovers(esker, null);
        WriteBatch batch = new WriteBatch();
        try (Cursor cursor = esker.keyspace().cursor(true)) {
            for (boolean onEntry = cursor.first(); onEntry; onEntry = cursor.next()) {
                batch.delete(cursor.key());
                if (isFull(batch)) {
                    esker.write(batch);
                    batch.clear();
                }
            }
        }
        esker.write(batch);
    }

    private static void closeAfter(Esker esker, Throwable cause) {
        try {
            esker.close();
        } catch (RuntimeException e) {
            cause.addSuppressed(e);
        }
    }

    /** Lets a layout count from here on. */
    static void name(Esker esker, Layout layout) {
        WriteBatch batch = new WriteBatch();
        layout.addTo(batch);
        esker.write(batch);
    }

    /** Drops what a layout does not name; without one everything is left over. */
    static void dropLeftovers(Esker esker, Layout layout) {
        for (String keyspace : esker.keyspaces()) {
            if (layout == null ? !keyspace.equals(Layout.DEFAULT) : !layout.names(keyspace)) {
                esker.dropKeyspace(keyspace);
            }
        }
    }

    static boolean isEmpty(ReadableKeyspace keyspace) {
        try (Cursor cursor = keyspace.cursor(true)) {
            return !cursor.first();
        }
    }

    /** What is stored for an entry; null when it is not there, or this node does not keep its segment. */
    byte[] get(int segment, byte[] entryKey) {
        return owned.contains(segment) ? reading(now -> now.entries().get(entryKey)) : null;
    }

    /** Whether an entry is there that has not expired. */
    boolean isAlive(int segment, byte[] entryKey, long nowMs) {
        if (!owned.contains(segment)) {
            return false;
        }
        long expiryMs = reading(now -> expiryOf(now, entryKey));
        return expiryMs != ABSENT && !StoredEntry.isExpired(expiryMs, nowMs);
    }

    /** Keeps others from changing an entry, so that a change of it by this thread waits for none of them; null where one is about to. */
    Stripes.Held tryLock(byte[] entryKey) {
        return stripes.tryLock(entryKey);
    }

    /** Writes an entry. */
    void put(int segment, byte[] entryKey, byte[] stored, long expiryMs) {
        try (var held = stripes.lock(entryKey)) {
            if (!owned.contains(segment)) {
                return;
            }
            Generation now = generation;
            long before = expiryOf(now, entryKey);
            if (before < 0 && expiryMs == StoredEntry.NEVER) {
                changing(() -> now.entries().put(entryKey, stored));
            } else {
                WriteBatch batch = new WriteBatch();
                addTo(batch, now, entryKey, before, stored, expiryMs);
                write(batch);
            }
            if (before == ABSENT) {
                counts.add(segment, 1);
            }
        }
    }

    /** Removes an entry; false when there was none. */
    boolean delete(int segment, byte[] entryKey) {
        try (var held = stripes.lock(entryKey)) {
            Generation now = generation;
            long before = expiryOf(now, entryKey);
            if (before == ABSENT) {
                return false;
            }
            WriteBatch batch = new WriteBatch();
            addTo(batch, now, entryKey, before, null, StoredEntry.NEVER);
            write(batch);
            counts.add(segment, -1);
            return true;
        }
    }

    /** Makes all changes at once, or none. */
    void apply(Changes changes) {
        Map<ByteBuffer, Changes.Change> byKey = changes.byKey();
        List<byte[]> keys = byKey.keySet().stream().map(ByteBuffer::array).toList();
        try (var held = stripes.lock(keys)) {
            Generation now = generation;
            WriteBatch batch = new WriteBatch();
            List<byte[]> added = new ArrayList<>();
            List<byte[]> removed = new ArrayList<>();
            byKey.forEach((buffer, change) -> {
                byte[] entryKey = buffer.array();
                if (!change.isRemoval() && !owned.contains(EntryKeys.segmentOf(entryKey))) {
                    return;
                }
                long before = expiryOf(now, entryKey);
                addTo(batch, now, entryKey, before, change.stored(), change.expiryMs());
                if (before == ABSENT && !change.isRemoval()) {
                    added.add(entryKey);
                } else if (before != ABSENT && change.isRemoval()) {
                    removed.add(entryKey);
                }
            });
            write(batch);
            added.forEach(entryKey -> counts.add(EntryKeys.segmentOf(entryKey), 1));
            removed.forEach(entryKey -> counts.add(EntryKeys.segmentOf(entryKey), -1));
        }
    }

    private void write(WriteBatch batch) {
        changing(() -> esker.write(batch));
    }

    /** A write that failed may be there all the same, as its sync was what failed, and stays when the store goes on: who asks counts anew. */
    private void changing(Runnable write) {
        try {
            write.run();
        } catch (EskerException e) {
            counts.forget();
            throw e;
        }
    }

    /** Adds the change of one entry, and of its row in the expiry index, to a batch. */
    private static void addTo(WriteBatch batch, Generation now, byte[] entryKey, long before, byte[] stored, long expiryMs) {
        if (before >= 0 && before != expiryMs) {
            batch.delete(now.expiry(), EntryKeys.expiryRow(before, entryKey));
        }
        if (stored == null) {
            if (before != ABSENT) {
                batch.delete(now.entries(), entryKey);
            }
            return;
        }
        batch.put(now.entries(), entryKey, stored);
        if (expiryMs != StoredEntry.NEVER && before != expiryMs) {
            batch.put(now.expiry(), EntryKeys.expiryRow(expiryMs, entryKey), new byte[0]);
        }
    }

    /** When an entry expires, {@link StoredEntry#NEVER} or {@link #ABSENT}; reads no more of it than its head. */
    private static long expiryOf(Generation now, byte[] entryKey) {
        byte[] head = new byte[StoredEntry.HEAD_BYTES];
        int length = now.entries().get(entryKey, ByteBuffer.wrap(head));
        if (length < 0) {
            return ABSENT;
        }
        return StoredEntry.expiryOf(length < head.length ? java.util.Arrays.copyOf(head, length) : head);
    }

    /** The pair of keyspaces that counts now. */
    Generation generation() {
        return generation;
    }

    /** Reads where entries are, also behind a {@link #clear} that comes in between. */
    <T> T reading(Function<Generation, T> read) {
        while (true) {
            Generation now = generation;
            try {
                return read.apply(now);
            } catch (EskerException e) {
                if (e.code() != EskerException.Code.KEYSPACE || now == generation) {
                    throw e;
                }
            }
        }
    }

    /**
     * Removes everything, at once also for a crash: few entries in one batch, many by a new pair of keyspaces, which takes the
     * same time for any number.
     */
    void clear() {
        structure.lock();
        try (var held = stripes.lockAll()) {
            Generation now = generation;
            WriteBatch batch = new WriteBatch();
            if (addDeletes(batch, now.entries()) && addDeletes(batch, now.expiry())) {
                write(batch);
            } else {
                replace(now);
            }
            counts.reset();
        } finally {
            structure.unlock();
        }
    }

    /** Adds a delete of each key; false when there are too many. */
    private static boolean addDeletes(WriteBatch batch, Keyspace keyspace) {
        try (Cursor cursor = keyspace.cursor(true)) {
            for (boolean onEntry = cursor.first(); onEntry; onEntry = cursor.next()) {
                if (isFull(batch)) {
                    return false;
                }
                batch.delete(keyspace, cursor.key());
            }
            return true;
        }
    }

    static boolean isFull(WriteBatch batch) {
        return batch.count() >= CHUNK_ENTRIES || batch.byteSize() >= CHUNK_BYTES;
    }

    private void replace(Generation now) {
        Layout next = now.layout().withGeneration(now.layout().generation() + 1);
        Generation empty = Generation.openOrCreate(esker, next);
        try {
            name(esker, next);
        } catch (EskerException e) {
            // What failed may be its sync: the record is there then, and stays when the store goes on. Whatever is written from now
            // on goes where it leads, or the next start would drop it.
            counts.forget();
            try {
                if (next.equals(Layout.read(esker))) {
                    generation = empty;
                }
            } catch (RuntimeException again) {
                e.addSuppressed(again);
            }
            throw e;
        }
        generation = empty;
        // Also where a drop fails: what it leaves goes at the next such removal, or when the store is opened again.
        counts.reset();
        dropLeftovers(esker, next);
    }

    /** Entries of these segments are kept from here on. */
    void addSegments(IntSet segments) {
        structure.lock();
        try {
            owned.addAll(segments);
        } finally {
            structure.unlock();
        }
    }

    /** Removes all entries of these segments, and keeps none that is written to them later. */
    void removeSegments(IntSet segments) {
        structure.lock();
        try {
            // Who writes has looked at `owned` under a stripe: behind this, no write to these segments is under way.
            try (var held = stripes.lockAll()) {
                owned.removeAll(segments);
            }
            boolean removed = false;
            try {
                for (int segment : ascending(segments)) {
                    removeSegment(segment);
                }
                removed = true;
            } finally {
                // Who removes one entry has looked for it under a stripe, and takes it off the count there: behind this, nobody is
                // about to take off what went with its segment.
                try (var held = stripes.lockAll()) {
                    if (removed) {
                        segments.forEach((int segment) -> counts.set(segment, 0));
                    } else {
                        counts.forget();
                    }
                }
            }
        } finally {
            structure.unlock();
        }
    }

    private void removeSegment(int segment) {
        Generation now = generation;
        boolean noneExpires = isEmpty(now.expiry());
        try (EntryScan scan = new EntryScan(now.entries(), new int[] {segment}, true)) {
            WriteBatch batch = new WriteBatch();
            while (scan.next()) {
                byte[] entryKey = scan.entryKey();
                long before = noneExpires ? StoredEntry.NEVER : expiryOf(now, entryKey);
                addTo(batch, now, entryKey, before, null, StoredEntry.NEVER);
                if (isFull(batch)) {
                    write(batch);
                    batch.clear();
                }
            }
            if (batch.count() > 0) {
                write(batch);
            }
        }
    }

    /** How many entries these segments have, expired ones included. Counts them after a crash, and after a removal that failed. */
    long approximateSize(IntSet segments) {
        if (!counts.isKnown()) {
            countAll();
        }
        long sum = 0;
        for (int segment : ascending(segments)) {
            sum += counts.of(segment);
        }
        return sum;
    }

    private void countAll() {
        structure.lock();
        try {
            if (counts.isKnown()) {
                return;
            }
            EntryScan scan;
            try (var held = stripes.lockAll()) {
                counts.startCounting();
                scan = new EntryScan(generation.entries(), allSegments(), true);
            }
            try (scan) {
                while (scan.next()) {
                    counts.add(scan.segment(), 1);
                }
            }
            counts.counted();
        } finally {
            structure.unlock();
        }
    }

    private int[] allSegments() {
        return java.util.stream.IntStream.range(0, generation.layout().segments()).toArray();
    }

    /** How many entries of these segments have not expired. */
    long size(IntSet segments, long nowMs) {
        return walks.size(segments, nowMs);
    }

    /** A walk over the entries of these segments, of keys and perhaps of values. */
    AliveScan scan(IntSet segments, boolean keysOnly, long nowMs) {
        return walks.scan(segments, keysOnly, nowMs);
    }

    /** Removes what has expired, a few entries at each call of the result, which has to be closed. */
    ExpiryPurge purge(long nowMs) {
        return walks.purge(nowMs);
    }

    /** An entry that was removed because it had expired. */
    record Expired(byte[] entryKey, byte[] stored) {}

    /** Removes the entries of these rows that have expired and were not written since. */
    List<Expired> removeExpired(List<byte[]> rows, long nowMs) {
        List<byte[]> keys = rows.stream().map(EntryKeys::entryKeyOf).toList();
        List<Expired> removed = new ArrayList<>();
        try (var held = stripes.lock(keys)) {
            Generation now = generation;
            WriteBatch batch = new WriteBatch();
            for (int i = 0; i < keys.size(); i++) {
                byte[] stored = now.entries().get(keys.get(i));
                long expiryMs = stored == null ? ABSENT : StoredEntry.expiryOf(stored);
                if (expiryMs != EntryKeys.timeOf(rows.get(i))) {
                    // Written anew since the walk began: its row of then is gone already.
                    continue;
                }
                addTo(batch, now, keys.get(i), expiryMs, null, StoredEntry.NEVER);
                removed.add(new Expired(keys.get(i), stored));
            }
            if (!removed.isEmpty()) {
                write(batch);
                removed.forEach(entry -> counts.add(EntryKeys.segmentOf(entry.entryKey()), -1));
            }
        }
        return removed;
    }

    static int[] ascending(IntSet segments) {
        return segments.intStream().sorted().toArray();
    }

    /**
     * Whether calls can be expected to succeed. A store that an earlier failure halted (a full or broken disk) is asked to go on:
     * when the cause is gone it does.
     */
    boolean isUsable() {
        if (!esker.isOpen() || !Files.isDirectory(esker.directory())) {
            return false;
        }
        if (esker.property("esker.halted").filter(cause -> !cause.isEmpty()).isEmpty()) {
            return true;
        }
        try {
            esker.resume();
            return true;
        } catch (EskerException e) {
            return false;
        }
    }

    /** Makes a second store of what is there now; for it, this one has not ended. */
    void checkpoint(Path copy) {
        esker.checkpoint(copy);
    }

    /** Ends all walks and closes the store. */
    @Override
    public void close() {
        structure.lock();
        // Nobody writes between what is counted and the end.
        try (var held = stripes.lockAll()) {
            // Whatever goes wrong, it is closed: its directory would stay locked.
            try (Esker closing = esker) {
                walks.closeAll();
                if (closing.isOpen()) {
                    leaveCounts();
                }
            }
        } finally {
            structure.unlock();
        }
    }

    private void leaveCounts() {
        try {
            counts.leave(esker);
        } catch (EskerException e) {
            // Halted, or a full disk: the next start counts.
        }
    }
}
