package io.esker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Random calls, each compared with sorted maps of Java's. */
class ModelTest {
    @TempDir
    Path directory;

    private Random random;
    private Esker db;
    private final Map<String, NavigableMap<byte[], byte[]>> models = new HashMap<>();
    private final Map<String, Keyspace> keyspaces = new HashMap<>();
    private final List<Seen> snapshots = new ArrayList<>();

    /** A snapshot, and what it is to see. */
    private record Seen(Snapshot snapshot, Map<String, NavigableMap<byte[], byte[]>> models) {}

    @Test
    void anyCallsGiveWhatSortedMapsGive() {
        int seeds = Tools.rounds(40, 3);
        String given = System.getenv("ESKER_SEED");
        long first = given != null ? Long.parseLong(given) : System.nanoTime() & 0xffffff;
        for (long seed = first; seed < first + seeds; seed++) {
            try {
                run(seed, 1500);
            } catch (Throwable e) {
                throw new AssertionError("with ESKER_SEED=" + seed, e);
            }
        }
    }

    private void run(long seed, int operations) {
        random = new Random(seed);
        Path path = directory.resolve("store" + seed);
        models.clear();
        for (String name : List.of("default", "backwards", "packed")) {
            Order order = name.equals("backwards") ? Order.REVERSE : Order.BYTEWISE;
            models.put(name, new TreeMap<>(order::compare));
        }
        open(path);
        for (int at = 0; at < operations; at++) operation(path);
        models.keySet().forEach(name -> compareAll(keyspaces.get(name), models.get(name)));
        closeAll();
        assertTrue(Esker.verify(path).isSound());
        Esker.destroy(path);
    }

    private void open(Path path) {
        db = Esker.open(path, Tools.small().blobThreshold(512).segmentSize(64 << 10));
        keyspaces.put("default", db.keyspace());
        keyspaces.put("backwards", db.openOrCreateKeyspace("backwards", new KeyspaceOptions().order(Order.REVERSE)));
        keyspaces.put("packed", db.openOrCreateKeyspace("packed", new KeyspaceOptions().compression(Compression.ZSTD)));
        assertEquals(List.of("default", "backwards", "packed"), db.keyspaces());
    }

    private void closeAll() {
        snapshots.forEach(seen -> seen.snapshot.close());
        snapshots.clear();
        db.close();
    }

    private void operation(Path path) {
        String name = List.of("default", "backwards", "packed").get(random.nextInt(3));
        Keyspace keyspace = keyspaces.get(name);
        NavigableMap<byte[], byte[]> model = models.get(name);
        switch (random.nextInt(24)) {
            case 0, 1, 2, 3, 4 -> put(keyspace, model);
            case 5, 6 -> delete(keyspace, model);
            case 7, 8, 9 -> batch();
            case 10, 11, 12 -> compareOne(keyspace, model, anyKey());
            case 13 -> compareSeveral(keyspace, model);
            case 14, 15 -> walk(keyspace, model);
            case 16 -> compareRange(keyspace, model, keyspace.order());
            case 17 -> snapshot();
            case 18, 19 -> lookBack(name, keyspace);
            case 20 -> load(keyspace, model);
            case 21 -> db.flush();
            case 22 -> keyspace.compactRange(Range.of(anyKey(), null));
            default -> {
                if (random.nextInt(4) == 0) {
                    closeAll();
                    open(path);
                }
            }
        }
    }

    private byte[] anyKey() {
        byte[] key = new byte[random.nextInt(4)];
        for (int at = 0; at < key.length; at++) key[at] = (byte) (random.nextInt(6) * 51);
        return key;
    }

    private byte[] anyValue() {
        int length = switch (random.nextInt(20)) {
            case 0 -> 0;
            case 1, 2 -> random.nextInt(5000);
            case 3 -> random.nextInt(100_000);
            default -> random.nextInt(100);
        };
        byte[] value = new byte[length];
        for (int at = 0; at < length; at++) value[at] = (byte) (random.nextInt(4) * at);
        return value;
    }

    private ByteBuffer buffer(byte[] bytes) {
        int before = random.nextInt(5);
        int room = before + bytes.length + random.nextInt(5);
        ByteBuffer buffer = random.nextBoolean() ? ByteBuffer.allocateDirect(room) : ByteBuffer.allocate(room);
        buffer.position(before).put(bytes).flip().position(before);
        return random.nextBoolean() ? buffer.asReadOnlyBuffer() : buffer.slice();
    }

    private Durability anyDurability() {
        return random.nextInt(30) == 0 ? Durability.SYNCED : random.nextBoolean() ? Durability.BUFFERED : Durability.DEFAULT;
    }

    private void put(Keyspace keyspace, NavigableMap<byte[], byte[]> model) {
        byte[] key = anyKey();
        byte[] value = anyValue();
        switch (random.nextInt(3)) {
            case 0 -> keyspace.put(key, value);
            case 1 -> keyspace.put(key, value, anyDurability());
            default -> keyspace.put(buffer(key), buffer(value), anyDurability());
        }
        model.put(key, value);
    }

    private void delete(Keyspace keyspace, NavigableMap<byte[], byte[]> model) {
        byte[] key = anyKey();
        keyspace.delete(key, anyDurability());
        model.remove(key);
    }

    private void batch() {
        WriteBatch batch = new WriteBatch();
        int count = random.nextInt(40);
        for (int at = 0; at < count; at++) {
            String name = List.of("default", "backwards", "packed").get(random.nextInt(3));
            Keyspace keyspace = keyspaces.get(name);
            byte[] key = anyKey();
            if (random.nextInt(4) == 0) {
                models.get(name).remove(key);
                if (name.equals("default")) batch.delete(key);
                else batch.delete(keyspace, key);
            } else {
                byte[] value = anyValue();
                models.get(name).put(key, value);
                if (name.equals("default") && random.nextBoolean()) batch.put(key, value);
                else batch.put(keyspace, key, value);
            }
        }
        assertEquals(count, batch.count());
        db.write(batch, anyDurability());
    }

    private void compareOne(ReadableKeyspace keyspace, NavigableMap<byte[], byte[]> model, byte[] key) {
        byte[] expected = model.get(key);
        assertArrayEquals(expected, keyspace.get(key));
        assertEquals(expected != null, keyspace.contains(key));
        ByteBuffer lent = keyspace.getBuffer(key);
        assertEquals(expected == null ? null : ByteBuffer.wrap(expected), lent);
        int room = random.nextInt(200);
        ByteBuffer into = (random.nextBoolean() ? ByteBuffer.allocate(room + 3) : ByteBuffer.allocateDirect(room + 3)).position(3);
        int length = random.nextBoolean() ? keyspace.get(key, into) : keyspace.get(buffer(key), into);
        assertEquals(expected == null ? -1 : expected.length, length);
        int copied = expected == null ? 0 : Math.min(room, expected.length);
        assertEquals(3 + copied, into.position());
        assertEquals(room + 3, into.limit());
        if (expected != null) assertEquals(ByteBuffer.wrap(expected, 0, copied), into.flip().position(3));
    }

    private void compareSeveral(ReadableKeyspace keyspace, NavigableMap<byte[], byte[]> model) {
        List<byte[]> keys = new ArrayList<>();
        for (int at = random.nextInt(50); at > 0; at--) keys.add(anyKey());
        List<byte[]> values = keyspace.multiGet(keys);
        assertEquals(keys.size(), values.size());
        for (int at = 0; at < keys.size(); at++) assertArrayEquals(model.get(keys.get(at)), values.get(at));
    }

    /** A cursor goes here and there, and so does a key in the map. */
    private void walk(ReadableKeyspace keyspace, NavigableMap<byte[], byte[]> model) {
        boolean keysOnly = random.nextInt(4) == 0;
        try (Cursor cursor = keyspace.cursor(keysOnly)) {
            byte[] at = null;
            int run = 0;
            int direction = 0;
            for (int move = 0; move < 120; move++) {
                if (run == 0) {
                    run = 1 + random.nextInt(30);
                    direction = random.nextInt(6);
                }
                run--;
                byte[] key = anyKey();
                boolean found;
                switch (direction) {
                    case 0 -> {
                        found = run % 2 == 0 ? cursor.first() : cursor.last();
                        at = model.isEmpty() ? null : run % 2 == 0 ? model.firstKey() : model.lastKey();
                        run = 0;
                    }
                    case 1 -> {
                        found = cursor.seek(key);
                        at = model.ceilingKey(key);
                        run = 0;
                    }
                    case 2 -> {
                        found = cursor.seekBack(key);
                        at = model.floorKey(key);
                        run = 0;
                    }
                    case 3, 4 -> {
                        found = cursor.next();
                        at = at == null ? null : model.higherKey(at);
                    }
                    default -> {
                        found = cursor.previous();
                        at = at == null ? null : model.lowerKey(at);
                    }
                }
                assertEquals(at != null, found);
                assertEquals(found, cursor.isValid());
                if (found) {
                    byte[] value = keysOnly ? new byte[0] : model.get(at);
                    assertArrayEquals(at, cursor.key());
                    assertArrayEquals(value, cursor.value());
                    assertEquals(at.length, cursor.keyLength());
                    assertEquals(value.length, cursor.valueLength());
                    assertEquals(ByteBuffer.wrap(at), cursor.keyBuffer());
                    assertEquals(ByteBuffer.wrap(value), cursor.valueBuffer());
                }
            }
        }
    }

    private void compareAll(ReadableKeyspace keyspace, NavigableMap<byte[], byte[]> model) {
        compare(model, keyspace.entries().iterator());
        compare(model.descendingMap(), keyspace.entries().reversed().iterator());
    }

    private static void compare(Map<byte[], byte[]> expected, Iterator<Entry> entries) {
        for (Map.Entry<byte[], byte[]> one : expected.entrySet()) {
            assertEquals(new Entry(one.getKey(), one.getValue()), entries.next());
        }
        assertTrue(!entries.hasNext());
    }

    private void compareRange(ReadableKeyspace keyspace, NavigableMap<byte[], byte[]> model, Order order) {
        byte[] a = anyKey();
        byte[] b = anyKey();
        byte[] from = order.compare(a, b) <= 0 ? a : b;
        byte[] to = from == a ? b : a;
        boolean fromInclusive = random.nextBoolean();
        boolean toInclusive = random.nextBoolean();
        NavigableMap<byte[], byte[]> part = order.compare(from, to) == 0 && !(fromInclusive && toInclusive)
                ? new TreeMap<>(order::compare)
                : model.subMap(from, fromInclusive, to, toInclusive);
        Entries entries = keyspace.entries(Range.between(from, fromInclusive, to, toInclusive));
        compare(part, entries.iterator());
        compare(part.descendingMap(), entries.reversed().iterator());
        compare(model.tailMap(from, true), keyspace.entries(Range.atLeast(from)).iterator());
        compare(model.headMap(to, false), keyspace.entries(Range.before(to)).iterator());
        NavigableMap<byte[], byte[]> prefixed = new TreeMap<>(order::compare);
        model.forEach((key, value) -> {
            if (key.length >= a.length && java.util.Arrays.equals(key, 0, a.length, a, 0, a.length)) prefixed.put(key, value);
        });
        compare(prefixed, keyspace.entries(Range.prefix(a)).iterator());
        compare(prefixed.descendingMap(), keyspace.entries(Range.prefix(a)).reversed().iterator());
    }

    private void snapshot() {
        if (snapshots.size() == 3) snapshots.remove(random.nextInt(3)).snapshot.close();
        Map<String, NavigableMap<byte[], byte[]>> copies = new HashMap<>();
        models.forEach((name, model) -> copies.put(name, new TreeMap<>(model)));
        snapshots.add(new Seen(db.snapshot(), copies));
    }

    private void lookBack(String name, Keyspace keyspace) {
        if (snapshots.isEmpty()) return;
        Seen seen = snapshots.get(random.nextInt(snapshots.size()));
        NavigableMap<byte[], byte[]> model = seen.models.get(name);
        ReadableKeyspace then = keyspace.at(seen.snapshot);
        compareOne(then, model, anyKey());
        compareSeveral(then, model);
        walk(then, model);
        compareRange(then, model, then.order());
    }

    private void load(Keyspace keyspace, NavigableMap<byte[], byte[]> model) {
        NavigableMap<byte[], byte[]> more = new TreeMap<>(keyspace.order()::compare);
        for (int at = random.nextInt(60); at > 0; at--) more.put(anyKey(), anyValue());
        Iterator<Entry> entries =
                more.entrySet().stream().map(one -> new Entry(one.getKey(), one.getValue())).iterator();
        assertEquals(more.size(), keyspace.bulkLoad(entries));
        model.putAll(more);
    }
}
