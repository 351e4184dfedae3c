package io.esker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Stores and snapshots that are closed while threads are in calls. */
@Timeout(600)
class CloseTest {
    @TempDir
    Path directory;

    /** What a thread does again and again, until it throws. */
    private interface Call {
        void run(int round);
    }

    /** Calls of all kinds. None leaves something open. */
    private static List<Call> calls(Esker db, Snapshot snapshot) {
        Keyspace keyspace = db.keyspace();
        ReadableKeyspace then = keyspace.at(snapshot);
        ByteBuffer into = ByteBuffer.allocateDirect(100);
        return List.of(
                at -> keyspace.get(Tools.key(at % 100)),
                at -> keyspace.put(Tools.key(at % 100), Tools.value(at)),
                at -> keyspace.get(Tools.key(at % 100), into.clear()),
                at -> db.write(new WriteBatch().put(Tools.key(at % 100), Tools.value(at)).delete(keyspace, Tools.key(3))),
                at -> {
                    try (Cursor cursor = keyspace.cursor()) {
                        cursor.seek(Tools.key(at % 100));
                        cursor.next();
                    }
                },
                at -> then.get(Tools.key(at % 100)),
                at -> then.multiGet(List.of(Tools.key(1), Tools.key(2))),
                at -> db.snapshot().close(),
                at -> keyspace.delete(Tools.key(at % 100)),
                at -> db.stats(),
                at -> keyspace.bulkLoad(List.of(new Entry(Tools.key(at), Tools.value(at))).iterator()),
                at -> keyspace.compactRange(Range.all()),
                at -> db.flush(),
                at -> db.openOrCreateKeyspace("other").contains(Tools.key(at % 100)));
    }

    /** Runs calls in threads, closes something among them, and gives what each thread ended with. */
    private static Throwable[] race(List<Call> calls, int threads, int round, Runnable close) throws InterruptedException {
        Throwable[] ends = new Throwable[threads];
        CountDownLatch begun = new CountDownLatch(threads);
        Thread[] running = new Thread[threads];
        for (int thread = 0; thread < threads; thread++) {
            int self = thread;
            Call call = calls.get((round * threads + thread) % calls.size());
            running[thread] = new Thread(() -> {
                try {
                    call.run(0);
                    begun.countDown();
                    for (int at = 1; ; at++) call.run(at);
                } catch (Throwable e) {
                    ends[self] = e;
                    begun.countDown();
                }
            });
            running[thread].start();
        }
        begun.await();
        for (int spin = 0; spin < round % 100 * 30; spin++) Thread.onSpinWait();
        close.run();
        for (Thread thread : running) thread.join();
        return ends;
    }

    @Test
    void aStoreIsClosedUnderCallsOfAllKinds() throws Exception {
        Path path = directory.resolve("store");
        int rounds = Tools.rounds(2000, 400);
        for (int round = 0; round < rounds; round++) {
            Esker db = Esker.open(path, Tools.small().segmentSize(64 << 10));
            Snapshot snapshot = db.snapshot();
            for (Throwable end : race(calls(db, snapshot), 4, round, db::close)) {
                assertEquals("java.lang.IllegalStateException: the store was closed", String.valueOf(end));
            }
            assertFalse(db.isOpen());
            snapshot.close();
            // Whoever closed it has waited: the next open finds the directory free.
        }
    }

    @Test
    void aSnapshotIsClosedUnderReads() throws Exception {
        try (Esker db = Esker.open(directory.resolve("store"), Tools.small())) {
            Keyspace keyspace = db.keyspace();
            for (int at = 0; at < 100; at++) keyspace.put(Tools.key(at), Tools.value(at));
            int rounds = Tools.rounds(8000, 2000);
            for (int round = 0; round < rounds; round++) {
                Snapshot snapshot = db.snapshot();
                ReadableKeyspace then = keyspace.at(snapshot);
                List<Call> calls = List.of(
                        at -> then.get(Tools.key(at % 100)),
                        at -> keyspace.at(snapshot).contains(Tools.key(at % 100)),
                        at -> then.entries(Range.prefix(Tools.bytes("key00000"))).stream().count());
                for (Throwable end : race(calls, 3, round, snapshot::close)) {
                    assertEquals("java.lang.IllegalStateException: the snapshot was closed", String.valueOf(end));
                }
            }
            assertEquals(0, db.stats().snapshots());
        }
    }

    @Test
    void manyThreadsMayCloseAtOnce() throws Exception {
        Path path = directory.resolve("store");
        for (int round = 0; round < 100; round++) {
            Esker db = Esker.open(path, Tools.small());
            db.keyspace().put(Tools.key(round), Tools.value(round));
            AtomicReference<Throwable> failed = new AtomicReference<>();
            AtomicInteger reopened = new AtomicInteger();
            Thread[] threads = new Thread[4];
            for (int thread = 0; thread < threads.length; thread++) {
                threads[thread] = new Thread(() -> {
                    try {
                        db.close();
                        // Who returns from it, first or not, finds the store closed, and the directory free or taken by another.
                        try (Esker again = Esker.open(path, Tools.small())) {
                            reopened.incrementAndGet();
                        } catch (EskerException e) {
                            if (e.code() != EskerException.Code.LOCKED) throw e;
                        }
                    } catch (Throwable e) {
                        failed.set(e);
                    }
                });
                threads[thread].start();
            }
            for (Thread thread : threads) thread.join();
            if (failed.get() != null) throw new AssertionError(failed.get());
            assertTrue(reopened.get() > 0);
        }
    }

    @Test
    void aLongCallEndsWhenTheStoreIsClosed() throws Exception {
        Path path = directory.resolve("store");
        Esker db = Esker.open(path, Tools.small());
        AtomicReference<Throwable> end = new AtomicReference<>();
        CountDownLatch begun = new CountDownLatch(1);
        Thread waiter = new Thread(() -> {
            try {
                begun.countDown();
                while (true) db.waitForCompactions();
            } catch (Throwable e) {
                end.set(e);
            }
        });
        waiter.start();
        begun.await();
        for (int at = 0; at < 20_000; at++) db.keyspace().put(Tools.key(at), Tools.large(100, at));
        db.close();
        waiter.join();
        assertEquals("java.lang.IllegalStateException: the store was closed", String.valueOf(end.get()));
    }

    @Test
    void aStoreThatIsForgottenIsClosed() throws Exception {
        Path path = directory.resolve("store");
        Esker.open(path, Tools.small()).keyspace().put(Tools.key(1), Tools.value(1));
        try (Esker again = Tools.openAfterCollection(path)) {
            assertEquals("value 1", Tools.text(again.keyspace().get(Tools.key(1))));
        }
    }

    @Test
    void aKeyspaceKeepsItsStoreOpen() throws Exception {
        Keyspace keyspace = Esker.open(directory.resolve("store"), Tools.small()).createKeyspace("only");
        for (int round = 0; round < 5; round++) {
            System.gc();
            Thread.sleep(10);
            keyspace.put(Tools.key(round), Tools.value(round));
        }
        assertEquals(5, keyspace.entries().stream().count());
    }

    @Test
    void anInterruptDisturbsNothing() throws Exception {
        AtomicReference<Throwable> failed = new AtomicReference<>();
        Thread thread = new Thread(() -> {
            try {
                Thread.currentThread().interrupt();
                Esker db = Esker.open(directory.resolve("store"), Tools.small());
                Keyspace keyspace = db.keyspace();
                keyspace.put(Tools.key(1), Tools.value(1), Durability.SYNCED);
                db.flush();
                db.waitForCompactions();
                keyspace.bulkLoad(List.of(new Entry(Tools.key(2), Tools.value(2))).iterator());
                assertEquals(2, keyspace.entries().stream().count());
                db.checkpoint(directory.resolve("copy"));
                // One that closes waits for a call under way, with the flag set.
                Thread reader = new Thread(() -> {
                    try {
                        while (true) keyspace.get(Tools.key(1));
                    } catch (IllegalStateException e) {
                        // Closed.
                    }
                });
                reader.start();
                db.close();
                assertTrue(Thread.interrupted(), "the flag is gone");
                reader.join();
            } catch (Throwable e) {
                failed.set(e);
            }
        });
        thread.start();
        thread.join();
        if (failed.get() != null) throw new AssertionError(failed.get());
        Esker.open(directory.resolve("store"), Tools.small()).close();
    }
}
