package io.esker.kafka;

import static io.esker.kafka.Fixture.bytes;
import static io.esker.kafka.Fixture.key;
import static io.esker.kafka.Fixture.keyValue;
import static io.esker.kafka.Fixture.open;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.esker.Esker;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.stream.Stream;

import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.serialization.BytesSerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Wrong use and wrong surroundings give the errors that users of Kafka Streams know. */
class BadInputTest {
    @TempDir
    Path directory;

    @Test
    void aClosedStoreSaysSo() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        store.put(key("a"), bytes("1"));
        KeyValueIterator<Bytes, byte[]> left = store.all();
        assertTrue(store.isOpen());
        store.close();
        store.close();
        assertFalse(store.isOpen());
        Stream<Executable> calls = Stream.of(() -> store.get(key("a")), () -> store.put(key("a"), bytes("2")), () -> store.delete(key("a")),
                () -> store.putIfAbsent(key("a"), bytes("2")), () -> store.putAll(List.of(KeyValue.pair(key("a"), bytes("2")))),
                store::all, store::reverseAll, () -> store.range(key("a"), key("b")), () -> store.reverseRange(key("a"), key("b")),
                () -> store.prefixScan("a", new StringSerializer()), store::approximateNumEntries,
                () -> store.committedOffset(Fixture.CHANGELOG), left::hasNext, left::next, left::peekNextKey);
        calls.forEach(call -> {
            InvalidStateStoreException error = assertThrows(InvalidStateStoreException.class, call);
            assertTrue(error.getMessage().contains("store") && error.getMessage().contains("closed"), error.getMessage());
        });
    }

    @Test
    void closedWindowsAndSessionsSaySo() {
        WindowStore<Bytes, byte[]> windows = open(EskerStores.persistentWindowStore(
                "windows", Duration.ofMinutes(10), Duration.ofMinutes(1), false).get(), directory, Map.of());
        SessionStore<Bytes, byte[]> sessions = open(
                EskerStores.persistentSessionStore("sessions", Duration.ofMinutes(10)).get(), directory, Map.of());
        windows.close();
        sessions.close();
        assertThrows(InvalidStateStoreException.class, () -> windows.put(key("a"), bytes("1"), 0));
        assertThrows(InvalidStateStoreException.class, () -> windows.fetch(key("a"), 0));
        Windowed<Bytes> session = new Windowed<>(key("a"), new SessionWindow(0, 1));
        assertThrows(InvalidStateStoreException.class, () -> sessions.put(session, bytes("1")));
        assertThrows(InvalidStateStoreException.class, () -> sessions.remove(session));
        assertThrows(InvalidStateStoreException.class, () -> sessions.fetchSession(key("a"), 0, 1));
    }

    @Test
    void nullKeysAreRefused() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        Stream<Executable> calls = Stream.of(() -> store.get(null), () -> store.put(null, bytes("2")), () -> store.delete(null),
                () -> store.putIfAbsent(null, bytes("2")), () -> store.putAll(List.of(KeyValue.pair(null, bytes("2")))),
                () -> store.prefixScan(null, new StringSerializer()), () -> store.prefixScan("a", null),
                () -> EskerStores.persistentKeyValueStore(null), () -> EskerStores.persistentSessionStore("s", null));
        calls.forEach(call -> assertThrows(NullPointerException.class, call));
        store.close();
    }

    @Test
    void keysThatAreTooLongAreRefusedWhenTheyAreWritten() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        store.put(Bytes.wrap(new byte[65536]), bytes("fits"));
        String message = assertThrows(IllegalArgumentException.class, () -> store.put(Bytes.wrap(new byte[65537]), bytes("x"))).getMessage();
        assertTrue(message.contains("65536") && message.contains("65537"), message);
        store.commit(Map.of(Fixture.CHANGELOG, 1L));
        store.close();
    }

    /** Lookups of them threw, where RocksDB's stores find nothing. */
    @Test
    void keysThatAreTooLongAreNotFound() {
        Bytes longest = Bytes.wrap(new byte[65_536]);
        Bytes tooLong = Bytes.wrap(new byte[65_537]);
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        store.put(longest, bytes("fits"));
        store.put(key("z"), bytes("last"));
        store.commit(Map.of(Fixture.CHANGELOG, 1L)); // from here on they are in tables
        assertNull(store.get(tooLong));
        assertEquals(List.of("last"), values(store.range(tooLong, null)));
        assertEquals(List.of("last"), values(store.reverseRange(tooLong, null)));
        assertEquals(List.of("fits"), values(store.range(null, tooLong)));
        assertEquals(List.of("fits"), values(store.reverseRange(null, tooLong)));
        assertEquals(List.of(), values(store.prefixScan(tooLong, new BytesSerializer())));
        store.close();

        WindowStore<Bytes, byte[]> windows = open(EskerStores.persistentWindowStore(
                "windows", Duration.ofMinutes(10), Duration.ofMinutes(1), false).get(), directory, Map.of());
        windows.put(key("a"), bytes("1"), 0);
        windows.commit(Map.of(Fixture.CHANGELOG, 1L));
        assertNull(windows.fetch(tooLong, 0));
        assertEquals(List.of(), values(windows.fetch(tooLong, 0, 1)));
        assertEquals(List.of(), values(windows.backwardFetch(tooLong, 0, 1)));
        assertEquals(List.of("1"), values(windows.fetch(tooLong, key("b"), 0, 1)));
        windows.close();

        SessionStore<Bytes, byte[]> sessions = open(
                EskerStores.persistentSessionStore("sessions", Duration.ofMinutes(10)).get(), directory, Map.of());
        sessions.put(new Windowed<>(key("a"), new SessionWindow(0, 1)), bytes("1"));
        sessions.commit(Map.of(Fixture.CHANGELOG, 1L));
        assertNull(sessions.fetchSession(tooLong, 0, 1));
        assertEquals(List.of(), values(sessions.fetch(tooLong)));
        sessions.close();

        EskerVersionedStore versions = open(new EskerVersionedStore("versions", 300, 50), directory, Map.of());
        versions.put(key("a"), bytes("1"), 1000);
        versions.put(key("a"), bytes("2"), 1001);
        versions.commit(Map.of(Fixture.CHANGELOG, 1L));
        assertNull(versions.get(tooLong));
        assertNull(versions.get(tooLong, 1000));
        assertFalse(versions.get(tooLong, 0, 2000, ResultOrder.ANY).hasNext());
        versions.close();
    }

    /** A deletion that comes along for such a key ended the task. */
    @Test
    void keysThatAreTooLongAreDeletedWithoutHarm() {
        Bytes tooLong = Bytes.wrap(new byte[65_537]);
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, Map.of());
        KeyValueStore<Bytes, byte[]> store = EskerStores.persistentKeyValueStore("store").get();
        store.init(context, store);
        assertNull(store.delete(tooLong));
        store.put(tooLong, null);
        context.restore("store", List.of(KeyValue.pair(bytes("a"), bytes("1")), KeyValue.pair(tooLong.get(), null)));
        assertEquals(List.of("1"), values(store.all()));
        store.close();

        SessionStore<Bytes, byte[]> sessions = open(
                EskerStores.persistentSessionStore("sessions", Duration.ofMinutes(10)).get(), directory, Map.of());
        sessions.put(new Windowed<>(key("a"), new SessionWindow(0, 1)), bytes("1"));
        sessions.remove(new Windowed<>(tooLong, new SessionWindow(0, 1)));
        sessions.close();

        EskerVersionedStore versions = open(new EskerVersionedStore("versions", 300, 50), directory, Map.of());
        assertNull(versions.delete(tooLong, 1000));
        assertEquals(VersionedKeyValueStore.PUT_RETURN_CODE_VALID_TO_UNDEFINED, versions.put(tooLong, null, 1000));
        versions.close();
    }

    private static <K> List<String> values(KeyValueIterator<K, byte[]> entries) {
        List<String> values = new ArrayList<>();
        try (entries) {
            while (entries.hasNext()) values.add(Fixture.text(entries.next().value));
        }
        return values;
    }

    @Test
    void aLockedDirectoryIsAnErrorThatNamesIt() {
        try (Esker other = Esker.open(directory.resolve("esker").resolve("store"))) {
            ProcessorStateException error = assertThrows(ProcessorStateException.class, () -> keyValue(directory, Map.of()));
            assertTrue(error.getMessage().contains(directory.resolve("esker").resolve("store").toString()), error.getMessage());
            assertTrue(other.isOpen());
        }
        keyValue(directory, Map.of()).close();
    }

    @Test
    void damageIsAnErrorThatNamesTheStore() throws Exception {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        for (int i = 0; i < 1000; i++) store.put(key("key" + i), bytes("value" + i));
        store.commit(Map.of(Fixture.CHANGELOG, 1L));
        store.close();
        try (Stream<Path> files = Files.list(directory.resolve("esker").resolve("store"))) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                if (!file.getFileName().toString().equals("LOCK")) Files.writeString(file, "this is no part of a store");
            }
        }
        ProcessorStateException error = assertThrows(ProcessorStateException.class, () -> {
            KeyValueStore<Bytes, byte[]> damaged = keyValue(directory, Map.of());
            try {
                damaged.get(key("key1"));
            } finally {
                damaged.close();
            }
        });
        assertTrue(error.getMessage().contains("store"), error.getMessage());
    }

    @Test
    void settingsAreChecked() {
        String unknown = assertThrows(ConfigException.class,
                () -> keyValue(directory, Map.of("esker.memory", 1))).getMessage();
        assertTrue(unknown.contains("esker.memory.bytes") && unknown.contains("esker.compression"), unknown);
        assertThrows(ConfigException.class, () -> keyValue(directory, Map.of(EskerStreamsConfig.MEMORY_BYTES_CONFIG, 1000)));
        assertThrows(ConfigException.class, () -> keyValue(directory, Map.of(EskerStreamsConfig.MEMORY_BYTES_CONFIG, "much")));
        assertThrows(ConfigException.class, () -> keyValue(directory, Map.of(EskerStreamsConfig.UNCOMMITTED_BYTES_CONFIG, 0L)));
        assertThrows(ConfigException.class, () -> keyValue(directory, Map.of(EskerStreamsConfig.COMPRESSION_CONFIG, "snappy")));
        keyValue(directory, Map.of(EskerStreamsConfig.MEMORY_BYTES_CONFIG, "1048576", EskerStreamsConfig.COMPRESSION_CONFIG, "ZSTD")).close();
    }

    @Test
    void durationsAreChecked() {
        Duration minute = Duration.ofMinutes(1);
        assertThrows(IllegalArgumentException.class, () -> EskerStores.persistentWindowStore("w", minute, Duration.ofMinutes(2), false));
        assertThrows(IllegalArgumentException.class, () -> EskerStores.persistentWindowStore("w", minute, minute.negated(), false));
        assertThrows(IllegalArgumentException.class, () -> EskerStores.persistentSessionStore("s", Duration.ofSeconds(Long.MAX_VALUE)));
        assertThrows(IllegalArgumentException.class, () -> EskerStores.persistentVersionedKeyValueStore("v", minute, Duration.ZERO));
    }

    @Test
    void anIteratorEndsAsIteratorsDo() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        store.put(key("a"), "1".getBytes(StandardCharsets.UTF_8));
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            assertEquals(key("a"), all.peekNextKey());
            all.next();
            assertFalse(all.hasNext());
            assertThrows(NoSuchElementException.class, all::next);
            assertThrows(NoSuchElementException.class, all::peekNextKey);
        }
        store.close();
    }

    @Test
    void aLaterFormatIsNotOpenedAsAnEarlierOne() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        store.put(key("a"), bytes("1"));
        store.close();
        KeyValueStore<Bytes, byte[]> timestamped = open(
                EskerStores.persistentTimestampedKeyValueStore("store").get(), directory, Map.of());
        assertEquals(9, timestamped.get(key("a")).length);
        timestamped.close();
        KeyValueStore<Bytes, byte[]> headers = open(
                EskerStores.persistentTimestampedKeyValueStoreWithHeaders("store").get(), directory, Map.of());
        assertEquals(10, headers.get(key("a")).length);
        headers.close();
        String message = assertThrows(ProcessorStateException.class, () -> keyValue(directory, Map.of())).getMessage();
        assertTrue(message.contains("HEADERS") && message.contains("changelog"), message);
    }
}
