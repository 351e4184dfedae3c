package io.esker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Values that are too large for Java's heap. */
class MemoryTest {
    @TempDir
    Path directory;

    private static final int HUGE = 100 << 20;

    /** Runs in a JVM with a small heap. */
    public static final class SmallHeap {
        public static void main(String[] arguments) {
            try (Esker db = Esker.open(Path.of(arguments[0]), Tools.small())) {
                Keyspace keyspace = db.keyspace();
                ByteBuffer huge = ByteBuffer.allocateDirect(HUGE);
                huge.put(HUGE - 1, (byte) 7);
                keyspace.put(ByteBuffer.wrap(Tools.key(2)), huge);
                keyspace.put(Tools.key(1), Tools.value(1));
                keyspace.put(Tools.key(3), Tools.value(3));
                starves(() -> keyspace.get(Tools.key(2)));
                starves(() -> keyspace.multiGet(List.of(Tools.key(1), Tools.key(2))));
                try (Cursor cursor = keyspace.cursor()) {
                    cursor.first();
                    starves(cursor::next);
                    starves(cursor::next);
                    System.out.println(cursor.isValid() + " " + cursor.seek(Tools.key(3)) + " " + Tools.text(cursor.value()));
                    starves(cursor::previous);
                    System.out.println(cursor.first() + " " + Tools.text(cursor.value()));
                }
                System.out.println(keyspace.getBuffer(Tools.key(2)).get(HUGE - 1));
                ByteBuffer into = ByteBuffer.allocate(3);
                System.out.println(keyspace.get(Tools.key(2), into) + " " + into.position());
                System.out.println(Tools.text(keyspace.get(Tools.key(1))));
            }
        }

        private static void starves(Runnable call) {
            try {
                call.run();
                System.out.println("there was memory");
            } catch (OutOfMemoryError e) {
                System.out.println("no memory");
            }
        }
    }

    @Test
    void aValueThatDoesNotFitIsAnErrorOfThatCall() throws Exception {
        List<String> said = Tools.java(SmallHeap.class, List.of("-Xmx32m", "-XX:MaxDirectMemorySize=256m"),
                directory.resolve("store").toString());
        assertEquals(List.of("no memory", "no memory", "no memory", "no memory", "false true value 3", "no memory", "true value 1",
                "7", HUGE + " 3", "value 1", "exit 0"), said);
    }
}
