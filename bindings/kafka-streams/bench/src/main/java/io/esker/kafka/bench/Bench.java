package io.esker.kafka.bench;

import io.esker.kafka.EskerStores;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.SplittableRandom;
import java.util.stream.Stream;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Esker's key-value store beside RocksDB's, through the interface by which Kafka Streams uses them, each with its defaults.
 *
 * <p>Both commit every {@value #COMMIT_EVERY} writes. RocksDB's store has no log and commits what is in memory with its next flush, as
 * it is in production; Esker's has everything in its log at each commit.
 */
public final class Bench {
    private static final int COMMIT_EVERY = 10_000;
    private static final int BATCH = 1000;
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    private final int entries;
    private final int valueBytes;
    private RecordBatchingStateRestoreCallback restoring;

    private Bench(int entries, int valueBytes) {
        this.entries = entries;
        this.valueBytes = valueBytes;
    }

    /**
     * Prints a line for each measure: its name, entries a second with both stores, and the ratio.
     *
     * @param args how many entries, and how many bytes a value has (100)
     */
    public static void main(String[] args) throws IOException {
        int entries = Integer.parseInt(args[0]);
        Bench bench = new Bench(entries, args.length > 1 ? Integer.parseInt(args[1]) : 100);
        // The compiler sees both stores before either is measured.
        Bench warming = new Bench(Math.min(entries, 20_000), bench.valueBytes);
        warming.run(EskerStores.persistentKeyValueStore("bench"));
        warming.run(Stores.persistentKeyValueStore("bench"));
        List<KeyValue<String, Double>> esker = bench.run(EskerStores.persistentKeyValueStore("bench"));
        List<KeyValue<String, Double>> rocksdb = bench.run(Stores.persistentKeyValueStore("bench"));
        System.out.printf("%-16s %14s %14s %8s%n", entries + " entries", "esker/s", "rocksdb/s", "ratio");
        for (int i = 0; i < esker.size(); i++) {
            double one = esker.get(i).value;
            double other = rocksdb.get(i).value;
            System.out.printf(Locale.ROOT, "%-16s %14.0f %14.0f %8.2f%n", esker.get(i).key, one, other, one / other);
        }
    }

    private interface Work {
        long run(KeyValueStore<Bytes, byte[]> store);
    }

    private List<KeyValue<String, Double>> run(KeyValueBytesStoreSupplier supplier) throws IOException {
        List<KeyValue<String, Double>> results = new ArrayList<>();
        Path directory = Files.createTempDirectory("esker-bench");
        try {
            KeyValueStore<Bytes, byte[]> store = open(supplier, directory.resolve("put"));
            results.add(measure("put random", store, this::put));
            results.add(measure("overwrite", store, this::put));
            results.add(measure("get random", store, this::get));
            results.add(measure("get missing", store, this::getMissing));
            results.add(measure("range of 100", store, this::ranges));
            results.add(measure("all", store, this::all));
            results.add(measure("reverse all", store, this::reverseAll));
            store.close();
            KeyValueStore<Bytes, byte[]> restored = open(supplier, directory.resolve("restore"));
            results.add(measure("restore", restored, this::restore));
            restored.close();
        } finally {
            try (Stream<Path> files = Files.walk(directory)) {
                files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
        return results;
    }

    private KeyValueStore<Bytes, byte[]> open(KeyValueBytesStoreSupplier supplier, Path directory) throws IOException {
        Files.createDirectories(directory);
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "bench");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        properties.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "INFO");
        StateStoreContext context = new MockProcessorContext<>(properties, new TaskId(0, 0), directory.toFile()).getStateStoreContext();
        KeyValueStore<Bytes, byte[]> store = supplier.get();
        store.init(keeping(context), store);
        return store;
    }

    /** The mock of Kafka Streams does not give out the callback that restores; so it is taken as the store registers it. */
    private StateStoreContext keeping(StateStoreContext context) {
        return (StateStoreContext) Proxy.newProxyInstance(Bench.class.getClassLoader(), new Class<?>[] {StateStoreContext.class},
                (proxy, method, arguments) -> {
                    if (!method.getName().equals("register")) return method.invoke(context, arguments);
                    restoring = (RecordBatchingStateRestoreCallback) arguments[1];
                    return null;
                });
    }

    private static KeyValue<String, Double> measure(String name, KeyValueStore<Bytes, byte[]> store, Work work) {
        long begin = System.nanoTime();
        long done = work.run(store);
        double seconds = (System.nanoTime() - begin) / 1e9;
        return new KeyValue<>(name, done / seconds);
    }

    /** Keys in an order that looks random, each once. */
    private byte[] key(long number) {
        return ByteBuffer.allocate(16).putLong(number * 0x9e3779b97f4a7c15L).putLong(number).array();
    }

    private byte[] value(SplittableRandom random) {
        byte[] value = new byte[valueBytes];
        // Half of it repeats, as values of programs do.
        for (int i = 0; i < valueBytes / 2; i++) value[i] = (byte) random.nextInt();
        return value;
    }

    private long put(KeyValueStore<Bytes, byte[]> store) {
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < entries; i++) {
            store.put(Bytes.wrap(key(i)), value(random));
            if (i % COMMIT_EVERY == COMMIT_EVERY - 1) store.commit(Map.of(CHANGELOG, (long) i));
        }
        store.commit(Map.of(CHANGELOG, (long) entries));
        return entries;
    }

    private long get(KeyValueStore<Bytes, byte[]> store) {
        SplittableRandom random = new SplittableRandom(2);
        for (int i = 0; i < entries; i++) {
            if (store.get(Bytes.wrap(key(random.nextInt(entries)))) == null) throw new IllegalStateException("a key is missing");
        }
        return entries;
    }

    private long getMissing(KeyValueStore<Bytes, byte[]> store) {
        for (int i = 0; i < entries; i++) {
            if (store.get(Bytes.wrap(key(entries + i))) != null) throw new IllegalStateException("a key is there that was never put");
        }
        return entries;
    }

    private long ranges(KeyValueStore<Bytes, byte[]> store) {
        SplittableRandom random = new SplittableRandom(3);
        long seen = 0;
        for (int i = 0; i < Math.max(1, entries / 100); i++) {
            try (KeyValueIterator<Bytes, byte[]> range = store.range(Bytes.wrap(key(random.nextInt(entries))), null)) {
                for (int n = 0; n < 100 && range.hasNext(); n++) {
                    range.next();
                    seen++;
                }
            }
        }
        return seen;
    }

    private long all(KeyValueStore<Bytes, byte[]> store) {
        return count(store.all());
    }

    private long reverseAll(KeyValueStore<Bytes, byte[]> store) {
        return count(store.reverseAll());
    }

    private long count(KeyValueIterator<Bytes, byte[]> iterator) {
        long seen = 0;
        try (iterator) {
            while (iterator.hasNext()) {
                iterator.next();
                seen++;
            }
        }
        if (seen != entries) throw new IllegalStateException(seen + " entries instead of " + entries);
        return seen;
    }

    private long restore(KeyValueStore<Bytes, byte[]> store) {
        SplittableRandom random = new SplittableRandom(4);
        List<ConsumerRecord<byte[], byte[]>> batch = new ArrayList<>(BATCH);
        for (int i = 0; i < entries; i++) {
            batch.add(new ConsumerRecord<>(CHANGELOG.topic(), CHANGELOG.partition(), i, key(i), value(random)));
            if (batch.size() == BATCH || i == entries - 1) {
                restoring.restoreBatch(batch);
                batch.clear();
            }
        }
        store.commit(Map.of(CHANGELOG, (long) entries));
        return entries;
    }
}
