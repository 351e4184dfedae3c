package io.esker.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Esker beside RocksDB, each through its own package for Java: the same keys and values, the same memory, in turns. Each step
 * is done three times in fresh stores, and the median counts. Arguments: entries (1,000,000), bytes of a value (100), MiB of memory
 * (64), a directory to work in.
 */
public final class Bench {
    private static final int ROUNDS = 3;
    private static final int SEED = 7;
    private static final int BATCH = 1000;
    private static final int SCAN_ENTRIES = 10;

    private final int entries;
    private final long memoryBytes;
    private final Path directory;
    private final byte[][] ordered;
    private final byte[][] shuffled;
    private final byte[][] values;
    /** Seconds by step and engine. */
    private final Map<String, Map<String, double[]>> results = new LinkedHashMap<>();
    private int round;

    private interface Step {
        void run() throws Exception;
    }

    private Bench(int entries, int valueBytes, long memoryBytes, Path directory) {
        this.entries = entries;
        this.memoryBytes = memoryBytes;
        this.directory = directory;
        Random random = new Random(SEED);
        ordered = IntStream.range(0, entries).mapToObj(Bench::key).toArray(byte[][]::new);
        shuffled = ordered.clone();
        for (int at = entries - 1; at > 0; at--) {
            int other = random.nextInt(at + 1);
            byte[] key = shuffled[at];
            shuffled[at] = shuffled[other];
            shuffled[other] = key;
        }
        // A few thousand different ones: making them is not what is measured.
        values = Stream.generate(() -> Engine.value(valueBytes, random)).limit(4096).toArray(byte[][]::new);
    }

    private static byte[] key(int number) {
        return String.format(Locale.ROOT, "%016d", number).getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    }

    private byte[] value(int at) {
        return values[at % values.length];
    }

    private Engine open(String name, Path at) throws Exception {
        return name.equals("Esker") ? new EskerEngine(at, memoryBytes) : new RocksEngine(at, memoryBytes);
    }

    private void measure(Engine engine, String step, Step run) throws Exception {
        System.gc();
        long start = System.nanoTime();
        run.run();
        double seconds = (System.nanoTime() - start) / 1e9;
        results.computeIfAbsent(step, s -> new LinkedHashMap<>())
                .computeIfAbsent(engine.name(), e -> new double[ROUNDS])[round] = seconds;
    }

    private void fill(Engine engine, byte[][] keys) throws Exception {
        for (int at = 0; at < entries; at++) engine.put(keys[at], value(at));
    }

    private void fillInBatches(Engine engine, byte[][] keys) throws Exception {
        for (int at = 0; at < entries; at += BATCH) {
            int end = Math.min(entries, at + BATCH);
            byte[][] part = new byte[end - at][];
            for (int one = at; one < end; one++) part[one - at] = value(one);
            engine.putAll(Arrays.copyOfRange(keys, at, end), part);
        }
    }

    private void get(Engine engine) throws Exception {
        for (byte[] key : shuffled) {
            if (engine.get(key) == null) throw new AssertionError("a key is missing");
        }
    }

    private void expect(long expected, long bytes) {
        if (bytes != expected) throw new AssertionError(bytes + " bytes came, not " + expected);
    }

    private void run(String name) throws Exception {
        long bytes = (long) entries * (16 + values[0].length);
        Path at = Files.createTempDirectory(directory, "bench-" + name + "-");
        try {
            try (Engine engine = open(name, at.resolve("ordered"))) {
                measure(engine, "fill in order", () -> fill(engine, ordered));
            }
            try (Engine engine = open(name, at.resolve("batches"))) {
                measure(engine, "fill at random, batches of " + BATCH, () -> fillInBatches(engine, shuffled));
            }
            try (Engine engine = open(name, at.resolve("shuffled"))) {
                measure(engine, "fill at random", () -> fill(engine, shuffled));
                measure(engine, "get at random, just written", () -> get(engine));
                engine.settle();
                measure(engine, "get at random, settled", () -> get(engine));
                measure(engine, "scan", () -> expect(bytes, engine.scan(false)));
                measure(engine, "reverse scan", () -> expect(bytes, engine.scan(true)));
                byte[][] keys = Arrays.copyOf(shuffled, entries / SCAN_ENTRIES);
                measure(engine, "seek and " + SCAN_ENTRIES + " entries", () -> engine.seeks(keys, SCAN_ENTRIES));
            }
        } finally {
            remove(at);
        }
    }

    private static void remove(Path directory) throws IOException {
        List<Path> paths;
        try (Stream<Path> walk = Files.walk(directory)) {
            paths = walk.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path path : paths) Files.delete(path);
    }

    private static double median(double[] seconds) {
        double[] sorted = seconds.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    private void print() {
        System.out.printf(Locale.ROOT, "%-34s %12s %12s %8s%n", "thousand entries a second", "Esker", "RocksDB", "ratio");
        results.forEach((step, seconds) -> {
            double esker = entries / median(seconds.get("Esker")) / 1000;
            double rocks = entries / median(seconds.get("RocksDB")) / 1000;
            System.out.printf(Locale.ROOT, "%-34s %12.0f %12.0f %8.2f%n", step, esker, rocks, esker / rocks);
        });
    }

    /**
     * Runs it.
     *
     * @param arguments see the class
     * @throws Exception if an engine fails
     */
    public static void main(String[] arguments) throws Exception {
        int entries = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 1_000_000;
        int valueBytes = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 100;
        long memoryBytes = (arguments.length > 2 ? Long.parseLong(arguments[2]) : 64) << 20;
        Path directory = Path.of(arguments.length > 3 ? arguments[3] : System.getProperty("java.io.tmpdir"));
        Bench bench = new Bench(entries, valueBytes, memoryBytes, directory);
        org.rocksdb.RocksDB.loadLibrary();
        for (bench.round = 0; bench.round < ROUNDS; bench.round++) {
            // By turns, and not always in the same order.
            List<String> names = bench.round % 2 == 0 ? List.of("Esker", "RocksDB") : List.of("RocksDB", "Esker");
            for (String name : names) bench.run(name);
        }
        bench.print();
    }
}
