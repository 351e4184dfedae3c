package io.esker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Values that are lent where they lie. */
class LentTest {
    @TempDir
    Path directory;

    private static final int[] LENGTHS = {0, 1, 20, 24, 25, 100, 4095, 4096, 5000, 100_000, 3 << 20};

    @Test
    void aBufferIsTheValueAndCannotBeWritten() {
        for (Compression compression : Compression.values()) {
            try (Esker db = Esker.open(directory.resolve("s" + compression), Tools.small().compression(compression))) {
                Keyspace keyspace = db.keyspace();
                assertNull(keyspace.getBuffer(Tools.key(1)));
                for (int length : LENGTHS) keyspace.put(Tools.key(length), new byte[length]);
                for (int round = 0; round < 2; round++) {
                    for (int length : LENGTHS) {
                        ByteBuffer lent = keyspace.getBuffer(Tools.key(length));
                        assertEquals(ByteBuffer.allocate(length), lent);
                        assertTrue(lent.isDirect() && lent.isReadOnly());
                        assertThrows(ReadOnlyBufferException.class, () -> lent.put(new byte[0]));
                    }
                    db.waitForCompactions();
                }
            }
        }
    }

    @Test
    void slicesOutliveTheStoreAndEverythingElse() throws Exception {
        List<ByteBuffer> slices = new ArrayList<>();
        List<byte[]> expected = new ArrayList<>();
        Path path = directory.resolve("store");
        try (Esker db = Esker.open(path, Tools.small())) {
            for (int length : LENGTHS) db.keyspace().put(Tools.key(length), Tools.large(length, 1));
            for (int round = 0; round < 2; round++) {
                for (int length : LENGTHS) {
                    // What is kept is a slice of a duplicate: nothing else refers to what was lent.
                    ByteBuffer lent = db.keyspace().getBuffer(Tools.key(length));
                    int cut = Math.min(1, length);
                    slices.add(lent.duplicate().position(cut).slice().asReadOnlyBuffer());
                    byte[] value = Tools.large(length, 1);
                    expected.add(java.util.Arrays.copyOfRange(value, cut, length));
                }
                db.waitForCompactions();
            }
            for (int length : LENGTHS) db.keyspace().put(Tools.key(length), Tools.large(length, 2));
            db.waitForCompactions();
        }
        for (int round = 0; round < 5; round++) {
            System.gc();
            Thread.sleep(20);
            for (int at = 0; at < slices.size(); at++) {
                byte[] bytes = new byte[slices.get(at).remaining()];
                slices.get(at).get(0, bytes);
                assertArrayEquals(expected.get(at), bytes);
            }
        }
        assertEquals(EskerException.Code.LOCKED, assertThrows(EskerException.class, () -> Esker.open(path)).code());
        slices.clear();
        // The open sees to the collection.
        try (Esker again = Esker.open(path)) {
            assertArrayEquals(Tools.large(100, 2), again.keyspace().get(Tools.key(100)));
        }
    }

    /** Lends without keeping: run in a JVM where only so many bytes may be lent. */
    public static final class Lender {
        public static void main(String[] arguments) {
            try (Esker db = Esker.open(Path.of(arguments[0]), Tools.small())) {
                db.keyspace().put(Tools.key(1), new byte[1 << 20]);
                for (int at = 0; at < 200; at++) db.keyspace().getBuffer(Tools.key(1)).get(7);
                System.out.println("lent 200 MiB");
                List<ByteBuffer> kept = new ArrayList<>();
                try {
                    while (true) kept.add(db.keyspace().getBuffer(Tools.key(1)));
                } catch (OutOfMemoryError e) {
                    System.out.println(kept.size() + " kept: " + e.getMessage());
                }
                kept.clear();
                System.out.println(db.keyspace().getBuffer(Tools.key(1)).remaining());
            }
        }
    }

    @Test
    void howMuchIsLentIsBounded() throws Exception {
        List<String> said = Tools.java(Lender.class, List.of("-Desker.lentBytes=10485760"), directory.resolve("s").toString());
        assertEquals("lent 200 MiB", said.get(0), said.toString());
        assertTrue(said.get(1).startsWith("10 kept: no room to lend"), said.toString());
        assertEquals(List.of("1048576", "exit 0"), said.subList(2, said.size()));
    }
}
