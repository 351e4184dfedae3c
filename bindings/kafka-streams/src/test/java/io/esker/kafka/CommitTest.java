package io.esker.kafka;

import static io.esker.kafka.Fixture.CHANGELOG;
import static io.esker.kafka.Fixture.EXACTLY_ONCE;
import static io.esker.kafka.Fixture.SMALL;
import static io.esker.kafka.Fixture.both;
import static io.esker.kafka.Fixture.bytes;
import static io.esker.kafka.Fixture.key;
import static io.esker.kafka.Fixture.keyValue;
import static io.esker.kafka.Fixture.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a store has after its process ended in every way, and what it says its offset is. */
class CommitTest {
    @TempDir
    Path directory;

    /** A process that writes, commits every so often, and is gone without closing anything. */
    static final class Victim {
        private Victim() {}

        public static void main(String[] args) {
            int puts = Integer.parseInt(args[1]);
            int commitEvery = Integer.parseInt(args[2]);
            int valueBytes = Integer.parseInt(args[3]);
            KeyValueStore<Bytes, byte[]> store = keyValue(Path.of(args[0]), both(EXACTLY_ONCE, SMALL));
            for (int i = 0; i < puts; i++) {
                store.put(key("key" + i % 10), bytes(i + " " + "x".repeat(valueBytes)));
                if (i % commitEvery == commitEvery - 1) store.commit(Map.of(CHANGELOG, (long) i));
            }
            Runtime.getRuntime().halt(137);
        }
    }

    private void kill(int puts, int commitEvery, int valueBytes) throws Exception {
        Path output = directory.resolve("victim.log");
        Process victim = new ProcessBuilder(List.of(System.getProperty("java.home") + File.separator + "bin" + File.separator + "java",
                "-cp", System.getProperty("java.class.path"), Victim.class.getName(), directory.resolve("task").toString(),
                "" + puts, "" + commitEvery, "" + valueBytes)).redirectErrorStream(true).redirectOutput(output.toFile()).start();
        assertTrue(victim.waitFor(60, TimeUnit.SECONDS));
        assertEquals(137, victim.exitValue(), Files.readString(output));
    }

    @Test
    void afterAKillTheStoreIsAsOfItsLastCommitAndKnowsWhich() throws Exception {
        kill(1000, 70, 20);
        KeyValueStore<Bytes, byte[]> store = keyValue(directory.resolve("task"), EXACTLY_ONCE);
        long committed = store.committedOffset(CHANGELOG);
        assertEquals(979, committed); // 14 * 70 - 1: twenty writes came after it
        for (int i = 0; i < 10; i++) assertTrue(text(store.get(key("key" + i))).startsWith((970 + i) + " "));
        store.close();
    }

    @Test
    void moreThanMayWaitIsWrittenAheadWhichExactlyOnceRefusesAndAtLeastOnceTakes() throws Exception {
        kill(97, 95, 20_000); // before the commit some were written ahead, after it two wait
        KeyValueStore<Bytes, byte[]> sound = keyValue(directory.resolve("task"), EXACTLY_ONCE);
        assertEquals(94L, sound.committedOffset(CHANGELOG));
        assertTrue(text(sound.get(key("key9"))).startsWith("89 "), "after the commit nothing was written ahead");
        sound.close();

        kill(94, 95, 20_000); // no commit comes after these
        TaskCorruptedException corrupted = assertThrows(TaskCorruptedException.class,
                () -> keyValue(directory.resolve("task"), EXACTLY_ONCE));
        assertTrue(corrupted.getCause().getMessage().contains("never committed"), corrupted.getCause().getMessage());

        KeyValueStore<Bytes, byte[]> store = keyValue(directory.resolve("task"), Map.of());
        assertEquals(94L, store.committedOffset(CHANGELOG), "the offset stays behind, so that nothing is left out");
        assertTrue(text(store.get(key("key0"))).matches("(?s)\\d+ x+"));
        store.commit(Map.of(CHANGELOG, 200L));
        store.close();
        keyValue(directory.resolve("task"), EXACTLY_ONCE).close();
    }

    /** Nobody handles the corruption of a global store: the application never started again. */
    @Test
    void aGlobalStoreThatIsAheadIsEmptiedAndOneThatIsNotIsKept() throws Exception {
        kill(97, 95, 20_000);
        KeyValueStore<Bytes, byte[]> store = global();
        assertEquals(94L, store.committedOffset(CHANGELOG));
        assertTrue(text(store.get(key("key9"))).startsWith("89 "));
        store.close();

        kill(94, 95, 20_000);
        store = global();
        assertNull(store.committedOffset(CHANGELOG));
        assertNull(store.get(key("key9")));
        store.close();
        global().close();
    }

    private KeyValueStore<Bytes, byte[]> global() {
        KeyValueStore<Bytes, byte[]> store = EskerStores.persistentKeyValueStore("store").get();
        Properties properties = StreamsTestUtils.getStreamsConfig();
        properties.putAll(EXACTLY_ONCE);
        store.init(new InternalMockProcessorContext<>(directory.resolve("task").toFile(), new StreamsConfig(properties),
                new MockRecordCollector()) {
            @Override
            public TaskId taskId() {
                return new TaskId(-1, -1); // as that of GlobalProcessorContextImpl
            }
        }, store);
        return store;
    }

    /** Kafka Streams gives a store of which it knows no offset one that says so. */
    @Test
    void anOffsetThatStandsForNoneMakesNoStoreButWhereItIsAskedFor() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        store.commit(Map.of(CHANGELOG, -4L));
        store.close();
        assertFalse(Files.exists(directory.resolve("esker")));
        store = keyValue(directory, EXACTLY_ONCE);
        store.commit(Map.of(CHANGELOG, -4L));
        store.close();
        store = keyValue(directory, EXACTLY_ONCE);
        assertEquals(-4L, store.committedOffset(CHANGELOG), "or its task would be corrupted");
        store.close();
    }

    @Test
    void closingWithoutACommitForgetsUnderExactlyOnceAndKeepsUnderAtLeastOnce() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, EXACTLY_ONCE);
        store.put(key("a"), bytes("committed"));
        store.commit(Map.of(CHANGELOG, 1L));
        store.put(key("a"), bytes("of a transaction that failed"));
        assertEquals("of a transaction that failed", text(store.get(key("a"))));
        store.close();

        store = keyValue(directory, Map.of());
        assertEquals("committed", text(store.get(key("a"))));
        store.put(key("a"), bytes("later"));
        store.close();
        store = keyValue(directory, Map.of());
        assertEquals("later", text(store.get(key("a"))));
        store.close();
    }

    @Test
    void anEmptyCommitTakesOffsetsAwayAndANullOneOfThem() {
        TopicPartition other = new TopicPartition("app-store-changelog", 1);
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        assertNull(store.committedOffset(CHANGELOG));
        store.commit(Map.of(CHANGELOG, 7L, other, 8L));
        Map<TopicPartition, Long> without = new HashMap<>();
        without.put(other, null);
        store.commit(without);
        assertEquals(7L, store.committedOffset(CHANGELOG));
        assertNull(store.committedOffset(other));
        store.close();

        store = keyValue(directory, Map.of());
        assertEquals(7L, store.committedOffset(CHANGELOG));
        store.put(key("a"), bytes("1"));
        store.commit(Map.of());
        assertNull(store.committedOffset(CHANGELOG));
        assertEquals("1", text(store.get(key("a"))));
        store.close();
    }

    /** Kafka Streams 4.3 hands the offsets of 4.2's file to whatever store is there: an empty one passed for restored. */
    @Test
    void offsetsOfTheStoreThatWasHereBeforeAreNotTaken() throws IOException {
        Path checkpoint = directory.resolve(".checkpoint");
        Files.writeString(checkpoint, "0\n1\napp-store-changelog 0 41\n");
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        store.commit(Map.of(CHANGELOG, 41L));
        assertNull(store.committedOffset(CHANGELOG));
        Files.delete(checkpoint);
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 7L));
        assertEquals(7L, store.committedOffset(CHANGELOG));
        store.close();

        Files.writeString(checkpoint, "0\n1\napp-store-changelog 0 41\n");
        store = keyValue(directory, Map.of());
        store.commit(Map.of(CHANGELOG, 41L));
        assertEquals(7L, store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void whatIsRestoredHasItsOffsetAtOnce() {
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, EXACTLY_ONCE);
        KeyValueStore<Bytes, byte[]> store = EskerStores.persistentKeyValueStore("store").get();
        store.init(context, store);
        context.restore("store", List.of(KeyValue.pair(bytes("a"), bytes("1")), KeyValue.pair(bytes("b"), bytes("2")),
                KeyValue.pair(bytes("a"), null)));
        assertNull(store.get(key("a")));
        assertEquals("2", text(store.get(key("b"))));
        assertEquals(0L, store.committedOffset(new TopicPartition("", 0))); // the mock gives all records this one
        store.close();
        store = keyValue(directory, EXACTLY_ONCE);
        assertEquals("2", text(store.get(key("b"))), "restored records need no commit");
        store.close();
    }

    /** Its table was one of the store that was closed. */
    @Test
    void aClosedStoreIsRestoredInto() {
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, Map.of());
        KeyValueStore<Bytes, byte[]> store = EskerStores.persistentKeyValueStore("store").get();
        store.init(context, store);
        store.put(key("a"), bytes("1"));
        store.close();
        context.restore("store", List.of(KeyValue.pair(bytes("b"), bytes("2"))));
        assertEquals("1", text(store.get(key("a"))));
        assertEquals("2", text(store.get(key("b"))));
        store.close();
    }
}
