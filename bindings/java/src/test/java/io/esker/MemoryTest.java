package io.esker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeout;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What Java's heap has no room for, and what must not fill it. */
class MemoryTest {
    @TempDir
    Path directory;

    private static final int HUGE = 100 << 20;

    /** Runs in a JVM with a small heap. */
    public static final class SmallHeap {
        public static void main(String[] arguments) {
            try (Esker db = Esker.open(Path.of(arguments[0]), Tools.small())) {
                Keyspace keyspace = db.keyspace();
                ByteBuffer huge = ByteBuffer.allocateDirect(HUGE);
                huge.put(HUGE - 1, (byte) 7);
                keyspace.put(ByteBuffer.wrap(Tools.key(2)), huge);
                keyspace.put(Tools.key(1), Tools.value(1));
                keyspace.put(Tools.key(3), Tools.value(3));
                starves(() -> keyspace.get(Tools.key(2)));
                starves(() -> keyspace.multiGet(List.of(Tools.key(1), Tools.key(2))));
                try (Cursor cursor = keyspace.cursor()) {
                    cursor.first();
                    starves(cursor::next);
                    starves(cursor::next);
                    System.out.println(cursor.isValid() + " " + cursor.seek(Tools.key(3)) + " " + Tools.text(cursor.value()));
                    starves(cursor::previous);
                    System.out.println(cursor.first() + " " + Tools.text(cursor.value()));
                }
                // A walk copies no large entry that lies outside its bounds.
                Entries before = keyspace.entries(Range.before(Tools.key(2)));
                Entries behind = keyspace.entries(Range.between(Tools.key(2), false, null, true));
                for (Entries walk : List.of(before, before.reversed(), behind, behind.reversed())) {
                    for (Entry entry : walk) System.out.println(Tools.text(entry.value()));
                }
                starves(() -> keyspace.entries(Range.atLeast(Tools.key(2))).iterator().next());
                System.out.println(keyspace.getBuffer(Tools.key(2)).get(HUGE - 1));
                ByteBuffer into = ByteBuffer.allocate(3);
                System.out.println(keyspace.get(Tools.key(2), into) + " " + into.position());
                System.out.println(Tools.text(keyspace.get(Tools.key(1))));
            }
        }

        private static void starves(Runnable call) {
            try {
                call.run();
                System.out.println("there was memory");
            } catch (OutOfMemoryError e) {
                System.out.println("no memory");
            }
        }
    }

    @Test
    void aValueThatDoesNotFitIsAnErrorOfThatCall() throws Exception {
        List<String> said = Tools.java(SmallHeap.class, List.of("-Xmx32m", "-XX:MaxDirectMemorySize=256m"),
                directory.resolve("store").toString());
        assertEquals(List.of("no memory", "no memory", "no memory", "no memory", "false true value 3", "no memory", "true value 1",
                "value 1", "value 1", "value 3", "value 3", "no memory", "7", HUGE + " 3", "value 1", "exit 0"), said);
    }

    /** Runs in a JVM with a small heap. */
    public static final class ManyViews {
        public static void main(String[] arguments) {
            try (Esker db = Esker.open(Path.of(arguments[0]), Tools.small())) {
                Keyspace kept = db.createKeyspace("trees");
                kept.put(Tools.key(1), Tools.value(1));
                try (Snapshot snapshot = db.snapshot()) {
                    kept.put(Tools.key(1), Tools.value(2));
                    ReadableKeyspace first = kept.at(snapshot);
                    long right = 0;
                    for (int at = 0; at < 300_000; at++) {
                        ReadableKeyspace then = db.keyspace("trees").at(snapshot);
                        if (at % 1000 == 0 && "value 1".equals(Tools.text(then.get(Tools.key(1))))) right++;
                    }
                    System.out.println(right + " " + (kept.at(snapshot) == first) + " " + Tools.text(first.get(Tools.key(1))));
                }
                System.out.println(db.stats().snapshots());
            } catch (OutOfMemoryError e) {
                System.out.println("no memory");
            }
        }
    }

    @Test
    void aSnapshotKeepsNoObjectThatNobodyHas() throws Exception {
        List<String> said = Tools.java(ManyViews.class, List.of("-Xmx16m"), directory.resolve("store").toString());
        assertEquals(List.of("300 true value 1", "0", "exit 0"), said);
    }

    @Test
    void aClosedSnapshotFreesWhatItGaveAtOnce() {
        try (Esker db = Esker.open(directory.resolve("store"), Tools.small())) {
            Snapshot snapshot = db.snapshot();
            ReadableKeyspace kept = db.keyspace().at(snapshot);
            snapshot.close();
            assertThrows(IllegalStateException.class, () -> kept.get(Tools.key(1)));
            assertEquals(0, db.stats().snapshots());
        }
    }

    /** A snapshot, what it gave, and the keyspace that it was asked for are collected in any order, while others are closed. */
    @Test
    void viewsMayBeCollectedWhileTheirSnapshotIsClosed() throws Exception {
        try (Esker db = Esker.open(directory.resolve("store"), Tools.small())) {
            db.createKeyspace("trees");
            for (int round = 0; round < Tools.rounds(2000, 400); round++) {
                Snapshot snapshot = db.snapshot();
                for (int at = 0; at < 20; at++) db.keyspace("trees").at(snapshot);
                if (round % 10 == 0) System.gc();
                if (round % 3 != 0) snapshot.close();
            }
            Tools.collectUntil(() -> db.stats().snapshots() == 0);
            assertEquals(0, db.stats().snapshots());
        }
    }

    @Test
    void aBatchOfManyKeyspaceObjectsTakesNoTimeToLookForThem() {
        try (Esker db = Esker.open(directory.resolve("store"), Tools.small())) {
            db.createKeyspace("trees");
            Keyspace[] objects = new Keyspace[250_000];
            for (int at = 0; at < objects.length; at++) objects[at] = db.keyspace("trees");
            WriteBatch batch = new WriteBatch();
            // One by one that is 31 billion comparisons; a busy machine has taken ten seconds for what is done now.
            assertTimeout(Duration.ofSeconds(40), () -> {
                for (int at = 0; at < objects.length; at++) batch.put(objects[at], Tools.key(at), Tools.value(at));
            });
            assertEquals(objects.length, batch.count());
            batch.clear();
            for (int at = 0; at < 3000; at++) batch.put(objects[at % 2000], Tools.key(at), Tools.value(at));
            batch.put(db.keyspace(), Tools.key(0), Tools.value(7));
            db.write(batch);
            for (int at = 0; at < 3000; at += 499) assertEquals("value " + at, Tools.text(objects[5].get(Tools.key(at))));
            assertEquals("value 7", Tools.text(db.keyspace().get(Tools.key(0))));
        }
    }
}
