package io.esker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** What several tests need. */
final class Tools {
    /** Whether tests take their full counts. */
    static final boolean CAMPAIGN = "1".equals(System.getenv("ESKER_CAMPAIGN"));

    /** Whether somebody waits for the tests. */
    static final boolean QUICK = "1".equals(System.getenv("ESKER_QUICK"));

    private Tools() {}

    /** How many rounds a test takes: in a campaign, usually, or a quarter of it while somebody waits. */
    static int rounds(int campaign, int usual) {
        return CAMPAIGN ? campaign : QUICK ? (usual + 3) / 4 : usual;
    }

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    /** Keys that sort as their numbers do. */
    static byte[] key(int number) {
        return bytes(String.format("key%07d", number));
    }

    static byte[] value(int number) {
        return bytes("value " + number);
    }

    /** Bytes that differ from place to place. */
    static byte[] large(int length, int seed) {
        byte[] bytes = new byte[length];
        for (int at = 0; at < length; at++) bytes[at] = (byte) (at * 31 + (at >> 8) + seed);
        return bytes;
    }

    /** Small, so that a test's store takes little. */
    static Options small() {
        return new Options().memory(4 << 20);
    }

    /** What another JVM with the classes of the tests printed; its exit value is the last line. */
    static List<String> java(Class<?> main, List<String> options, String... arguments) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        if (!options.contains("-cp")) command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(main.getName());
        command.addAll(Arrays.asList(arguments));
        Path out = Files.createTempFile("esker-test", ".out");
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile()).start();
            if (!process.waitFor(120, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
                throw new AssertionError("the other JVM did not end: " + Files.readString(out));
            }
            List<String> lines = new ArrayList<>(Files.readAllLines(out));
            lines.add("exit " + process.exitValue());
            return lines;
        } finally {
            Files.delete(out);
        }
    }

    /** Collects garbage until something has happened. */
    static void collectUntil(BooleanSupplier happened) throws InterruptedException {
        for (int round = 0; round < 200 && !happened.getAsBoolean(); round++) {
            System.gc();
            Thread.sleep(10);
        }
    }

    /** Opens a store whose directory is let go by a collection only. */
    static Esker openAfterCollection(Path directory) throws InterruptedException {
        Esker[] opened = new Esker[1];
        collectUntil(() -> {
            try {
                opened[0] = Esker.open(directory, small());
                return true;
            } catch (EskerException e) {
                if (e.code() != EskerException.Code.LOCKED) throw e;
                return false;
            }
        });
        return opened[0];
    }

    static List<Path> files(Path directory, String suffix) throws IOException {
        try (var list = Files.list(directory)) {
            return list.filter(file -> file.getFileName().toString().endsWith(suffix)).sorted().toList();
        }
    }
}
