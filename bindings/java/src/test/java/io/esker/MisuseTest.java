package io.esker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** All public methods, with what was closed, with null, and with what is too long. */
class MisuseTest {
    @TempDir
    Path directory;

    /** What may be asked of something that was closed. */
    private static final Map<Class<?>, Set<String>> AFTER_CLOSE = Map.of(
            Esker.class, Set.of("close", "isOpen", "directory", "toString"),
            Keyspace.class, Set.of("close", "name", "toString", "entries"),
            ReadableKeyspace.class, Set.of("toString", "entries"),
            Snapshot.class, Set.of("close", "sequence", "toString"),
            Cursor.class, Set.of("close", "toString"));

    private Object argument(Class<?> type, Esker db) {
        if (type == byte[].class) return Tools.key(1);
        if (type == ByteBuffer.class) return ByteBuffer.allocate(10);
        if (type == String.class) return "name";
        if (type == Path.class) return directory.resolve("elsewhere");
        if (type == List.class) return List.of(Tools.key(1));
        if (type == Iterator.class) return List.of(new Entry(Tools.key(1), Tools.value(1))).iterator();
        if (type == boolean.class) return true;
        if (type == Durability.class) return Durability.BUFFERED;
        if (type == KeyspaceOptions.class) return new KeyspaceOptions();
        if (type == Options.class) return new Options();
        if (type == WriteBatch.class) return new WriteBatch();
        if (type == Range.class) return Range.all();
        if (type == Snapshot.class) return db.snapshot();
        if (type == Keyspace.class) return db.keyspace();
        if (type == Order.class) return Order.BYTEWISE;
        if (type == Compression.class) return Compression.LZ4;
        if (type == long.class) return 1L << 20;
        if (type == int.class) return 4096;
        throw new AssertionError("no argument of " + type);
    }

    private static List<Method> methods(Class<?> type) {
        // Those of a class that is not public are there as bridges.
        Map<String, Method> methods = new TreeMap<>();
        for (Method method : type.getMethods()) {
            boolean own = method.getDeclaringClass().getPackageName().equals("io.esker");
            String signature = method.getName() + Arrays.toString(method.getParameterTypes());
            if (own && !Modifier.isStatic(method.getModifiers())) methods.putIfAbsent(signature, method);
        }
        return new ArrayList<>(methods.values());
    }

    private Object[] arguments(Method method, Esker db) {
        return Arrays.stream(method.getParameterTypes()).map(type -> argument(type, db)).toArray();
    }

    private static Throwable thrown(Object target, Method method, Object... arguments) throws IllegalAccessException {
        try {
            // The classes that implement it are not public.
            method.setAccessible(true);
            method.invoke(target, arguments);
            return null;
        } catch (InvocationTargetException e) {
            return e.getCause();
        }
    }

    private int afterClose(Class<?> type, Object target, Esker other, String message) throws Exception {
        int calls = 0;
        for (Method method : methods(type)) {
            // Of what only its store was closed for, that would be more.
            if (method.getName().equals("close")) continue;
            Throwable thrown = thrown(target, method, arguments(method, other));
            if (AFTER_CLOSE.get(type).contains(method.getName())) {
                assertEquals(null, thrown, method.toString());
                continue;
            }
            assertTrue(thrown instanceof IllegalStateException, method + ": " + thrown);
            assertEquals(message, thrown.getMessage(), method.toString());
            calls++;
        }
        return calls;
    }

    @Test
    void everyMethodOfWhatWasClosedSaysSo() throws Exception {
        try (Esker other = Esker.open(directory.resolve("other"), Tools.small())) {
            Esker db = Esker.open(directory.resolve("store"), Tools.small());
            Keyspace open = db.keyspace();
            Keyspace own = db.createKeyspace("own");
            Keyspace closed = db.keyspace("own");
            closed.close();
            closed.close();
            assertEquals(20, afterClose(Keyspace.class, closed, other, "the keyspace was closed"));
            own.put(Tools.key(1), Tools.value(1));

            Snapshot snapshot = db.snapshot();
            ReadableKeyspace then = own.at(snapshot);
            Snapshot later = db.snapshot();
            ReadableKeyspace atLater = own.at(later);
            Cursor cursor = own.cursor();
            cursor.first();
            cursor.close();
            snapshot.close();
            assertEquals(9, afterClose(ReadableKeyspace.class, then, other, "the snapshot was closed"));
            assertEquals(0, afterClose(Snapshot.class, snapshot, other, ""));
            assertThrows(IllegalStateException.class, () -> own.at(snapshot));
            assertEquals(13, afterClose(Cursor.class, cursor, other, "the cursor was closed"));

            // Closing the default keyspace leaves it open.
            open.close();
            assertFalse(open.contains(Tools.key(1)));
            db.close();
            db.close();
            String message = "the store was closed";
            assertEquals(19, afterClose(Esker.class, db, other, message));
            assertEquals(20, afterClose(Keyspace.class, open, other, message));
            assertEquals(20, afterClose(Keyspace.class, own, other, message));
            assertEquals(9, afterClose(ReadableKeyspace.class, atLater, other, message));
            for (Keyspace keyspace : List.of(open, own)) {
                assertThrows(IllegalStateException.class, () -> keyspace.entries().iterator());
            }
            later.close();
        }
    }

    @Test
    void nullIsRefusedEverywhere() throws Exception {
        try (Esker db = Esker.open(directory.resolve("store"), Tools.small()); Snapshot snapshot = db.snapshot();
                Cursor cursor = db.keyspace().cursor()) {
            int calls = 0;
            Object[] targets = {db, db.keyspace(), db.keyspace().at(snapshot), snapshot, cursor, new WriteBatch(), new Options(),
                new KeyspaceOptions(), Order.BYTEWISE};
            Set<String> fine = Set.of("equals", "compareTo");
            for (Object target : targets) {
                Class<?> type = target instanceof View ? ReadableKeyspace.class : target.getClass();
                for (Method method : methods(type)) {
                    for (int at = 0; at < method.getParameterCount(); at++) {
                        if (method.getParameterTypes()[at].isPrimitive() || fine.contains(method.getName())) continue;
                        Object[] arguments = arguments(method, db);
                        arguments[at] = null;
                        Throwable thrown = thrown(target, method, arguments);
                        assertTrue(thrown instanceof NullPointerException, method + " " + at + ": " + thrown);
                        calls++;
                    }
                }
            }
            assertTrue(calls > 50, calls + " calls");
            assertEquals(0, db.keyspace().entries().stream().filter(entry -> entry.key().length == 0).count());
        }
        Options options = new Options();
        for (org.junit.jupiter.api.function.Executable call : List.<org.junit.jupiter.api.function.Executable>of(
                () -> Esker.open(null), () -> Esker.open(null, options), () -> Esker.open(directory, null),
                () -> Esker.verify(null), () -> Esker.repair(null), () -> Esker.destroy(null), () -> Range.prefix(null),
                () -> Range.atLeast(null), () -> Range.before(null), () -> new Entry(null, new byte[0]),
                () -> new Entry(new byte[0], null))) {
            assertThrows(NullPointerException.class, call);
        }
    }

    @Test
    void theLongestKeysAndNoneFit() {
        byte[] longest = Tools.large(Esker.MAX_KEY_LENGTH, 1);
        byte[] tooLong = new byte[Esker.MAX_KEY_LENGTH + 1];
        try (Esker db = Esker.open(directory.resolve("store"), Tools.small()); Cursor cursor = db.keyspace().cursor()) {
            Keyspace keyspace = db.keyspace();
            for (byte[] key : List.of(longest, new byte[0])) {
                keyspace.put(key, new byte[0]);
                assertTrue(keyspace.contains(key));
                assertEquals(0, keyspace.get(key).length);
                assertEquals(0, keyspace.getBuffer(key).remaining());
                assertEquals(0, keyspace.get(ByteBuffer.wrap(key), ByteBuffer.allocate(0)));
                db.write(new WriteBatch().delete(key));
                assertFalse(keyspace.contains(key));
                keyspace.bulkLoad(List.of(new Entry(key, key)).iterator());
                assertEquals(ByteBuffer.wrap(key), keyspace.getBuffer(key));
            }
            ByteBuffer buffer = ByteBuffer.wrap(tooLong);
            ByteBuffer direct = ByteBuffer.allocateDirect(tooLong.length);
            List<Runnable> calls = List.of(
                    () -> keyspace.put(tooLong, new byte[0]), () -> keyspace.delete(tooLong), () -> keyspace.get(tooLong),
                    () -> keyspace.contains(tooLong), () -> keyspace.getBuffer(tooLong),
                    () -> keyspace.multiGet(List.of(longest, tooLong)), () -> keyspace.get(tooLong, ByteBuffer.allocate(1)),
                    () -> keyspace.get(buffer, ByteBuffer.allocate(1)), () -> keyspace.get(direct, ByteBuffer.allocate(1)),
                    () -> keyspace.put(buffer, ByteBuffer.allocate(1)), () -> keyspace.put(direct, ByteBuffer.allocate(1)),
                    () -> cursor.seek(tooLong), () -> cursor.seekBack(tooLong), () -> new WriteBatch().put(tooLong, longest),
                    () -> new WriteBatch().delete(tooLong), () -> new WriteBatch().delete(keyspace, tooLong));
            for (Runnable call : calls) {
                String message = assertThrows(IllegalArgumentException.class, call::run).getMessage();
                assertEquals("a key has at most 65536 bytes, and this one has 65537", message);
            }
        }
    }

    @Test
    void whatDoesNotBelongTogetherIsRefused() {
        try (Esker a = Esker.open(directory.resolve("a"), Tools.small());
                Esker b = Esker.open(directory.resolve("b"), Tools.small()); Snapshot snapshot = a.snapshot()) {
            assertThrows(IllegalArgumentException.class, () -> b.keyspace().at(snapshot));
            WriteBatch batch = new WriteBatch().put(a.keyspace(), Tools.key(1), Tools.value(1));
            assertThrows(IllegalArgumentException.class, () -> b.write(batch));
            assertThrows(IllegalArgumentException.class, () -> batch.put(b.keyspace(), Tools.key(1), Tools.value(1)));
            assertEquals(1, batch.count());
            a.write(batch);
            // One that names no keyspace fits every store.
            b.write(new WriteBatch().put(Tools.key(2), Tools.value(2)));
            assertTrue(a.keyspace().contains(Tools.key(1)) && b.keyspace().contains(Tools.key(2)));
        }
    }

    @Test
    void optionsOutOfRangeAreRefusedWhereTheyAreSet() {
        Set<String> messages = new TreeSet<>();
        for (Runnable call : List.<Runnable>of(
                () -> new Options().memory(1 << 19), () -> new Options().blobThreshold(63), () -> new Options().blockSize(5000),
                () -> new Options().blockSize(1 << 17), () -> new Options().segmentSize(1), () -> new Options().memory(-1),
                () -> new Options().segmentSize(Long.MAX_VALUE), () -> new KeyspaceOptions().blobThreshold(0),
                () -> new Options().blockSize(0))) {
            messages.add(assertThrows(IllegalArgumentException.class, call::run).getMessage());
        }
        assertEquals(9, messages.size(), messages.toString());
        // What is in range is taken by the library too.
        Options options = new Options().memory(1 << 20).blobThreshold(64).blockSize(65536).segmentSize(64 << 10);
        Esker.open(directory.resolve("s"), options).close();
        Esker.open(directory.resolve("s"), new Options().memory(Long.MAX_VALUE).blobThreshold(Integer.MAX_VALUE)).close();
    }

    @Test
    void aBatchThatIsChangedWhileItIsWrittenHarmsNothing() throws Exception {
        try (Esker db = Esker.open(directory.resolve("store"), Tools.small())) {
            WriteBatch batch = new WriteBatch();
            Keyspace other = db.createKeyspace("other");
            boolean[] ended = new boolean[1];
            Thread changer = new Thread(() -> {
                for (int at = 0; at < 200_000 && !ended[0]; at++) {
                    try {
                        if (at % 50 == 0) batch.clear();
                        batch.put(other, Tools.large(at % 300, at), Tools.large(at % 1000, at));
                    } catch (RuntimeException e) {
                        // Two threads use it, which is wrong; it only must do no harm.
                    }
                }
            });
            changer.start();
            int written = 0;
            for (int at = 0; at < 20_000; at++) {
                try {
                    db.write(batch);
                    written++;
                } catch (RuntimeException e) {
                    // Changed meanwhile.
                }
            }
            ended[0] = true;
            changer.join();
            assertTrue(written > 0);
            assertTrue(db.verify().isSound());
        }
    }
}
