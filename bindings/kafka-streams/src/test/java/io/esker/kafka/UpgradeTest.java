package io.esker.kafka;

import static io.esker.kafka.Fixture.CHANGELOG;
import static io.esker.kafka.Fixture.bytes;
import static io.esker.kafka.Fixture.key;
import static io.esker.kafka.Fixture.keyValue;
import static io.esker.kafka.Fixture.open;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.esker.Esker;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Upgrades that were cut short: the keyspace that an upgrade was filling is there, empty, beside the one that it read. */
class UpgradeTest {
    private static final byte[] PLAIN = bytes("1");
    private static final byte[] TIMESTAMPED = TimestampedBytesStore.convertToTimestampedFormat(PLAIN);
    private static final byte[] HEADERS = HeadersBytesStore.convertFromPlainToHeaderFormat(PLAIN);

    @TempDir
    Path directory;

    @BeforeEach
    void makePlainStore() {
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        store.put(key("a"), PLAIN);
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();
    }

    private void leave(String store, String... keyspaces) {
        try (Esker left = Esker.open(directory.resolve("esker").resolve(store))) {
            for (String keyspace : keyspaces) left.createKeyspace(keyspace);
        }
    }

    private List<String> keyspaces(String store) {
        try (Esker left = Esker.open(directory.resolve("esker").resolve(store))) {
            return left.keyspaces().stream().filter(name -> !Commits.isReserved(name)).sorted().toList();
        }
    }

    private KeyValueStore<Bytes, byte[]> timestamped() {
        return open(EskerStores.persistentTimestampedKeyValueStore("store").get(), directory, Map.of());
    }

    private KeyValueStore<Bytes, byte[]> headers() {
        return open(EskerStores.persistentTimestampedKeyValueStoreWithHeaders("store").get(), directory, Map.of());
    }

    /** What the first had filled was taken for a source: the store was empty, with its offset. */
    @Test
    void oneThatWasCutShortIsFollowedByOneToALaterFormat() {
        leave("store", "values.timestamped");
        KeyValueStore<Bytes, byte[]> store = headers();
        assertArrayEquals(HEADERS, store.get(key("a")));
        assertEquals(1L, store.committedOffset(CHANGELOG));
        store.close();
        assertEquals(List.of("values.headers"), keyspaces("store"));
    }

    /** It was refused, once with everything taken out of the format that it came from. */
    @Test
    void oneThatWasCutShortIsFollowedByOneToAnEarlierFormat() {
        leave("store", "values.headers");
        KeyValueStore<Bytes, byte[]> store = timestamped();
        assertArrayEquals(TIMESTAMPED, store.get(key("a")));
        store.close();
        assertEquals(List.of("values.timestamped"), keyspaces("store"));
    }

    @Test
    void oneThatWasCutShortIsTakenBack() {
        leave("store", "values.timestamped", "values.headers");
        KeyValueStore<Bytes, byte[]> store = keyValue(directory, Map.of());
        assertArrayEquals(PLAIN, store.get(key("a")));
        store.close();
        assertEquals(List.of("values.plain"), keyspaces("store"));
    }

    /** Of segments some may be done and some not. */
    @Test
    void segmentsOfSeveralFormatsAreEachTakenFromTheirOldest() {
        Duration retention = Duration.ofMinutes(10);
        WindowStore<Bytes, byte[]> windows = open(
                EskerStores.persistentWindowStore("windows", retention, retention, false).get(), directory, Map.of());
        windows.put(key("a"), PLAIN, 0);
        windows.commit(Map.of(CHANGELOG, 1L));
        windows.close();
        windows = open(EskerStores.persistentTimestampedWindowStore("windows", retention, retention, false).get(), directory, Map.of());
        windows.close();
        try (Esker store = Esker.open(directory.resolve("esker").resolve("windows"))) {
            Bytes second = org.apache.kafka.streams.state.internals.WindowKeySchema.toStoreKeyBinary(key("b"), 300_000, 0);
            store.createKeyspace("segment.1.plain").put(second.get(), PLAIN);
            store.createKeyspace("segment.1.timestamped");
        }
        String refused = assertThrows(ProcessorStateException.class, () -> open(
                EskerStores.persistentWindowStore("windows", retention, retention, false).get(), directory, Map.of())).getMessage();
        assertEquals(true, refused.contains("TIMESTAMPED"), refused);
        assertEquals(List.of("segment.0.timestamped", "segment.1.plain", "segment.1.timestamped"), keyspaces("windows"));

        windows = open(EskerStores.persistentTimestampedWindowStoreWithHeaders("windows", retention, retention, false).get(),
                directory, Map.of());
        assertArrayEquals(HEADERS, windows.fetch(key("a"), 0));
        assertArrayEquals(HEADERS, windows.fetch(key("b"), 300_000));
        windows.close();
        assertEquals(List.of("segment.0.headers", "segment.1.headers"), keyspaces("windows"));
    }
}
