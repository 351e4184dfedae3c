package io.esker.infinispan.bench;

import io.reactivex.rxjava3.core.Flowable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.infinispan.Cache;
import org.infinispan.commons.util.IntSets;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.manager.PersistenceManager;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.support.WaitNonBlockingStore;
import org.infinispan.test.TestingUtil;

/**
 * Esker's cache store beside the RocksDB store and the soft-index file store of Infinispan, through a cache (memory keeps 100
 * entries, so that reads come from the store) and through the store's SPI. One JSON object a line.
 *
 * <pre>
 * bindings/infinispan/test.sh                                   # builds it
 * java -Xmx1g -cp "$(cat target/bindings-infinispan/run.classpath)" io.esker.infinispan.bench.StoreBench \
 *     STORE ENTRIES VALUE DIRECTORY [OPERATIONS]
 * </pre>
 *
 * <p>STORE is {@code esker}, {@code rocksdb}, {@code softindex} or {@code memory}, a map on the heap, which shows what Infinispan
 * itself takes. What is measured, for keys in random order: {@code put} and {@code get} through the cache, {@code write},
 * {@code overwrite}, {@code load} and {@code miss} through the SPI, {@code iterate} over all entries, {@code size},
 * {@code start} with all entries there, and the bytes on {@code disk}. VALUE is a number of bytes or {@code json}. For the tests of
 * Voldemort's document run it with values of 80 bytes, of 1024 and in JSON, and with entries up to several times the memory of the machine (or of a control group).
 */
public final class StoreBench {
    private static final int SEGMENTS = 256;
    /** Over all entries, before they are timed and while they are. */
    private static final int PASSES = 4;

    private final String store;
    private final int entries;
    private final Values values;
    private final Path directory;
    private final int operations;

    private StoreBench(String store, int entries, Values values, Path directory, int operations) {
        this.store = store;
        this.entries = entries;
        this.values = values;
        this.directory = directory;
        this.operations = operations;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 4) {
            System.err.println("STORE ENTRIES VALUE DIRECTORY [OPERATIONS]");
            System.exit(2);
        }
        int entries = Integer.parseInt(arguments[1]);
        int operations = arguments.length > 4 ? Integer.parseInt(arguments[4]) : Math.min(entries, 1_000_000);
        new StoreBench(arguments[0], entries, new Values(arguments[2]), Path.of(arguments[3]), operations).run();
    }

    private void run() throws Exception {
        Path own = directory.resolve(store);
        remove(own);
        Files.createDirectories(own);
        try (DefaultCacheManager manager = Containers.open(store, own)) {
            measureFilling(manager);
        }
        long start = System.nanoTime();
        try (DefaultCacheManager manager = Containers.open(store, own)) {
            String first = (String) manager.getCache(Containers.CACHE).get(key(0));
            report("start", 1, System.nanoTime() - start);
            if (first == null) {
                throw new IllegalStateException("an entry is lost over a restart");
            }
            measureReading(manager);
        }
        long bytes = allocatedBytes(own);
        System.out.printf("{\"store\":\"%s\",\"entries\":%d,\"value\":\"%s\",\"test\":\"disk\",\"bytes\":%d}%n",
                store, entries, values.name(), bytes);
        remove(own);
    }

    private void measureFilling(DefaultCacheManager manager) {
        Cache<String, String> cache = manager.getCache(Containers.CACHE);
        WaitNonBlockingStore<String, String> spi = TestingUtil.getFirstStoreWait(cache);
        int[] order = shuffled();
        int throughCache = Math.min(entries / 2, operations);
        Random random = new Random(1);
        measure("put", throughCache, i -> cache.put(key(order[i]), values.of(order[i], random)));
        measure("write", entries - throughCache, i -> write(spi, cache, order[throughCache + i], random));
        measure("overwrite", operations, i -> write(spi, cache, random.nextInt(entries), random));
    }

    private void write(WaitNonBlockingStore<String, String> spi, Cache<String, String> cache, int number, Random random) {
        spi.write(entry(cache, key(number), values.of(number, random)));
    }

    private void measureReading(DefaultCacheManager manager) {
        Cache<String, String> cache = manager.getCache(Containers.CACHE);
        WaitNonBlockingStore<String, String> spi = TestingUtil.getFirstStoreWait(cache);
        Random random = new Random(2);
        measure("get", operations, i -> present(cache.get(key(random.nextInt(entries)))));
        measure("load", operations, i -> present(spi.loadEntry(key(random.nextInt(entries)))));
        measure("miss", operations, i -> {
            if (spi.loadEntry("none-" + i) != null) {
                throw new IllegalStateException("found what there is not");
            }
        });
        PersistenceManager persistence = TestingUtil.extractComponent(cache, PersistenceManager.class);
        // Not counted: how much of it is compiled by now depends on how long the tests before took.
        for (int pass = 0; pass < PASSES; pass++) {
            iterate(persistence);
        }
        long found = 0;
        long start = System.nanoTime();
        for (int pass = 0; pass < PASSES; pass++) {
            found = iterate(persistence);
        }
        report("iterate", PASSES * found, System.nanoTime() - start);
        start = System.nanoTime();
        long size = spi.sizeWait(IntSets.immutableRangeSet(SEGMENTS));
        report("size", size, System.nanoTime() - start);
        if (found != entries || size != entries) {
            throw new IllegalStateException(found + " and " + size + " entries, and not " + entries);
        }
    }

    private static long iterate(PersistenceManager persistence) {
        return Flowable.fromPublisher(persistence.<String, String>publishEntries(true, true)).count().blockingGet();
    }

    private interface Operation {
        void run(int number);
    }

    private void measure(String test, int count, Operation operation) {
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) {
            operation.run(i);
        }
        report(test, count, System.nanoTime() - start);
    }

    private void report(String test, long count, long ns) {
        System.out.printf("{\"store\":\"%s\",\"entries\":%d,\"value\":\"%s\",\"test\":\"%s\",\"operations\":%d,\"ns\":%d}%n",
                store, entries, values.name(), test, count, ns);
    }

    private static void present(Object found) {
        if (found == null) {
            throw new IllegalStateException("an entry is missing");
        }
    }

    private static MarshallableEntry<String, String> entry(Cache<String, String> cache, String key, String value) {
        return org.infinispan.marshall.persistence.impl.MarshalledEntryUtil.create(key, value, cache);
    }

    private static String key(int number) {
        return String.format("%016d", number);
    }

    private int[] shuffled() {
        int[] order = new int[entries];
        Random random = new Random(3);
        for (int i = 1; i < entries; i++) {
            int j = random.nextInt(i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        return order;
    }

    /** What the files take on the disk: some have holes. */
    private static long allocatedBytes(Path directory) throws java.io.IOException {
        Process du = new ProcessBuilder("du", "-s", "--block-size=1", directory.toString()).start();
        try (var lines = du.inputReader()) {
            return Long.parseLong(lines.readLine().split("\\s")[0]);
        }
    }

    private static void remove(Path directory) throws java.io.IOException {
        if (Files.exists(directory)) {
            List<Path> files;
            try (Stream<Path> walk = Files.walk(directory)) {
                files = walk.sorted(Comparator.reverseOrder()).toList();
            }
            for (Path file : files) {
                Files.delete(file);
            }
        }
    }
}
