package io.esker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Cursors: what they read ahead, and who may use them. */
class CursorTest {
    @TempDir
    Path directory;

    private Esker db;
    private Keyspace keyspace;

    @BeforeEach
    void open() {
        db = Esker.open(directory.resolve("store"), Tools.small());
        keyspace = db.keyspace();
    }

    @AfterEach
    void close() {
        db.close();
    }

    private void fill(int count) {
        WriteBatch batch = new WriteBatch();
        for (int at = 0; at < count; at++) batch.put(Tools.key(at), Tools.value(at));
        db.write(batch);
    }

    @Test
    void turningAnywhereInABatchGivesTheNeighbour() {
        fill(300);
        // From each place, so far on, and then back to before it: batches end at 4, 12, 28, 60, 124, 252 entries.
        for (int start = 0; start < 300; start += 7) {
            for (int steps : new int[] {0, 1, 2, 3, 4, 5, 11, 12, 13, 27, 28, 59, 60, 124}) {
                try (Cursor cursor = keyspace.cursor()) {
                    assertTrue(cursor.seek(Tools.key(start)));
                    int at = start;
                    for (int step = 0; step < steps; step++) {
                        boolean there = ++at < 300;
                        assertEquals(there, cursor.next());
                        if (!there) break;
                    }
                    if (at == 300) {
                        assertFalse(cursor.previous());
                        continue;
                    }
                    while (at >= Math.max(0, start - 9)) {
                        assertArrayEquals(Tools.key(at), cursor.key());
                        assertArrayEquals(Tools.value(at), cursor.value());
                        assertEquals(--at >= 0, cursor.previous());
                    }
                    if (at < 0) continue;
                    assertTrue(cursor.next());
                    assertArrayEquals(Tools.key(at + 1), cursor.key());
                }
            }
        }
    }

    @Test
    void aWalkAsksTheStoreOnceForManyEntries() {
        fill(100_000);
        AtomicInteger entries = new AtomicInteger();
        keyspace.entries().iterator().forEachRemaining(entry -> entries.incrementAndGet());
        assertEquals(100_000, entries.get());
        try (Cursor cursor = keyspace.cursor()) {
            cursor.first();
            int before = cursor.reads();
            while (cursor.next()) {}
            // 1024 at a time when it has come so far.
            assertTrue(cursor.reads() - before < 120, cursor.reads() + " reads");
        }
    }

    @Test
    void valuesLargerThanABatchComeOneByOne() {
        int[] lengths = {10, 100, 4000, 5000, 65_500, 65_536, 70_000, 1 << 20, 9 << 20, 3, 4096, 100_000, 1};
        for (int at = 0; at < lengths.length; at++) keyspace.put(Tools.key(at), Tools.large(lengths[at], at));
        for (int round = 0; round < 2; round++) {
            try (Cursor cursor = keyspace.cursor()) {
                assertTrue(cursor.first());
                for (int at = 0; at < lengths.length; at++) {
                    assertArrayEquals(Tools.key(at), cursor.key());
                    assertArrayEquals(Tools.large(lengths[at], at), cursor.value());
                    assertEquals(at + 1 < lengths.length, cursor.next());
                }
                assertTrue(cursor.last());
                for (int at = lengths.length - 1; at >= 0; at--) {
                    assertEquals(ByteBuffer.wrap(Tools.large(lengths[at], at)), cursor.valueBuffer());
                    assertEquals(at > 0, cursor.previous());
                }
            }
            int up = 0;
            for (Entry entry : keyspace.entries()) assertArrayEquals(Tools.large(lengths[up], up++), entry.value());
            assertEquals(lengths.length, up);
            int down = lengths.length;
            for (Entry entry : keyspace.entries().reversed()) assertArrayEquals(Tools.large(lengths[--down], down), entry.value());
            assertEquals(0, down);
            // Then from tables.
            db.waitForCompactions();
        }
    }

    @Test
    void aCursorSeesWhatWasThereWhenItWasMade() {
        fill(100);
        try (Cursor cursor = keyspace.cursor()) {
            fill(1000);
            keyspace.delete(Tools.key(50));
            assertTrue(cursor.last());
            assertArrayEquals(Tools.key(99), cursor.key());
            assertTrue(cursor.seek(Tools.key(50)));
            assertArrayEquals(Tools.key(50), cursor.key());
        }
    }

    @Test
    void aCursorOutlivesItsStore() {
        fill(10_000);
        Cursor cursor = keyspace.cursor();
        assertTrue(cursor.first());
        db.close();
        int count = 1;
        while (cursor.next()) assertArrayEquals(Tools.key(count++), cursor.key());
        assertEquals(10_000, count);
        Path path = directory.resolve("store");
        assertEquals(EskerException.Code.LOCKED, assertThrows(EskerException.class, () -> Esker.open(path)).code());
        cursor.close();
        Esker.open(path).close();
    }

    @Test
    void onNoEntryThereIsNothing() {
        try (Cursor cursor = keyspace.cursor()) {
            List<Runnable> looks = List.of(cursor::key, cursor::value, cursor::keyLength, cursor::valueLength,
                    cursor::keyBuffer, cursor::valueBuffer);
            for (Runnable look : looks) assertThrows(NoSuchElementException.class, look::run);
            assertFalse(cursor.first() || cursor.last() || cursor.next() || cursor.previous() || cursor.isValid());
            for (Runnable look : looks) assertThrows(NoSuchElementException.class, look::run);
        }
    }

    @Test
    void whatWasReadAheadIsNotLostByASecondThread() throws Exception {
        fill(20_000);
        AtomicReference<Throwable> unexpected = new AtomicReference<>();
        AtomicInteger refused = new AtomicInteger();
        AtomicBoolean ended = new AtomicBoolean();
        try (Cursor cursor = keyspace.cursor()) {
            cursor.first();
            Runnable walk = () -> {
                while (!ended.get()) {
                    try {
                        if (!cursor.next()) cursor.first();
                        if (cursor.isValid()) cursor.value();
                    } catch (ConcurrentModificationException e) {
                        refused.incrementAndGet();
                    } catch (NoSuchElementException e) {
                        // Between two calls the other thread came to the end.
                    } catch (Throwable e) {
                        unexpected.set(e);
                    }
                }
            };
            Thread[] threads = {new Thread(walk), new Thread(walk), new Thread(walk)};
            for (Thread thread : threads) thread.start();
            long until = System.nanoTime() + 5_000_000_000L;
            while (refused.get() == 0 && System.nanoTime() < until) Thread.sleep(1);
            Thread.sleep(50);
            ended.set(true);
            for (Thread thread : threads) thread.join();
        }
        if (unexpected.get() != null) throw new AssertionError(unexpected.get());
        assertTrue(refused.get() > 0);
    }

    @Test
    void closingInAnotherThreadEndsTheWalk() throws Exception {
        fill(20_000);
        for (int round = 0; round < 2000; round++) {
            Cursor cursor = keyspace.cursor();
            AtomicReference<Throwable> end = new AtomicReference<>();
            Thread walk = new Thread(() -> {
                try {
                    while (true) {
                        if (!cursor.next()) cursor.first();
                        cursor.keyBuffer();
                    }
                } catch (Throwable e) {
                    end.set(e);
                }
            });
            walk.start();
            for (int spin = 0; spin < round * 10; spin++) Thread.onSpinWait();
            cursor.close();
            cursor.close();
            walk.join();
            // Also when it comes while the other thread is closing: that one uses it no more.
            assertTrue(end.get() instanceof IllegalStateException, String.valueOf(end.get()));
        }
    }

    @Test
    void whatIsLeftEarlyIsClosedByACollection() throws Exception {
        fill(1000);
        leave();
        db.close();
        // Which the open sees to.
        Esker.open(directory.resolve("store")).close();
        assertThrows(IllegalStateException.class, () -> keyspace.get(Tools.key(0)));
    }

    /** In a method of its own, whose variables are then gone. */
    private void leave() {
        for (Entry entry : keyspace.entries()) {
            assertArrayEquals(Tools.key(0), entry.key());
            break;
        }
        keyspace.entries().stream().limit(3).forEach(entry -> {});
    }

    @Test
    void anIteratorThatWasClosedHasNoNext() {
        fill(10);
        CloseableIterator<Entry> entries = keyspace.entries().iterator();
        assertTrue(entries.hasNext());
        entries.close();
        entries.close();
        assertFalse(entries.hasNext());
        assertThrows(NoSuchElementException.class, entries::next);
        try (var keys = keyspace.entries(Range.of(Tools.key(2), Tools.key(5))).keysOnly().stream()) {
            assertEquals(List.of("key0000002", "key0000003", "key0000004"),
                    keys.peek(entry -> assertEquals(0, entry.value().length)).map(entry -> Tools.text(entry.key())).toList());
        }
    }
}
