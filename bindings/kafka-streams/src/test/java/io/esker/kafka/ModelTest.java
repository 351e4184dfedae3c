package io.esker.kafka;

import static io.esker.kafka.Fixture.CHANGELOG;
import static io.esker.kafka.Fixture.SMALL;
import static io.esker.kafka.Fixture.bytes;
import static io.esker.kafka.Fixture.drain;
import static io.esker.kafka.Fixture.key;
import static io.esker.kafka.Fixture.keyValue;
import static io.esker.kafka.Fixture.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The key-value store beside a sorted map, under random operations; and under readers on other threads. */
class ModelTest {
    private static final boolean CAMPAIGN = "1".equals(System.getenv("ESKER_CAMPAIGN"));

    @TempDir
    Path directory;

    /** An iterator that was opened, and what it has to show. */
    private record Opened(KeyValueIterator<Bytes, byte[]> iterator, List<String> expected) {}

    @Test
    void itIsASortedMap() {
        long seed = Long.getLong("esker.seed", System.nanoTime());
        System.out.println("ModelTest: -Desker.seed=" + seed);
        Random random = new Random(seed);
        TreeMap<String, String> model = new TreeMap<>();
        List<Opened> opened = new ArrayList<>();
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, SMALL);
        int steps = CAMPAIGN ? 400_000 : 40_000;
        for (int step = 0; step < steps; step++) {
            String key = "k" + random.nextInt(300);
            String value = step + "x".repeat(random.nextInt(400));
            switch (random.nextInt(14)) {
                case 0, 1, 2, 3, 4 -> {
                    store.put(key(key), bytes(value));
                    model.put(key, value);
                }
                case 5, 6 -> assertEquals(model.remove(key), text(store.delete(key(key))));
                case 7 -> assertEquals(model.putIfAbsent(key, value), text(store.putIfAbsent(key(key), bytes(value))));
                case 8 -> {
                    store.putAll(List.of(KeyValue.pair(key(key), null), KeyValue.pair(key(key + "0"), bytes(value))));
                    model.remove(key);
                    model.put(key + "0", value);
                }
                case 9, 10 -> assertEquals(model.get(key), text(store.get(key(key))));
                case 11 -> opened.add(open(store, model, key, random));
                case 12 -> {
                    if (opened.isEmpty()) break;
                    Opened one = opened.remove(random.nextInt(opened.size()));
                    assertEquals(one.expected, drain(one.iterator), "seed " + seed);
                }
                default -> {
                    if (random.nextInt(20) == 0) store.commit(Map.of(CHANGELOG, (long) step));
                    if (random.nextInt(400) != 0) break;
                    opened.forEach(one -> assertEquals(one.expected, drain(one.iterator), "seed " + seed));
                    opened.clear();
                    store.commit(Map.of(CHANGELOG, (long) step));
                    store.close();
                    store = keyValue(directory, SMALL);
                    assertEquals(step, store.committedOffset(CHANGELOG));
                }
            }
        }
        opened.forEach(one -> assertEquals(one.expected, drain(one.iterator), "seed " + seed));
        assertEquals(list(model), drain(store.all()), "seed " + seed);
        store.close();
    }

    private static Opened open(KeyValueStore<Bytes, byte[]> store, TreeMap<String, String> model, String key, Random random) {
        String other = "k" + random.nextInt(300);
        String from = key.compareTo(other) < 0 ? key : other;
        String to = key.compareTo(other) < 0 ? other : key;
        return switch (random.nextInt(7)) {
            case 0 -> new Opened(store.all(), list(model));
            case 1 -> new Opened(store.reverseAll(), list(model.descendingMap()));
            case 2 -> new Opened(store.range(key(from), key(to)), list(model.subMap(from, true, to, true)));
            case 3 -> new Opened(store.reverseRange(key(from), key(to)), list(model.subMap(from, true, to, true).descendingMap()));
            case 4 -> new Opened(store.range(key(from), null), list(model.tailMap(from, true)));
            case 5 -> new Opened(store.reverseRange(null, key(to)), list(model.headMap(to, true).descendingMap()));
            default -> new Opened(store.prefixScan(key, new StringSerializer()), list(model.subMap(key, true, key + '\uffff', false)));
        };
    }

    private static List<String> list(NavigableMap<String, String> map) {
        List<String> entries = new ArrayList<>();
        map.forEach((key, value) -> entries.add(key + "=" + value));
        return entries;
    }

    @Test
    void prefixesThatNothingComesAfterAreScannedToTheEnd() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        byte[] high = {(byte) 0xff, (byte) 0xff};
        store.put(Bytes.wrap(new byte[] {(byte) 0xff}), bytes("before"));
        store.put(Bytes.wrap(high), bytes("exact"));
        store.put(Bytes.wrap(new byte[] {(byte) 0xff, (byte) 0xff, 7}), bytes("longer"));
        List<String> values = new ArrayList<>();
        try (KeyValueIterator<Bytes, byte[]> scan = store.prefixScan(high, (topic, data) -> data)) {
            while (scan.hasNext()) values.add(text(scan.next().value));
        }
        assertEquals(List.of("exact", "longer"), values);
        store.close();
    }

    @Test
    void aWriterThatIteratesSeesWhatWasThereAtFirst() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        for (int i = 0; i < 10; i++) store.put(key("k" + i), bytes("old"));
        int seen = 0;
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                KeyValue<Bytes, byte[]> entry = all.next();
                assertEquals("old", text(entry.value));
                seen++;
                store.put(key("k" + seen), bytes("new"));
                store.put(key("k" + seen), bytes("newer"));
                store.put(key("z" + seen), bytes("never shown"));
                store.put(key("z" + seen), bytes("never shown, replaced"));
                if (seen == 5) store.commit(Map.of(CHANGELOG, 1L));
            }
        }
        assertEquals(10, seen);
        assertNull(store.get(key("nothing")));
        store.close();
    }

    /** Each key's value only grows; so it does for readers, while commits move it from one layer to the next. */
    @Test
    void readersOnOtherThreadsNeverSeeAKeyGoBack() throws Exception {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, SMALL);
        int keys = 20;
        for (int i = 0; i < keys; i++) store.put(key("k" + i), bytes("0"));
        AtomicBoolean ended = new AtomicBoolean();
        AtomicReference<Throwable> failed = new AtomicReference<>();
        List<Thread> readers = new ArrayList<>();
        for (int r = 0; r < 3; r++) {
            int number = r;
            Thread reader = new Thread(() -> {
                long[] last = new long[keys];
                Random random = new Random(number);
                try {
                    while (!ended.get()) {
                        if (number == 0) {
                            readAll(store, last);
                        } else {
                            int i = random.nextInt(keys);
                            grows(last, i, store.get(key("k" + i)));
                        }
                    }
                } catch (Throwable e) {
                    failed.compareAndSet(null, e);
                }
            });
            reader.start();
            readers.add(reader);
        }
        int rounds = CAMPAIGN ? 300_000 : 30_000;
        for (int i = 1; i <= rounds && failed.get() == null; i++) {
            store.put(key("k" + i % keys), bytes("" + i));
            if (i % 50 == 0) store.commit(Map.of(CHANGELOG, (long) i));
        }
        ended.set(true);
        for (Thread reader : readers) reader.join();
        if (failed.get() != null) throw new AssertionError(failed.get());
        store.close();
    }

    /** Interactive queries come from threads that know nothing of rebalances, which close stores. */
    @Test
    void readersThatAStoreIsClosedUnderAreToldSo() throws Exception {
        int rounds = CAMPAIGN ? 500 : 20;
        AtomicReference<Throwable> failed = new AtomicReference<>();
        for (int round = 0; round < rounds && failed.get() == null; round++) {
            KeyValueStore<Bytes, byte[]> store = keyValue(directory, SMALL);
            for (int i = 0; i < 20; i++) store.put(key("k" + i), bytes("" + round));
            if (round % 2 == 0) store.commit(Map.of(CHANGELOG, (long) round));
            List<Thread> readers = new ArrayList<>();
            CountDownLatch reading = new CountDownLatch(3);
            for (int r = 0; r < 3; r++) {
                int number = r;
                Thread reader = new Thread(() -> {
                    try {
                        while (true) {
                            if (number == 0) {
                                drain(store.all());
                            } else {
                                store.get(key("k" + number));
                            }
                            reading.countDown();
                        }
                    } catch (InvalidStateStoreException e) {
                        return; // as it should
                    } catch (Throwable e) {
                        failed.compareAndSet(null, e);
                        reading.countDown();
                    }
                });
                reader.start();
                readers.add(reader);
            }
            reading.await();
            store.close();
            for (Thread reader : readers) {
                reader.join(10_000);
                assertFalse(reader.isAlive(), "a reader hangs");
            }
        }
        if (failed.get() != null) throw new AssertionError(failed.get());
    }

    @Test
    void aReaderWhoseIteratorIsClosedInAnotherThreadIsToldSo() throws Exception {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, SMALL);
        for (int i = 0; i < 5000; i++) store.put(key("k" + i), bytes("v"));
        store.commit(Map.of(CHANGELOG, 1L));
        for (int round = 0; round < 200; round++) {
            KeyValueIterator<Bytes, byte[]> iterator = store.all();
            AtomicReference<Throwable> end = new AtomicReference<>();
            Thread reader = new Thread(() -> {
                try {
                    while (iterator.hasNext()) iterator.next();
                } catch (Throwable e) {
                    end.set(e);
                }
            });
            reader.start();
            for (int spin = 0; spin < round * 50; spin++) Thread.onSpinWait();
            iterator.close();
            reader.join();
            // Null when it was at the end before.
            Throwable e = end.get();
            assertTrue(e == null || e instanceof InvalidStateStoreException, String.valueOf(e));
        }
        store.close();
    }

    private static void readAll(KeyValueStore<Bytes, byte[]> store, long[] last) {
        List<String> shown = new ArrayList<>();
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                KeyValue<Bytes, byte[]> entry = all.next();
                shown.add(entry.key.toString());
                grows(last, Integer.parseInt(text(entry.key.get()).substring(1)), entry.value);
            }
        }
        List<String> sorted = new ArrayList<>(shown);
        Collections.sort(sorted);
        assertEquals(sorted, shown);
        assertEquals(last.length, shown.size());
    }

    private static void grows(long[] last, int key, byte[] value) {
        long now = Long.parseLong(text(value));
        assertTrue(now >= last[key], () -> "k" + key + " went from " + last[key] + " to " + now);
        last[key] = now;
    }
}
