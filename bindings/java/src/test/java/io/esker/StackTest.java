package io.esker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Threads with little stack: native code that came to its end would end the JVM. */
class StackTest {
    @TempDir
    Path directory;

    /** Does what takes most stack, in a thread that has little; in a JVM of its own, which may die of it. */
    public static final class Small {
        public static void main(String[] arguments) throws Exception {
            Path path = Path.of(arguments[0]);
            Thread thread = new Thread(null, () -> all(path), "small", Long.parseLong(arguments[1]));
            thread.start();
            thread.join();
        }

        private static void all(Path path) {
            try (Esker db = Esker.open(path, Tools.small())) {
                for (Compression compression : Compression.values()) {
                    Keyspace keyspace = db.createKeyspace(compression.name(), new KeyspaceOptions().compression(compression));
                    for (int at = 0; at < 5000; at++) keyspace.put(Tools.key(at), Tools.large(at % 200, at));
                    db.flush();
                    keyspace.bulkLoad(IntStream.range(0, 20_000)
                            .mapToObj(at -> new Entry(Tools.key(at), Tools.large(at % 300, at))).iterator());
                    keyspace.compactRange(Range.all());
                    assertEquals(20_000, keyspace.entries().reversed().stream().count());
                    assertArrayEquals(Tools.large(7, 307), keyspace.get(Tools.key(307)));
                    keyspace.put(Tools.large(65_536, 1), Tools.large(1 << 20, 1), Durability.SYNCED);
                }
                db.waitForCompactions();
                db.checkpoint(path.resolveSibling("copy"));
                assertTrue(db.verify().isSound());
                db.stats();
            }
            try {
                Path copy = path.resolveSibling("copy");
                Path table = Tools.files(copy, ".tbl").get(0);
                byte[] bytes = Files.readAllBytes(table);
                bytes[bytes.length / 2] ^= 1;
                Files.write(table, bytes);
                assertTrue(Esker.repair(copy).changed());
            } catch (java.io.IOException e) {
                throw new AssertionError(e);
            }
            System.out.println("done");
        }
    }

    @Test
    void littleStackIsEnough() throws Exception {
        List<String> said = Tools.java(Small.class, List.of(), directory.resolve("store").toString(), String.valueOf(192 << 10));
        assertEquals(List.of("done", "exit 0"), said);
    }
}
