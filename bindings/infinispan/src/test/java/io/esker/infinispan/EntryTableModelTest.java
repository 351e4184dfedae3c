package io.esker.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertNull;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import io.esker.Cursor;
import io.esker.Esker;
import io.esker.Options;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.testng.annotations.AfterMethod;
import org.testng.annotations.BeforeMethod;
import org.testng.annotations.Test;

/**
 * Random operations on a table and on a sorted map, which have to agree. The seed is printed; {@code -Desker.seed=N} repeats a
 * run,
 * {@code -Desker.operations=N} sets its length.
 */
@Test(singleThreaded = true)
public class EntryTableModelTest {
    private static final int SEGMENTS = 8;
    private static final int KEYS = 400;

    private record Value(byte[] stored, long expiryMs) {}

    private Path directory;
    private EntryTable table;
    private long nowMs;
    private Random random;
    private final TreeMap<byte[], Value> model = new TreeMap<>(Arrays::compareUnsigned);
    private final Set<Integer> owned = new HashSet<>();

    @BeforeMethod
    public void begin() throws Exception {
        directory = Caches.newDirectory();
        long seed = Long.getLong("esker.seed", System.nanoTime());
        System.out.println("EntryTableModelTest: esker.seed=" + seed);
        random = new Random(seed);
        nowMs = 1_000_000;
        model.clear();
        for (int segment = 0; segment < SEGMENTS; segment++) {
            owned.add(segment);
        }
        open();
    }

    @AfterMethod(alwaysRun = true)
    public void end() throws Exception {
        table.close();
        Caches.remove(directory);
    }

    private void open() {
        table = EntryTable.open(directory.resolve("esker"), new Options().memory(1 << 20), 5,
                false, new Layout(true, SEGMENTS, 0), key -> key[0] % SEGMENTS);
    }

    public void randomOperationsAgreeWithASortedMap() {
        int operations = Integer.getInteger("esker.operations", 20_000);
        for (int i = 0; i < operations; i++) {
            step();
            if (i % 2_000 == 0) {
                check();
            }
        }
        check();
    }

    private void step() {
        int kind = random.nextInt(2_000);
        if (kind < 1_100) {
            byte[] key = randomKey();
            Value value = randomValue();
            table.put(EntryKeys.segmentOf(key), key, value.stored, value.expiryMs);
            if (owned.contains(EntryKeys.segmentOf(key))) {
                model.put(key, value);
            }
        } else if (kind < 1_500) {
            byte[] key = randomKey();
            assertEquals(table.delete(EntryKeys.segmentOf(key), key), model.remove(key) != null);
        } else if (kind < 1_700) {
            applySeveral();
        } else if (kind < 1_900) {
            byte[] key = randomKey();
            Value value = model.get(key);
            assertEquals(table.get(EntryKeys.segmentOf(key), key), value == null ? null : value.stored);
            assertEquals(table.isAlive(EntryKeys.segmentOf(key), key, nowMs), value != null && isAlive(value));
        } else if (kind < 1_970) {
            nowMs += random.nextInt(500);
            purge();
        } else if (kind < 1_990) {
            moveSegments();
        } else if (kind < 1_994) {
            table.clear();
            model.clear();
        } else {
            table.close();
            open();
            owned.addAll(List.of(0, 1, 2, 3, 4, 5, 6, 7));
        }
    }

    private void applySeveral() {
        Changes changes = new Changes();
        for (int n = random.nextInt(20); n >= 0; n--) {
            byte[] key = randomKey();
            if (random.nextInt(3) == 0) {
                changes.remove(key);
                model.remove(key);
            } else {
                Value value = randomValue();
                changes.put(key, value.stored, value.expiryMs);
                if (owned.contains(EntryKeys.segmentOf(key))) {
                    model.put(key, value);
                }
            }
        }
        // In one batch the last change of a key counts, and one of a segment that is not kept does not.
        model.keySet().removeIf(key -> !owned.contains(EntryKeys.segmentOf(key)));
        table.apply(changes);
    }

    private void purge() {
        Set<ByteBuffer> purged = new HashSet<>();
        try (ExpiryPurge purge = table.purge(nowMs)) {
            for (var some = purge.some(); some != null; some = purge.some()) {
                some.forEach(entry -> assertTrue(purged.add(ByteBuffer.wrap(entry.entryKey())), "purged twice"));
            }
        }
        Set<ByteBuffer> expected = new HashSet<>();
        model.forEach((key, value) -> {
            if (!isAlive(value)) {
                expected.add(ByteBuffer.wrap(key));
            }
        });
        assertEquals(purged, expected);
        expected.forEach(key -> model.remove(key.array()));
    }

    private void moveSegments() {
        int segment = random.nextInt(SEGMENTS);
        if (owned.remove(segment)) {
            table.removeSegments(IntSets.immutableSet(segment));
            model.keySet().removeIf(key -> EntryKeys.segmentOf(key) == segment);
        } else {
            table.addSegments(IntSets.immutableSet(segment));
            owned.add(segment);
        }
    }

    private boolean isAlive(Value value) {
        return value.expiryMs == StoredEntry.NEVER || value.expiryMs > nowMs;
    }

    private byte[] randomKey() {
        byte[] key = Integer.toString(random.nextInt(KEYS)).getBytes(StandardCharsets.US_ASCII);
        return EntryKeys.entry(key[key.length - 1] % SEGMENTS, key, 0, key.length);
    }

    /** Bytes as {@link StoredEntry} lays them out, mostly short. */
    private Value randomValue() {
        long expiryMs = random.nextBoolean() ? StoredEntry.NEVER : nowMs + random.nextInt(2_000);
        byte[] content = new byte[random.nextInt(50) == 0 ? random.nextInt(20_000) : random.nextInt(100)];
        random.nextBytes(content);
        ByteBuffer stored = ByteBuffer.allocate(1 + (expiryMs == StoredEntry.NEVER ? 0 : 8) + content.length);
        stored.put((byte) (16 | (expiryMs == StoredEntry.NEVER ? 0 : 1)));
        if (expiryMs != StoredEntry.NEVER) {
            stored.putLong(expiryMs);
        }
        return new Value(stored.put(content).array(), expiryMs);
    }

    private void check() {
        IntSet some = IntSets.from(random.ints(0, SEGMENTS).limit(3).iterator());
        for (IntSet segments : List.of(IntSets.immutableRangeSet(SEGMENTS), some)) {
            List<byte[]> alive = new ArrayList<>();
            long count = 0;
            for (Map.Entry<byte[], Value> entry : model.entrySet()) {
                if (segments.contains(EntryKeys.segmentOf(entry.getKey()))) {
                    count++;
                    if (isAlive(entry.getValue())) {
                        alive.add(entry.getKey());
                    }
                }
            }
            assertEquals(keysOf(segments, true), asText(alive));
            assertEquals(keysOf(segments, false), asText(alive));
            assertEquals(table.size(segments, nowMs), alive.size());
            assertEquals(table.approximateSize(segments), count);
        }
        checkExpiryIndex();
    }

    private List<String> keysOf(IntSet segments, boolean keysOnly) {
        List<byte[]> keys = new ArrayList<>();
        try (AliveScan scan = table.scan(segments, keysOnly, nowMs)) {
            while (scan.next()) {
                keys.add(scan.entryKey());
                if (!keysOnly) {
                    assertEquals(scan.stored(), model.get(scan.entryKey()).stored);
                }
            }
        }
        return asText(keys);
    }

    private static List<String> asText(List<byte[]> keys) {
        return keys.stream().map(key -> new String(key, StandardCharsets.ISO_8859_1)).toList();
    }

    /** Each entry that expires has one row, and there is no other row. */
    private void checkExpiryIndex() {
        table.close();
        List<String> rows = new ArrayList<>();
        List<String> keyspaces;
        try (Esker esker = Esker.open(directory.resolve("esker"))) {
            keyspaces = esker.keyspaces();
            Layout layout = Layout.read(esker);
            try (Cursor cursor = esker.keyspace(layout.expiryName()).cursor(true)) {
                for (boolean onRow = cursor.first(); onRow; onRow = cursor.next()) {
                    rows.add(new String(cursor.key(), StandardCharsets.ISO_8859_1));
                }
            }
        }
        List<String> expected = new ArrayList<>();
        model.forEach((key, value) -> {
            if (value.expiryMs != StoredEntry.NEVER) {
                expected.add(new String(EntryKeys.expiryRow(value.expiryMs, key), StandardCharsets.ISO_8859_1));
            }
        });
        expected.sort(null);
        assertEquals(rows, expected);
        assertEquals(keyspaces.size(), 3, "no keyspace is left over: " + keyspaces);
        open();
        owned.addAll(List.of(0, 1, 2, 3, 4, 5, 6, 7));
    }

    public void readersAndWritersGoOnWhileEverythingIsRemoved() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        Map<Long, Boolean> failed = new ConcurrentHashMap<>();
        List<Future<?>> work = new ArrayList<>();
        long end = System.nanoTime() + 2_000_000_000L;
        for (int t = 0; t < 3; t++) {
            int thread = t;
            work.add(threads.submit(() -> {
                Random own = new Random(thread);
                while (System.nanoTime() < end) {
                    byte[] key = Integer.toString(own.nextInt(50_000)).getBytes(StandardCharsets.US_ASCII);
                    byte[] entryKey = EntryKeys.entry(key[0] % SEGMENTS, key, 0, key.length);
                    boolean expires = own.nextBoolean();
                    byte[] stored = expires ? new byte[] {17, 0, 0, 0, 0, 0, 1, 2, 3, 4} : new byte[] {16, 1};
                    table.put(key[0] % SEGMENTS, entryKey, stored, expires ? StoredEntry.expiryOf(stored) : StoredEntry.NEVER);
                    byte[] read = table.get(key[0] % SEGMENTS, entryKey);
                    if (read != null && !Arrays.equals(read, stored) && read.length != 2 && read.length != 10) {
                        failed.put((long) thread, true);
                    }
                }
            }));
        }
        work.add(threads.submit(() -> {
            while (System.nanoTime() < end) {
                table.clear();
                table.size(IntSets.immutableRangeSet(SEGMENTS), 0);
                try (ExpiryPurge purge = table.purge(Long.MAX_VALUE)) {
                    purge.some();
                }
                Thread.yield();
            }
        }));
        for (Future<?> each : work) {
            each.get();
        }
        threads.shutdown();
        assertTrue(failed.isEmpty());
        IntSet all = IntSets.immutableRangeSet(SEGMENTS);
        assertEquals(table.approximateSize(all), table.size(all, 0));
        table.clear();
        assertEquals(table.size(all, 0), 0L);
        assertNull(table.get(0, EntryKeys.segmentPrefix(0)));
    }

    /** A walk that began between the two halves of it failed at its first step. */
    public void walksThatBeginWhileEverythingIsRemovedGoOn() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(3);
        IntSet all = IntSets.immutableRangeSet(SEGMENTS);
        long end = System.nanoTime() + 2_000_000_000L;
        List<Future<?>> work = new ArrayList<>();
        for (int t = 0; t < 2; t++) {
            boolean purges = t == 1;
            work.add(threads.submit(() -> {
                while (System.nanoTime() < end) {
                    if (purges) {
                        try (ExpiryPurge purge = table.purge(0)) {
                            purge.some();
                        }
                    } else {
                        try (AliveScan scan = table.scan(all, false, 0)) {
                            scan.next();
                        }
                    }
                }
            }));
        }
        work.add(threads.submit(() -> {
            while (System.nanoTime() < end) {
                Changes changes = new Changes();
                for (int i = 0; i < 1100; i++) {
                    byte[] key = Integer.toString(i).getBytes(StandardCharsets.US_ASCII);
                    changes.put(EntryKeys.entry(0, key, 0, key.length), new byte[] {16, 1}, StoredEntry.NEVER);
                }
                table.apply(changes);
                table.clear();
            }
        }));
        for (Future<?> each : work) {
            each.get();
        }
        threads.shutdown();
    }

    /** What is removed one by one while its segment goes is counted once. */
    public void removalsBesideThatOfTheirSegmentAreCountedOnce() throws Exception {
        IntSet segment = IntSets.immutableSet(3);
        ExecutorService threads = Executors.newFixedThreadPool(2);
        try {
            for (int round = 0; round < 200; round++) {
                List<byte[]> keys = new ArrayList<>();
                Changes all = new Changes();
                for (int i = 0; i < 500; i++) {
                    byte[] key = Integer.toString(i).getBytes(StandardCharsets.US_ASCII);
                    keys.add(EntryKeys.entry(3, key, 0, key.length));
                    all.put(keys.get(i), new byte[] {16, 1}, StoredEntry.NEVER);
                }
                table.apply(all);
                assertEquals(table.approximateSize(segment), keys.size());
                boolean several = round % 2 == 0;
                Changes removals = new Changes();
                keys.forEach(removals::remove);
                Future<?> removal = threads.submit(() -> {
                    if (several) {
                        table.apply(removals);
                    } else {
                        keys.forEach(key -> table.delete(3, key));
                    }
                });
                Future<?> move = threads.submit(() -> table.removeSegments(segment));
                removal.get();
                move.get();
                assertEquals(table.approximateSize(segment), 0, "round " + round);
                table.addSegments(segment);
            }
        } finally {
            threads.shutdown();
        }
    }

    /** The number of entries is known again after a removal that could not be finished. */
    public void aRemovalOfASegmentThatFailsLeavesNoWrongCount() throws Exception {
        IntSet segment = IntSets.immutableSet(3);
        Changes all = new Changes();
        for (int i = 0; i < 3_000; i++) {
            byte[] key = Integer.toString(i).getBytes(StandardCharsets.US_ASCII);
            all.put(EntryKeys.entry(3, key, 0, key.length), new byte[] {16, 1}, StoredEntry.NEVER);
        }
        // Ends the removal near its end: what is stored is no entry, and is looked at as others expire.
        byte[] damaged = EntryKeys.entry(3, new byte[] {'x'}, 0, 1);
        all.put(damaged, new byte[0], StoredEntry.NEVER);
        byte[] expires = EntryKeys.entry(2, new byte[] {'x'}, 0, 1);
        all.put(expires, new byte[] {17, 0, 0, 0, 0, 0, 1, 2, 3, 4}, 0x010203);
        table.apply(all);
        assertEquals(table.approximateSize(segment), 3_001);
        expectThrows(RuntimeException.class, () -> table.removeSegments(segment));
        table.addSegments(segment);
        long left = table.size(segment, 0);
        assertTrue(left > 0 && left < 3_001, "left: " + left);
        assertEquals(table.approximateSize(segment), left);
    }

    public void countsAreCountedAnewAfterAnEndThatWasNotClean() throws Exception {
        for (int i = 0; i < 2_000; i++) {
            step();
        }
        Path copy = directory.resolve("copy");
        table.checkpoint(copy);
        try (EntryTable crashed = EntryTable.open(copy, new Options(), 5, false, new Layout(true, SEGMENTS, 0), key -> 0)) {
            IntSet all = IntSets.immutableRangeSet(SEGMENTS);
            assertEquals(crashed.approximateSize(all), model.size());
        }
    }

    /** A crash can leave keyspaces that were made to replace others and do not count yet, or that no longer count. */
    public void keyspacesThatACrashLeftAreDropped() {
        byte[] key = EntryKeys.entry(3, new byte[] {1}, 0, 1);
        table.put(3, key, new byte[] {16, 1}, StoredEntry.NEVER);
        table.close();
        try (Esker esker = Esker.open(directory.resolve("esker"))) {
            esker.createKeyspace("entries-2").put(key, new byte[] {16, 2});
            esker.createKeyspace("expiry-2");
            esker.createKeyspace("entries-0");
        }
        open();
        assertEquals(table.get(3, key), new byte[] {16, 1});
        table.close();
        try (Esker esker = Esker.open(directory.resolve("esker"))) {
            assertEquals(esker.keyspaces().size(), 3, esker.keyspaces().toString());
        }
        open();
    }

    public void aWalkEndsWithItsTable() {
        byte[] key = EntryKeys.entry(3, new byte[] {1}, 0, 1);
        table.put(3, key, new byte[] {16, 1}, StoredEntry.NEVER);
        AliveScan scan = table.scan(IntSets.immutableSet(3), false, nowMs);
        assertTrue(scan.next());
        table.close();
        expectThrows(IllegalStateException.class, scan::next);
        scan.close();
        open();
    }
}
