package io.esker.kafka;

import static io.esker.kafka.Fixture.SMALL;
import static io.esker.kafka.Fixture.bytes;
import static io.esker.kafka.Fixture.key;
import static io.esker.kafka.Fixture.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.VersionedKeyQuery;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The versioned store beside a map of all versions, with writes that come late. */
class VersionedTest {
    private static final boolean CAMPAIGN = "1".equals(System.getenv("ESKER_CAMPAIGN"));
    private static final long RETENTION_MS = 300;
    private static final long SEGMENT_MS = 50;
    private static final Map<String, Object> CRAMPED = Fixture.both(Fixture.EXACTLY_ONCE, SMALL);
    private static final TopicPartition CHANGELOG = new TopicPartition("versions", 0);

    @TempDir
    Path directory;

    private EskerVersionedStore open() {
        return Fixture.open(new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS), directory, SMALL);
    }

    @Test
    void everyVersionIsFoundAsLongAsItsHistoryIsKept() {
        long seed = Long.getLong("esker.seed", System.nanoTime());
        System.out.println("VersionedTest: -Desker.seed=" + seed);
        Random random = new Random(seed);
        Map<String, TreeMap<Long, String>> model = new HashMap<>(); // a null value is a deletion
        EskerVersionedStore store = open();
        long now = 1000;
        int steps = CAMPAIGN ? 200_000 : 20_000;
        for (int step = 0; step < steps; step++) {
            if (random.nextInt(5) == 0) now += random.nextInt(8);
            String name = "k".repeat(1 + random.nextInt(3));
            TreeMap<Long, String> versions = model.computeIfAbsent(name, key -> new TreeMap<>());
            long time = now - random.nextInt(random.nextInt(4) == 0 ? 200 : 9);
            if (random.nextInt(3) > 0) {
                String value = random.nextInt(4) == 0 ? null : "v" + step;
                Map.Entry<Long, String> next = versions.higherEntry(time);
                long validTo = store.put(key(name), value == null ? null : bytes(value), time);
                assertEquals(next == null ? VersionedKeyValueStore.PUT_RETURN_CODE_VALID_TO_UNDEFINED : next.getKey(), validTo,
                        () -> "seed " + seed);
                versions.put(time, value);
                // What comes with the time of the store counts as the newest.
                now = Math.max(now, time);
            } else {
                assertEquals(at(versions, time), shown(store.get(key(name), time)), "seed " + seed + " step " + step);
                assertEquals(at(versions, Long.MAX_VALUE), shown(store.get(key(name))), "seed " + seed + " step " + step);
            }
            if (random.nextInt(500) == 0) {
                assertEquals(between(versions, now - 150, now - 20), drain(store.get(key(name), now - 150, now - 20, null)), "seed " + seed);
            }
            if (random.nextInt(2000) == 0) {
                store.commit(Map.of(Fixture.CHANGELOG, (long) step));
                store.close();
                store = open();
                store.put(key("time"), bytes("goes on"), now);
            }
        }
        store.close();
    }

    private static String at(TreeMap<Long, String> versions, long time) {
        Map.Entry<Long, String> entry = versions.floorEntry(time);
        if (entry == null || entry.getValue() == null) return null;
        return entry.getValue() + "@" + entry.getKey();
    }

    private static String shown(VersionedRecord<byte[]> record) {
        return record == null ? null : text(record.value()) + "@" + record.timestamp();
    }

    /** Newest first, as it is when no order is asked for. */
    private static List<String> between(TreeMap<Long, String> versions, long from, long to) {
        List<String> found = new ArrayList<>();
        for (Map.Entry<Long, String> version : versions.headMap(to, true).entrySet()) {
            Long validTo = versions.higherKey(version.getKey());
            if (version.getValue() != null && (validTo == null || validTo > from)) found.add(version.getValue() + "@" + version.getKey());
        }
        Collections.reverse(found);
        return found;
    }

    private static List<String> drain(VersionedRecordIterator<byte[]> records) {
        List<String> found = new ArrayList<>();
        while (records.hasNext()) found.add(shown(records.next()));
        records.close();
        return found;
    }

    @Test
    void historyExpiresAndTheLatestVersionDoesNot() {
        EskerVersionedStore store = open();
        store.put(key("a"), bytes("first"), 1000);
        store.put(key("a"), bytes("second"), 1010);
        store.put(key("b"), bytes("later"), 1010 + 3 * RETENTION_MS);
        assertEquals(null, store.get(key("a"), 1005));
        assertEquals("second@1010", shown(store.get(key("a"))));
        assertEquals("second@1010", shown(store.get(key("a"), 1020)));
        assertEquals(VersionedKeyValueStore.PUT_RETURN_CODE_NOT_PUT, store.put(key("a"), bytes("too late"), 1000));
        store.close();
    }

    @Test
    void queriesAreAnswered() {
        VersionedBytesStore bytes = (VersionedBytesStore) Fixture.open(
                EskerStores.persistentVersionedKeyValueStore("versions", Duration.ofHours(1)).get(), directory, Map.of());
        bytes.put(key("a"), bytes("one"), 10);
        bytes.put(key("a"), bytes("two"), 20);
        bytes.put(key("a"), bytes("three"), 30);
        bytes.close();
        EskerVersionedStore store = Fixture.open(new EskerVersionedStore("versions", 3_600_000, 300_000), directory, Map.of());
        bytes.close();
        QueryResult<VersionedRecord<byte[]>> one = query(store, VersionedKeyQuery.<Bytes, byte[]>withKey(key("a"))
                .asOf(Instant.ofEpochMilli(25)));
        assertEquals("two@20", shown(one.getResult()));
        MultiVersionedKeyQuery<Bytes, byte[]> several = MultiVersionedKeyQuery.<Bytes, byte[]>withKey(key("a"))
                .fromTime(Instant.ofEpochMilli(15)).toTime(Instant.ofEpochMilli(30));
        assertEquals(List.of("three@30", "two@20", "one@10"), drain(query(store, several).getResult()));
        assertEquals(List.of("one@10", "two@20", "three@30"), drain(query(store, several.withAscendingTimestamps()).getResult()));
        store.close();
    }

    private static ConsumerRecord<byte[], byte[]> logged(String key, String value, long time) {
        return logged(bytes(key), value, time, 0);
    }

    private static ConsumerRecord<byte[], byte[]> logged(byte[] key, String value, long time, long offset) {
        return new ConsumerRecord<>("versions", 0, offset, time, TimestampType.CREATE_TIME, 0, 0, key,
                value == null ? null : bytes(value), new RecordHeaders(), Optional.empty());
    }

    /** What expires before a restored batch ends says what its later records mean. */
    @Test
    void aDeletionThatExpiresWithinARestoredBatchCounts() {
        List<ConsumerRecord<byte[], byte[]>> log = List.of(logged("a", "first", 1000), logged("a", null, 1010), logged("a", "late", 1005),
                logged("b", "first", 1000), logged("b", null, 1049), logged("b", "second", 1200), logged("b", "late", 1020),
                logged("c", null, 1010), logged("c", "late", 1005), logged("z", "later", 1050 + RETENTION_MS));
        for (int first = 0; first < log.size(); first++) {
            Path here = directory.resolve("restored" + first);
            InternalMockProcessorContext<?, ?> context = Fixture.context(here, SMALL);
            EskerVersionedStore store = new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS);
            store.init(context, store);
            if (first > 0) context.restoreWithHeaders("versions", log.subList(0, first));
            context.restoreWithHeaders("versions", log.subList(first, log.size()));
            assertEquals(null, shown(store.get(key("a"))), "batch from " + first);
            assertEquals(null, shown(store.get(key("b"), 1199)), "batch from " + first);
            assertEquals("second@1200", shown(store.get(key("b"))), "batch from " + first);
            assertEquals(null, shown(store.get(key("c"))), "batch from " + first);
            store.close();
        }
    }

    @Test
    void aStoreThatIsRestoredInBatchesIsTheSame() {
        long seed = Long.getLong("esker.seed", System.nanoTime());
        System.out.println("VersionedTest: -Desker.seed=" + seed);
        Random random = new Random(seed);
        int rounds = CAMPAIGN ? 200 : 20;
        for (int round = 0; round < rounds; round++) {
            EskerVersionedStore store = Fixture.open(new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS),
                    directory.resolve("lived" + round), SMALL);
            List<ConsumerRecord<byte[], byte[]>> log = new ArrayList<>();
            long now = 1000;
            for (int step = 0; step < 300; step++) {
                if (random.nextInt(3) == 0) now += random.nextInt(40);
                String name = "k".repeat(1 + random.nextInt(4));
                String value = random.nextInt(3) == 0 ? null : "v" + step;
                long time = now - random.nextInt(random.nextBoolean() ? 250 : 9);
                store.put(key(name), value == null ? null : bytes(value), time);
                log.add(logged(name, value, time));
            }
            String restoring = "seed " + seed + " round " + round;
            InternalMockProcessorContext<?, ?> context = Fixture.context(directory.resolve("restored" + round), SMALL);
            EskerVersionedStore restored = new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS);
            restored.init(context, restored);
            for (int at = 0; at < log.size(); ) {
                int end = Math.min(log.size(), at + 1 + random.nextInt(100));
                context.restoreWithHeaders("versions", log.subList(at, end));
                at = end;
            }
            for (int length = 1; length <= 4; length++) {
                Bytes key = key("k".repeat(length));
                assertEquals(shown(store.get(key)), shown(restored.get(key)), restoring);
                for (long time = 0; time <= now; time++) {
                    assertEquals(shown(store.get(key, time)), shown(restored.get(key, time)), restoring + " at " + time);
                }
                assertEquals(drain(store.get(key, now - RETENTION_MS, now, null)), drain(restored.get(key, now - RETENTION_MS, now, null)), restoring);
            }
            store.close();
            restored.close();
        }
    }

    /** What did not fit into the buffer was marked as ahead of its offset: a kill before the next commit cost the whole state. */
    @Test
    void largeValuesThatAreRestoredHaveTheirOffsets() {
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, CRAMPED);
        EskerVersionedStore store = new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS);
        store.init(context, store);
        List<ConsumerRecord<byte[], byte[]>> log = new ArrayList<>();
        for (int i = 0; i < 50; i++) log.add(logged(bytes("k" + i % 5), i + "x".repeat(20_000), 1000 + i, i));
        context.restoreWithHeaders("versions", log);
        store.close();
        store = Fixture.open(new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS), directory, CRAMPED);
        assertEquals(49L, store.committedOffset(CHANGELOG));
        assertTrue(shown(store.get(key("k4"))).startsWith("49x"));
        store.close();
    }

    /** What expires before the batch ends is in memory only: a part that was written of it has to bring it. */
    @Test
    void aDeletionThatExpiresBehindThePartThatWasWrittenCounts() {
        List<ConsumerRecord<byte[], byte[]>> log = new ArrayList<>(List.of(logged(bytes("a"), "first", 1000, 0),
                logged(bytes("a"), null, 1010, 1), logged(bytes("b"), "x".repeat(70_000), 1011, 2), logged(bytes("a"), "late", 1005, 3),
                logged(bytes("z"), "later", 1050 + RETENTION_MS, 4)));
        log.add(3, logged(new byte[70_000], "bad", 1011, 3)); // where restoring ends
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, CRAMPED);
        EskerVersionedStore ended = new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS);
        ended.init(context, ended);
        assertThrows(IllegalArgumentException.class, () -> context.restoreWithHeaders("versions", log));
        ended.close();

        InternalMockProcessorContext<?, ?> again = Fixture.context(directory, CRAMPED);
        EskerVersionedStore store = new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS);
        store.init(again, store);
        assertEquals(2L, store.committedOffset(CHANGELOG));
        again.restoreWithHeaders("versions", log.subList(4, 6));
        assertEquals(null, shown(store.get(key("a"))));
        store.close();
    }

    @Test
    void restoringGoesOnBehindThePartOfABatchThatWasWritten() {
        long seed = Long.getLong("esker.seed", System.nanoTime());
        System.out.println("VersionedTest: -Desker.seed=" + seed);
        Random random = new Random(seed);
        long later = 0; // rounds that went on in the middle of their batch
        for (int round = 0; round < (CAMPAIGN ? 500 : 50); round++) {
            EskerVersionedStore store = Fixture.open(new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS),
                    directory.resolve("lived" + round), SMALL);
            List<ConsumerRecord<byte[], byte[]>> log = new ArrayList<>();
            long now = 1000;
            for (int step = 0; step < 120; step++) {
                if (random.nextInt(3) == 0) now += random.nextInt(60);
                String name = "k".repeat(1 + random.nextInt(4));
                String value = random.nextInt(3) == 0 ? null : step + "x".repeat(random.nextInt(20_000));
                long time = now - random.nextInt(random.nextBoolean() ? 250 : 9);
                store.put(key(name), value == null ? null : bytes(value), time);
                log.add(logged(bytes(name), value, time, step));
            }
            Path here = directory.resolve("restored" + round);
            InternalMockProcessorContext<?, ?> context = Fixture.context(here, CRAMPED);
            EskerVersionedStore ended = new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS);
            ended.init(context, ended);
            // Restoring ends at a record that cannot be restored.
            List<ConsumerRecord<byte[], byte[]>> part = new ArrayList<>(log);
            int bad = random.nextInt(log.size());
            part.add(bad, logged(new byte[70_000], "bad", log.get(bad).timestamp(), 0));
            assertThrows(IllegalArgumentException.class, () -> context.restoreWithHeaders("versions", part));
            ended.close();

            InternalMockProcessorContext<?, ?> again = Fixture.context(here, CRAMPED);
            EskerVersionedStore restored = new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS);
            restored.init(again, restored);
            Long reached = restored.committedOffset(CHANGELOG);
            int next = reached == null ? 0 : (int) (reached + 1);
            if (next > 0) later++;
            again.restoreWithHeaders("versions", log.subList(next, log.size()));
            String restoring = "seed " + seed + " round " + round + " from " + next;
            for (int length = 1; length <= 4; length++) {
                Bytes key = key("k".repeat(length));
                assertEquals(shown(store.get(key)), shown(restored.get(key)), restoring);
                for (long time = now - RETENTION_MS; time <= now; time++) {
                    assertEquals(shown(store.get(key, time)), shown(restored.get(key, time)), restoring + " at " + time);
                }
            }
            store.close();
            restored.close();
        }
        assertTrue(later > 0, "parts of batches were written");
    }

    /** A version that is cut moves to another segment, and is there all the while. */
    @Test
    @Timeout(300)
    void aVersionIsFoundWhileItIsCut() throws Exception {
        EskerVersionedStore store = open();
        AtomicReference<Bytes> current = new AtomicReference<>();
        AtomicBoolean ended = new AtomicBoolean();
        AtomicLong missed = new AtomicLong();
        List<Function<Bytes, VersionedRecord<byte[]>>> reads = List.of(key -> store.get(key, 1000),
                key -> query(store, VersionedKeyQuery.<Bytes, byte[]>withKey(key).asOf(Instant.ofEpochMilli(1000))).getResult());
        List<Thread> readers = new ArrayList<>();
        for (Function<Bytes, VersionedRecord<byte[]>> read : reads) {
            Thread reader = new Thread(() -> {
                while (!ended.get()) {
                    Bytes key = current.get();
                    if (key != null && read.apply(key) == null) missed.incrementAndGet();
                }
            });
            reader.start();
            readers.add(reader);
        }
        for (int round = 0; round < 200; round++) {
            Bytes key = key("key" + round);
            store.put(key, bytes("first"), 1000);
            store.put(key, bytes("last"), 1000 + RETENTION_MS - 1);
            current.set(key);
            for (long time = 1000 + RETENTION_MS - 2; time > 1000; time--) store.put(key, bytes("between"), time);
        }
        ended.set(true);
        for (Thread reader : readers) reader.join();
        assertEquals(0, missed.get());
        store.close();
    }

    /** The position came with the first of the writes that make a version. */
    @Test
    @Timeout(300)
    void whatAPositionTellsOfIsThere() throws Exception {
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, SMALL);
        EskerVersionedStore store = new EskerVersionedStore("versions", RETENTION_MS, SEGMENT_MS);
        store.init(context, store);
        AtomicBoolean ended = new AtomicBoolean();
        AtomicLong behind = new AtomicLong();
        Thread reader = new Thread(() -> {
            while (!ended.get()) {
                QueryResult<VersionedRecord<byte[]>> result = query(store, VersionedKeyQuery.<Bytes, byte[]>withKey(key("a")));
                if (result.getResult() == null) continue;
                long offset = result.getPosition().getPartitionPositions("input").get(0);
                if (Long.parseLong(text(result.getResult().value())) < offset) behind.incrementAndGet();
            }
        });
        reader.start();
        for (long offset = 0; offset < 20_000; offset++) {
            context.setRecordContext(new ProcessorRecordContext(1000 + offset, offset, 0, "input", new RecordHeaders()));
            store.put(key("a"), bytes("" + offset), 1000 + offset);
        }
        ended.set(true);
        reader.join();
        assertEquals(0, behind.get());
        store.close();
    }

    /** They could be put once, and failed when that version became history. */
    @Test
    void keysThatAreTooLongForHistoryAreRefusedAtFirst() {
        EskerVersionedStore store = open();
        Bytes longest = Bytes.wrap(new byte[65_524]);
        store.put(longest, bytes("one"), 1000);
        store.put(longest, bytes("two"), 1010);
        assertEquals("one@1000", shown(store.get(longest, 1005)));
        String message = assertThrows(IllegalArgumentException.class,
                () -> store.put(Bytes.wrap(new byte[65_525]), bytes("one"), 1000)).getMessage();
        assertTrue(message.contains("65524") && message.contains("65525") && message.contains("versions"), message);
        store.close();
    }

    private static <R> QueryResult<R> query(EskerVersionedStore store, Query<R> query) {
        QueryResult<R> result = store.query(query, PositionBound.unbounded(), new QueryConfig(true));
        assertTrue(result.isSuccess(), () -> result.getFailureMessage());
        assertTrue(result.getExecutionInfo().get(0).contains("EskerVersionedStore"));
        return result;
    }
}
