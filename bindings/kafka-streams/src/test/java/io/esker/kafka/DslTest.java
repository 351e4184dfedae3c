package io.esker.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Random;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A topology with all the stores of the DSL gives with Esker, by one setting, what it gives with RocksDB: the same records. */
class DslTest {
    private static final int RECORDS = "1".equals(System.getenv("ESKER_CAMPAIGN")) ? 2_000 : 200;

    @TempDir
    Path directory;

    private static Topology topology() {
        Duration minute = Duration.ofMinutes(1);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> left = builder.stream("left");
        KStream<String, String> right = builder.stream("right");
        KGroupedStream<String, String> grouped = left.groupByKey();
        KTable<String, Long> counts = grouped.count();
        counts.toStream().mapValues(count -> "count " + count).to("out");
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(minute, minute)).count()
                .toStream((window, count) -> window.toString()).mapValues(count -> "window " + count).to("out");
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(minute, minute)).emitStrategy(EmitStrategy.onWindowClose()).count()
                .toStream((window, count) -> window.toString()).mapValues(count -> "closed window " + count).to("closed");
        grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(minute, minute)).count()
                .toStream((window, count) -> window.toString()).mapValues(count -> "sliding " + count).to("out");
        grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(20), minute)).count()
                .toStream((window, count) -> window.toString()).mapValues(count -> "session " + count).to("out");
        grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(20), minute))
                .emitStrategy(EmitStrategy.onWindowClose()).count()
                .toStream((window, count) -> window.toString()).mapValues(count -> "closed session " + count).to("closed");
        left.outerJoin(right, (one, other) -> "join " + one + " " + other, JoinWindows.ofTimeDifferenceAndGrace(minute, minute)).to("out");
        left.leftJoin(right.toTable(), (one, other) -> "table " + one + " " + other).to("out");
        counts.join(right.groupByKey().count(), (one, other) -> "both " + one + " " + other).toStream().to("out");
        return builder.build();
    }

    private List<List<String>> run(Class<?> suppliers, String format, long seed) throws Exception {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "dsl");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory(directory, "state").toString());
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers);
        properties.put(StreamsConfig.DSL_STORE_FORMAT_CONFIG, format);
        properties.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        properties.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        Random random = new Random(seed);
        try (TopologyTestDriver driver = new TopologyTestDriver(topology(), properties, Instant.ofEpochMilli(0))) {
            var left = driver.createInputTopic("left", new StringSerializer(), new StringSerializer());
            var right = driver.createInputTopic("right", new StringSerializer(), new StringSerializer());
            long time = 1_000_000;
            for (int i = 0; i < RECORDS; i++) {
                time += random.nextInt(10) == 0 ? random.nextInt(30_000) : random.nextInt(500);
                long at = random.nextInt(6) == 0 ? time - random.nextInt(100_000) : time;
                at -= at % 500; // many at the same moment, so that the order of what closes together is seen
                (random.nextInt(3) == 0 ? right : left).pipeInput("key" + random.nextInt(12), "v" + i, Instant.ofEpochMilli(at));
            }
            return List.of(read(driver, "out"), read(driver, "closed"));
        }
    }

    private static List<String> read(TopologyTestDriver driver, String topic) {
        List<String> records = new ArrayList<>();
        for (TestRecord<String, String> record
                : driver.createOutputTopic(topic, new StringDeserializer(), new StringDeserializer()).readRecordsToList()) {
            records.add(record.timestamp() + " " + record.key() + " " + record.value());
        }
        return records;
    }

    @ParameterizedTest
    @ValueSource(strings = {"default", "headers"})
    void oneSettingMovesATopologyOver(String format) throws Exception {
        long seed = Long.getLong("esker.seed", System.nanoTime());
        System.out.println("DslTest: -Desker.seed=" + seed);
        List<List<String>> expected = run(BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class, format, seed);
        List<List<String>> actual = run(EskerDslStoreSuppliers.class, format, seed);
        assertTrue(expected.get(0).size() > RECORDS, "the topology gives more than it takes: " + expected.get(0).size());
        for (String kind : List.of("closed window", "closed session")) {
            assertTrue(expected.get(1).stream().anyMatch(record -> record.contains(kind)), "no " + kind);
        }
        for (int i = 0; i < expected.size(); i++) assertEquals(expected.get(i), actual.get(i), "seed " + seed);
    }
}
