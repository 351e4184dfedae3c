package io.esker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Bulk loads, whose iterator is the program's. */
class BulkLoadTest {
    @TempDir
    Path directory;

    private Path path;
    private Esker db;
    private Keyspace keyspace;

    @BeforeEach
    void open() {
        path = directory.resolve("store");
        db = Esker.open(path, Tools.small());
        keyspace = db.keyspace();
    }

    @AfterEach
    void close() {
        db.close();
    }

    /** So many entries; before each, something is done. */
    private static Iterator<Entry> entries(int count, IntConsumer before) {
        return IntStream.range(0, count).mapToObj(at -> {
            before.accept(at);
            return new Entry(Tools.key(at), Tools.value(at));
        }).iterator();
    }

    private static Iterator<Entry> entries(int count) {
        return entries(count, at -> {});
    }

    @Test
    void allOfItIsThereAfterwards() {
        keyspace.put(Tools.key(5), Tools.bytes("old"));
        assertEquals(100_000, keyspace.bulkLoad(entries(100_000)));
        assertEquals(0, keyspace.bulkLoad(entries(0)));
        for (int at = 0; at < 100_000; at += 101) assertArrayEquals(Tools.value(at), keyspace.get(Tools.key(at)));
        assertArrayEquals(Tools.value(5), keyspace.get(Tools.key(5)));
        assertEquals(100_000, keyspace.entries().stream().count());
    }

    @Test
    void largeValuesFit() {
        int[] lengths = {1, 262_100, 262_144, 300_000, 5 << 20, 10, 255_000, 255_000};
        List<Entry> entries = IntStream.range(0, lengths.length)
                .mapToObj(at -> new Entry(Tools.key(at), Tools.large(lengths[at], at))).toList();
        assertEquals(lengths.length, keyspace.bulkLoad(entries.iterator()));
        for (Entry entry : entries) assertArrayEquals(entry.value(), keyspace.get(entry.key()));
    }

    @Test
    void whatTheIteratorThrowsIsThrownAndNothingIsKept() {
        for (Throwable thrown : List.of(new IllegalStateException("mine"), new StackOverflowError("mine"),
                new ArithmeticException("mine"))) {
            for (int when : new int[] {0, 1, 5000, 49_999}) {
                Iterator<Entry> entries = entries(50_000, at -> {
                    if (at == when) BulkLoadTest.<RuntimeException>sneak(thrown);
                });
                assertSame(thrown, assertThrows(Throwable.class, () -> keyspace.bulkLoad(entries)));
                assertFalse(keyspace.entries().iterator().hasNext());
            }
        }
        assertEquals(10, keyspace.bulkLoad(entries(10)));
        assertTrue(db.verify().isSound());
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void sneak(Throwable thrown) throws T {
        throw (T) thrown;
    }

    @Test
    void wrongEntriesAreRefused() {
        List<Entry> swapped = List.of(new Entry(Tools.key(2), new byte[0]), new Entry(Tools.key(1), new byte[0]));
        assertThrows(IllegalArgumentException.class, () -> keyspace.bulkLoad(swapped.iterator()));
        List<Entry> twice = List.of(new Entry(Tools.key(2), new byte[0]), new Entry(Tools.key(2), new byte[0]));
        assertThrows(IllegalArgumentException.class, () -> keyspace.bulkLoad(twice.iterator()));
        List<Entry> hole = Arrays.asList(new Entry(Tools.key(2), new byte[0]), null);
        assertThrows(NullPointerException.class, () -> keyspace.bulkLoad(hole.iterator()));
        List<Entry> tooLong = List.of(new Entry(new byte[65537], new byte[0]));
        assertThrows(IllegalArgumentException.class, () -> keyspace.bulkLoad(tooLong.iterator()));
        assertThrows(NullPointerException.class, () -> keyspace.bulkLoad(null));
        assertFalse(keyspace.entries().iterator().hasNext());
    }

    @Test
    void theIteratorMayUseTheStore() {
        Keyspace other = db.createKeyspace("other");
        long loaded = keyspace.bulkLoad(entries(20_000, at -> {
            if (at % 1000 == 0) {
                other.put(Tools.key(at), Tools.value(at));
                keyspace.put(Tools.key(1_000_000 + at), Tools.value(at));
                assertEquals(3, other.bulkLoad(entries(3)));
                try (Snapshot snapshot = db.snapshot()) {
                    assertTrue(other.at(snapshot).contains(Tools.key(at)));
                }
                db.flush();
            }
        }));
        assertEquals(20_000, loaded);
        assertEquals(20_020, keyspace.entries().stream().count());
    }

    @Test
    void theIteratorMayCloseTheStore() {
        for (int when : new int[] {0, 10, 19_999}) {
            IllegalStateException e = assertThrows(IllegalStateException.class,
                    () -> keyspace.bulkLoad(entries(20_000, at -> {
                        if (at == when) db.close();
                    })));
            assertEquals("the store was closed", e.getMessage());
            open();
            assertFalse(keyspace.entries().iterator().hasNext());
        }
    }

    @Test
    void closingDoesNotWaitForTheIterator() throws Exception {
        AtomicReference<Throwable> end = new AtomicReference<>();
        Object turn = new Object();
        boolean[] state = new boolean[2];
        Thread load = new Thread(() -> {
            try {
                keyspace.bulkLoad(entries(20_000, at -> {
                    if (at != 10_000) return;
                    synchronized (turn) {
                        state[0] = true;
                        turn.notifyAll();
                        while (!state[1]) {
                            try {
                                turn.wait();
                            } catch (InterruptedException e) {
                                throw new AssertionError(e);
                            }
                        }
                    }
                }));
            } catch (Throwable e) {
                end.set(e);
            }
        });
        load.start();
        synchronized (turn) {
            while (!state[0]) turn.wait();
        }
        // The iterator is waiting, and the store closes all the same.
        db.close();
        synchronized (turn) {
            state[1] = true;
            turn.notifyAll();
        }
        load.join();
        assertEquals(IllegalStateException.class, end.get().getClass());
        open();
        assertFalse(keyspace.entries().iterator().hasNext());
        assertEquals(1, Tools.files(path, "CURRENT").size());
    }
}
