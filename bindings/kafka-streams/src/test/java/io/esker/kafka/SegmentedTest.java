package io.esker.kafka;

import static io.esker.kafka.Fixture.CHANGELOG;
import static io.esker.kafka.Fixture.SMALL;
import static io.esker.kafka.Fixture.bytes;
import static io.esker.kafka.Fixture.key;
import static io.esker.kafka.Fixture.open;
import static io.esker.kafka.Fixture.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.esker.Esker;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.WindowKeySchema;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Windows on the disk: what a reopening finds, what expires when, and the index by time. */
class SegmentedTest {
    private static final Duration RETENTION = Duration.ofMinutes(2);
    private static final Duration WINDOW = Duration.ofSeconds(1);
    private static final long MINUTE_MS = 60_000;

    @TempDir
    Path directory;

    private WindowStore<Bytes, byte[]> windows() {
        return open(EskerStores.persistentWindowStore("windows", RETENTION, WINDOW, false).get(), directory, SMALL);
    }

    private WindowStore<Bytes, byte[]> indexed() {
        return indexed(SMALL);
    }

    private WindowStore<Bytes, byte[]> indexed(Map<String, Object> settings) {
        return open(unopened(), directory, settings);
    }

    /** A store with an index. */
    private static WindowStore<Bytes, byte[]> unopened() {
        DslWindowParams params = new DslWindowParams(
                "windows", RETENTION, WINDOW, false, EmitStrategy.onWindowClose(), false, DslStoreFormat.PLAIN);
        return new EskerDslStoreSuppliers().windowStore(params).get();
    }

    /** A record of the changelog. */
    private static KeyValue<byte[], byte[]> logged(String key, String value, long timeMs) {
        return KeyValue.pair(WindowKeySchema.toStoreKeyBinary(key(key), timeMs, 0).get(), bytes(value));
    }

    private List<String> keyspaces() {
        try (Esker store = Esker.open(directory.resolve("esker").resolve("windows"))) {
            return store.keyspaces().stream().filter(name -> name.startsWith("segment") || name.startsWith("times")).sorted().toList();
        }
    }

    private static List<String> values(KeyValueIterator<Windowed<Bytes>, byte[]> windows) {
        List<String> values = new ArrayList<>();
        try (windows) {
            while (windows.hasNext()) {
                KeyValue<Windowed<Bytes>, byte[]> entry = windows.next();
                values.add(text(entry.value) + "@" + entry.key.window().start());
            }
        }
        return values;
    }

    @Test
    void whatWasCommittedIsThereAgainAndExpiredSegmentsGoWithACommit() {
        WindowStore<Bytes, byte[]> store = windows();
        store.put(key("a"), bytes("first"), 0);
        store.put(key("a"), bytes("second"), MINUTE_MS);
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();
        assertEquals(List.of("segment.0.plain", "segment.1.plain"), keyspaces());

        store = windows();
        assertEquals("first", text(store.fetch(key("a"), 0)));
        assertEquals(1L, store.committedOffset(CHANGELOG));
        store.put(key("a"), bytes("much later"), 5 * MINUTE_MS);
        assertNull(store.fetch(key("a"), 0), "it expired");
        assertEquals(List.of("much later@" + 5 * MINUTE_MS), values(store.all()));
        store.commit(Map.of(CHANGELOG, 2L));
        store.close();
        assertEquals(List.of("segment.5.plain"), keyspaces());
    }

    /** Segments were taken for those of other times: dropped at once, or kept for decades. */
    @Test
    void aStoreThatIsOpenedWithAnotherRetentionIsRestored() {
        for (Map<String, Object> settings : List.of(SMALL, Fixture.EXACTLY_ONCE)) {
            WindowStore<Bytes, byte[]> store = open(
                    EskerStores.persistentWindowStore("windows", RETENTION, WINDOW, false).get(), directory, settings);
            store.put(key("a"), bytes("short"), 100 * MINUTE_MS);
            store.commit(Map.of(CHANGELOG, 1L));
            store.close();
            for (Duration retention : List.of(Duration.ofHours(2), RETENTION)) {
                store = open(EskerStores.persistentWindowStore("windows", retention, WINDOW, false).get(), directory, settings);
                assertEquals(-4L, store.committedOffset(CHANGELOG), "which stands for none");
                assertEquals(List.of(), values(store.all()));
                store.put(key("a"), bytes("other"), 100 * MINUTE_MS);
                store.commit(Map.of(CHANGELOG, 2L));
                store.close();
                assertEquals(List.of(retention == RETENTION ? "segment.100.plain" : "segment.1.plain"), keyspaces());
                store = open(EskerStores.persistentWindowStore("windows", retention, WINDOW, false).get(), directory, settings);
                assertEquals(2L, store.committedOffset(CHANGELOG));
                assertEquals("other", text(store.fetch(key("a"), 100 * MINUTE_MS)));
                store.close();
            }
        }
    }

    @Test
    void anExpiredSegmentWaitsForTheCommitThatGoesWithIt() {
        WindowStore<Bytes, byte[]> store = open(EskerStores.persistentWindowStore("windows", RETENTION, WINDOW, false).get(), directory,
                Fixture.EXACTLY_ONCE);
        store.put(key("a"), bytes("first"), 0);
        store.commit(Map.of(CHANGELOG, 1L));
        store.put(key("a"), bytes("much later"), 5 * MINUTE_MS);
        store.close(); // without a commit, as after a transaction that failed
        store = windows();
        assertEquals("first", text(store.fetch(key("a"), 0)), "the segment is as of the commit");
        store.close();
    }

    @Test
    void theIndexIsMadeAndDroppedAsTheTopologyAsks() {
        WindowStore<Bytes, byte[]> store = windows();
        store.put(key("b"), bytes("one"), 10);
        store.put(key("a"), bytes("three"), 30);
        store.put(key("a"), bytes("two"), 20);
        assertEquals(List.of("two@20", "three@30", "one@10"), values(store.fetchAll(0, 100)), "in the order of keys");
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();

        store = indexed();
        assertEquals(List.of("one@10", "two@20", "three@30"), values(store.fetchAll(0, 100)), "in the order of time");
        assertEquals(List.of("three@30", "two@20"), values(store.backwardFetchAll(11, 30)));
        store.put(key("a"), null, 20);
        assertEquals(List.of("one@10", "three@30"), values(store.fetchAll(0, 100)));
        store.commit(Map.of(CHANGELOG, 2L));
        store.close();
        assertEquals(List.of("segment.0.plain", "times.0"), keyspaces());

        store = windows();
        assertEquals(List.of("three@30", "one@10"), values(store.all()));
        store.commit(Map.of(CHANGELOG, 3L));
        store.close();
        assertEquals(List.of("segment.0.plain"), keyspaces());
    }

    /** Ordered by end and then key, sessions that closed at one moment were emitted in another order than with RocksDB. */
    @Test
    void sessionsOfOneEndComeInTheOrderOfStartsAsWithRocksDB() {
        DslSessionParams params = new DslSessionParams("sessions", RETENTION, EmitStrategy.onWindowClose(), DslStoreFormat.PLAIN);
        List<List<String>> found = new ArrayList<>();
        for (DslStoreSuppliers suppliers : List.of(new EskerDslStoreSuppliers(), new BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers())) {
            SessionStore<Bytes, byte[]> store = open(suppliers.sessionStore(params).get(), directory, SMALL);
            for (String name : List.of("a", "b", "b\0", "b\0\0\0\0\0\0\0\0", "c")) {
                for (long start : List.of(7, 3, 5)) {
                    if (!name.equals("a") || start == 7) store.put(new Windowed<>(key(name), new SessionWindow(start, 9)), bytes(name));
                }
            }
            store.remove(new Windowed<>(key("c"), new SessionWindow(3, 9)));
            List<String> sessions = new ArrayList<>();
            try (KeyValueIterator<Windowed<Bytes>, byte[]> all = store.findSessions(0, 9)) {
                while (all.hasNext()) {
                    KeyValue<Windowed<Bytes>, byte[]> entry = all.next();
                    sessions.add(text(entry.value) + "@" + entry.key.window().start());
                }
            }
            found.add(sessions);
            store.close();
        }
        assertEquals(List.of("b@3", "b\0@3"), found.get(0).subList(0, 2));
        assertEquals(found.get(1), found.get(0));
    }

    /** The order was of time, key and time once more, so that a key could come before one that it begins with. */
    @Test
    void windowsOfOneStartComeInTheOrderOfKeysAsWithRocksDB() {
        DslWindowParams params = new DslWindowParams(
                "windows", RETENTION, WINDOW, false, EmitStrategy.onWindowClose(), false, DslStoreFormat.PLAIN);
        List<List<String>> found = new ArrayList<>();
        for (DslStoreSuppliers suppliers : List.of(new EskerDslStoreSuppliers(), new BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers())) {
            WindowStore<Bytes, byte[]> store = open(suppliers.windowStore(params).get(), directory, SMALL);
            for (String name : List.of("b", "a\0\0\0\0\0\0", "a", "a\0\0\0\0\1")) store.put(key(name), bytes(name), MINUTE_MS);
            found.add(values(store.fetchAll(0, MINUTE_MS)));
            store.close();
        }
        assertEquals("a@60000", found.get(0).get(0));
        assertEquals(found.get(1), found.get(0));
    }

    @Test
    void anIndexThatWasNotFinishedIsMadeAgain() {
        WindowStore<Bytes, byte[]> store = windows();
        store.put(key("b"), bytes("one"), 10);
        store.put(key("a"), bytes("two"), 20);
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();
        try (Esker left = Esker.open(directory.resolve("esker").resolve("windows"))) {
            left.createKeyspace("times.0");
        }
        store = indexed(Fixture.EXACTLY_ONCE);
        assertEquals(List.of("one@10", "two@20"), values(store.fetchAll(0, 100)));
        store.close();
    }

    /** One that did not fit into the buffer marked the store as ahead of its offset, and so as corrupted until the next commit. */
    @Test
    void aLargeIndexIsMadeOnceAndLeavesTheStoreAsOfItsCommit() {
        WindowStore<Bytes, byte[]> store = windows();
        for (int i = 0; i < 1000; i++) store.put(key("key" + i), bytes("v"), i);
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();
        for (int opening = 0; opening < 2; opening++) {
            store = indexed(Fixture.both(Fixture.EXACTLY_ONCE, SMALL));
            assertEquals(1L, store.committedOffset(CHANGELOG));
            assertEquals("v@0", values(store.fetchAll(0, 1000)).get(0));
            assertEquals(1000, values(store.fetchAll(0, 1000)).size());
            store.close(); // without a commit
            assertEquals(List.of("segment.0.plain", "times.0"), keyspaces());
        }
    }

    /** What had expired was dropped while a batch was filled that named it. */
    @Test
    void restoringGoesOnWhereSegmentsOfTheBatchBeforeExpire() {
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, Fixture.EXACTLY_ONCE);
        WindowStore<Bytes, byte[]> store = unopened();
        store.init(context, store);
        context.restore("windows", List.of(logged("a", "zero", 0), logged("a", "one", MINUTE_MS), logged("b", "two", 2 * MINUTE_MS)));
        assertEquals(List.of("one@60000", "two@120000"), values(store.fetchAll(1, 2 * MINUTE_MS)));
        context.restore("windows", List.of(logged("b", "ten", 10 * MINUTE_MS), logged("a", "before", 10 * MINUTE_MS - 1)));
        assertEquals(List.of("before@599999", "ten@600000"), values(store.all()));
        assertEquals(0L, store.committedOffset(new TopicPartition("", 0))); // the mock gives all records this one
        store.close(); // without a commit, as a task that moves away

        assertEquals(List.of("segment.10.plain", "segment.9.plain", "times.10", "times.9"), keyspaces());
        store = indexed(Fixture.EXACTLY_ONCE); // which is not ahead of its offset
        assertEquals(0L, store.committedOffset(new TopicPartition("", 0)));
        assertEquals(List.of("before@599999", "ten@600000"), values(store.all()));
        store.close();
    }

    @Test
    void aClosedStoreThatIsRestoredHasItsSegmentsAgain() {
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, Fixture.EXACTLY_ONCE);
        WindowStore<Bytes, byte[]> store = unopened();
        store.init(context, store);
        context.restore("windows", List.of(logged("a", "zero", 0)));
        store.close();
        context.restore("windows", List.of(logged("a", "one", MINUTE_MS)));
        assertEquals(List.of("zero@0", "one@60000"), values(store.fetchAll(0, MINUTE_MS)));
        store.close();
    }

    /** The writes ahead of a commit could come between a segment and its index. */
    @Test
    void anExpiredSegmentGoesWithItsIndex() {
        WindowStore<Bytes, byte[]> store = indexed(Fixture.EXACTLY_ONCE);
        store.put(key("a"), bytes("zero"), 0);
        store.put(key("a"), bytes("one"), MINUTE_MS);
        store.commit(Map.of(CHANGELOG, 1L));
        store.put(key("a"), bytes("ten"), 10 * MINUTE_MS);
        store.close(); // without a commit: what still waits for one is forgotten
        List<String> left = keyspaces();
        for (String name : left) {
            if (name.startsWith("times")) assertTrue(left.contains(name.replace("times", "segment") + ".plain"), left.toString());
        }
    }

    @Test
    void anIndexWithoutItsSegmentIsDroppedWhenTheStoreIsOpened() {
        WindowStore<Bytes, byte[]> store = indexed(Fixture.EXACTLY_ONCE);
        store.put(key("a"), bytes("one"), MINUTE_MS);
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();
        try (Esker left = Esker.open(directory.resolve("esker").resolve("windows"))) {
            for (String name : List.of("times.0", "times.2", "times.3", "times.4")) left.createKeyspace(name);
        }
        indexed(Fixture.EXACTLY_ONCE).close();
        assertEquals(List.of("segment.1.plain", "times.1"), keyspaces());

        try (Esker left = Esker.open(directory.resolve("esker").resolve("windows"))) {
            left.createKeyspace("times.2");
        }
        store = indexed(Fixture.EXACTLY_ONCE);
        store.put(key("a"), bytes("two"), 2 * MINUTE_MS); // takes the same name
        store.commit(Map.of(CHANGELOG, 2L));
        store.put(key("b"), bytes("two"), 2 * MINUTE_MS);
        store.commit(Map.of(CHANGELOG, 3L));
        assertEquals(List.of("one@60000", "two@120000", "two@120000"), values(store.fetchAll(1, 2 * MINUTE_MS)));
        store.close();
        assertEquals(List.of("segment.1.plain", "segment.2.plain", "times.1", "times.2"), keyspaces());
    }

    @Test
    void iteratorsThatAreOpenWhileSegmentsExpireEndInOrder() {
        WindowStore<Bytes, byte[]> store = windows();
        for (int i = 0; i < 3; i++) store.put(key("a"), bytes("v" + i), i * MINUTE_MS);
        store.commit(Map.of(CHANGELOG, 1L));
        KeyValueIterator<Windowed<Bytes>, byte[]> all = store.all();
        assertTrue(all.hasNext());
        for (int i = 3; i < 30; i++) {
            store.put(key("a"), bytes("v" + i), i * MINUTE_MS);
            store.commit(Map.of(CHANGELOG, (long) i));
        }
        List<String> seen = values(all);
        assertTrue(seen.size() <= 3, seen.toString()); // what it had opened it shows; what expired before it came there it does not
        store.close();
    }
}
