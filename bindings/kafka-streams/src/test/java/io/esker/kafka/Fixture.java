package io.esker.kafka;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;
import org.apache.kafka.test.StreamsTestUtils;

/** What the tests of stores share: contexts, and bytes from text. */
final class Fixture {
    static final TopicPartition CHANGELOG = new TopicPartition("app-store-changelog", 0);
    static final Map<String, Object> EXACTLY_ONCE = Map.of(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    /** The least that a store may hold for the next commit. */
    static final Map<String, Object> SMALL = Map.of(EskerStreamsConfig.UNCOMMITTED_BYTES_CONFIG, "65536");

    private Fixture() {}

    /** A context of a task whose directory is given, with settings beside the usual ones of tests. */
    static InternalMockProcessorContext<?, ?> context(Path directory, Map<String, Object> settings) {
        Properties properties = StreamsTestUtils.getStreamsConfig();
        properties.putAll(settings);
        return new InternalMockProcessorContext<>(directory.toFile(), new StreamsConfig(properties), new MockRecordCollector());
    }

    /** A store that was opened. */
    static <S extends StateStore> S open(S store, Path directory, Map<String, Object> settings) {
        store.init(context(directory, settings), store);
        return store;
    }

    static KeyValueStore<Bytes, byte[]> keyValue(Path directory, Map<String, Object> settings) {
        return open(EskerStores.persistentKeyValueStore("store").get(), directory, settings);
    }

    static Map<String, Object> both(Map<String, Object> one, Map<String, Object> other) {
        Map<String, Object> both = new HashMap<>(one);
        both.putAll(other);
        return both;
    }

    static Bytes key(String text) {
        return Bytes.wrap(bytes(text));
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /** The entries that are left, as {@code key=value}. */
    static List<String> drain(KeyValueIterator<Bytes, byte[]> iterator) {
        List<String> entries = new ArrayList<>();
        try (iterator) {
            while (iterator.hasNext()) {
                KeyValue<Bytes, byte[]> entry = iterator.next();
                entries.add(text(entry.key.get()) + "=" + text(entry.value));
            }
        }
        return entries;
    }
}
