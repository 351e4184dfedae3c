package io.esker.infinispan.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.infinispan.commons.dataconversion.internal.Json;

/**
 * Several stores beside each other: {@link StoreBench} for each of them some times over, each time in a process of its own, in
 * an order that is drawn anew for each round. What comes out are the lines that {@code esker bench} writes, one for each store and
 * test, with the median, all figures and how they compare; {@code esker bench report OUT} makes the report of them.
 *
 * <pre>
 * java -cp "$(cat target/bindings-infinispan/run.classpath)" io.esker.infinispan.bench.Comparison \
 *     ENTRIES VALUE DIRECTORY OUT ROUNDS STORES [OPERATIONS]
 * </pre>
 *
 * <p>STORES are separated by commas. {@code HEAP} in the environment is the heap of each process ({@code 1g}); for stores that do
 * not fit into memory run it in a control group.
 */
public final class Comparison {
    /** Of the order of the stores in each round. */
    private static final long SEED = 1;

    private final List<String> command;
    private final List<String> stores;
    private final int rounds;
    /** Of each test, of each store: a figure a round. */
    private final Map<String, Map<String, List<Double>>> figures = new LinkedHashMap<>();

    private Comparison(List<String> command, List<String> stores, int rounds) {
        this.command = command;
        this.stores = stores;
        this.rounds = rounds;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 6) {
            System.err.println("ENTRIES VALUE DIRECTORY OUT ROUNDS STORES [OPERATIONS]");
            System.exit(2);
        }
        int rounds = Integer.parseInt(arguments[4]);
        if (rounds < 1) {
            throw new IllegalArgumentException("ROUNDS is " + rounds + ", and must be at least 1");
        }
        Comparison comparison = new Comparison(List.of(arguments), List.of(arguments[5].split(",")), rounds);
        comparison.measure();
        comparison.write(Path.of(arguments[3]));
    }

    private void measure() throws IOException, InterruptedException {
        Random lot = new Random(SEED);
        for (int round = 1; round <= rounds; round++) {
            List<String> order = new ArrayList<>(stores);
            Collections.shuffle(order, lot);
            for (String store : order) {
                System.err.printf("round %d of %d: %s%n", round, rounds, store);
                run(store);
            }
        }
    }

    private void run(String store) throws IOException, InterruptedException {
        String heap = System.getenv().getOrDefault("HEAP", "1g");
        List<String> line = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx" + heap, "-cp",
                System.getProperty("java.class.path"), StoreBench.class.getName(), store, command.get(0), command.get(1),
                command.get(2)));
        line.addAll(command.subList(6, command.size()));
        Process process = new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        // Also when this one is told to end.
        Thread end = new Thread(process::destroy);
        Runtime.getRuntime().addShutdownHook(end);
        try (var lines = process.inputReader()) {
            lines.lines().filter(text -> text.startsWith("{")).map(Json::read).forEach(this::note);
        }
        if (process.waitFor() != 0) {
            throw new IOException(store + " ended with " + process.exitValue());
        }
        Runtime.getRuntime().removeShutdownHook(end);
    }

    private void note(Json line) {
        String test = line.at("test").asString();
        double figure = switch (unit(test)) {
            case "bytes" -> line.at("bytes").asDouble();
            case "seconds" -> line.at("ns").asDouble() / 1e9;
            default -> line.at("operations").asDouble() * 1e9 / line.at("ns").asDouble();
        };
        figures.computeIfAbsent(test, t -> new LinkedHashMap<>())
                .computeIfAbsent(line.at("store").asString(), s -> new ArrayList<>()).add(figure);
    }

    private static String unit(String test) {
        return switch (test) {
            case "disk" -> "bytes";
            case "start" -> "seconds";
            default -> "ops_per_second";
        };
    }

    private void write(Path out) throws IOException {
        List<String> lines = new ArrayList<>();
        figures.forEach((test, byStore) -> {
            for (String store : stores) {
                lines.add(line(test, store, byStore).toString());
            }
        });
        Files.createDirectories(out);
        Files.write(out.resolve("results.jsonl"), lines);
    }

    private Json line(String test, String store, Map<String, List<Double>> byStore) {
        String unit = unit(test);
        boolean more = unit.equals("ops_per_second");
        List<Double> runs = byStore.get(store);
        double median = median(runs);
        // The map on the heap is no store: it shows what is not the stores'.
        double best = stores.stream().filter(other -> !other.equals(store) && !other.equals("memory"))
                .mapToDouble(other -> median(byStore.get(other)))
                .reduce((a, b) -> more == a > b ? a : b).orElse(Double.NaN);
        String what = command.get(1).equals("json") ? "JSON, two larger ones and four of 30 to 40 bytes" : command.get(1) + " bytes";
        Json line = Json.object()
                .set("suite", "infinispan").set("section", command.get(0) + "x" + command.get(1))
                .set("title", "Cache stores of Infinispan, " + command.get(0) + " entries of " + what)
                .set("row", test).set("key", test).set("engine", store)
                // A write that returned survives kill -9 of the JVM, but for the map's.
                .set("class", store.equals("memory") ? "V" : "K").set("unit", unit)
                .set("value", median).set("ops_per_s", more ? median : null).set("runs", Json.array(runs.toArray()))
                .set("interval", runs.size() > 1 ? Json.array(Collections.min(runs), Collections.max(runs)) : null)
                .set("spread", (Collections.max(runs) - Collections.min(runs)) / median)
                .set("entries", Integer.parseInt(command.get(0))).set("value_size", command.get(1))
                .set("repetitions", rounds).set("seed", SEED).set("sync", false).set("failed", null).set("missing", null)
                .set("command", Json.array(command.toArray())).set("cpu", processor()).set("cores", Runtime.getRuntime().availableProcessors())
                .set("kernel", System.getProperty("os.version")).set("os", System.getProperty("os.name").toLowerCase())
                .set("date", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString()).set("bench_version", "0.1.0");
        if (!Double.isNaN(best)) {
            line.set("ratio_best_peer", more ? median / best : best / median);
        }
        return line;
    }

    /** Its name; where the system does not tell, what it understands. */
    private static String processor() {
        try (var lines = Files.lines(Path.of("/proc/cpuinfo"))) {
            return lines.filter(line -> line.startsWith("model name")).findFirst()
                    .map(line -> line.substring(line.indexOf(':') + 1).strip()).orElse(System.getProperty("os.arch"));
        } catch (IOException e) {
            return System.getProperty("os.arch");
        }
    }

    private static double median(List<Double> runs) {
        List<Double> sorted = new ArrayList<>(runs);
        Collections.sort(sorted);
        return (sorted.get((sorted.size() - 1) / 2) + sorted.get(sorted.size() / 2)) / 2;
    }
}
