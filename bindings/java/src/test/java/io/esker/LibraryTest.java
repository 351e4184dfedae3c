package io.esker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The native library: where it comes from, and what is said when it does not. */
class LibraryTest {
    @TempDir
    Path directory;

    /** Opens a store twice, and says what came of it. */
    public static final class Opener {
        public static void main(String[] arguments) {
            for (int round = 0; round < 2; round++) {
                try (Esker db = Esker.open(Path.of(arguments[0]))) {
                    System.out.println("open");
                } catch (UnsatisfiedLinkError e) {
                    System.out.println(e.getMessage());
                }
            }
        }
    }

    private List<String> open(String... options) throws Exception {
        return Tools.java(Opener.class, List.of(options), directory.resolve("store").toString());
    }

    /** The library of the jar, as a file. */
    private Path library() throws IOException {
        Path file = directory.resolve("own.so");
        String resource = "native/" + NativeLibrary.platform() + "/" + System.mapLibraryName("esker_java");
        try (InputStream library = Esker.class.getResourceAsStream(resource)) {
            Files.copy(library, file);
        }
        return file;
    }

    @Test
    void nothingIsLeftInTheTemporaryDirectory() throws Exception {
        Path temporary = Files.createDirectory(directory.resolve("tmp"));
        assertEquals(List.of("open", "open", "exit 0"), open("-Djava.io.tmpdir=" + temporary));
        try (var left = Files.list(temporary)) {
            assertEquals(List.of(), left.filter(path -> path.getFileName().toString().startsWith("esker")).toList());
        }
    }

    @Test
    void oneOfOnesOwnIsTaken() throws Exception {
        assertEquals(List.of("open", "open", "exit 0"), open("-Desker.library=" + library()));
    }

    @Test
    void whatIsMissingIsNamedWithTheWayOut() throws Exception {
        List<String> missing = open("-Desker.library=/nowhere/lib.so");
        assertTrue(missing.get(0).contains("there is no file /nowhere/lib.so") && missing.get(0).contains("leave the property out"),
                missing.toString());
        // The same each time, and no NoClassDefFoundError.
        assertEquals(List.of(missing.get(0), "exit 0"), missing.subList(1, 3));

        Path noLibrary = Files.writeString(directory.resolve("text.so"), "no library");
        String said = String.join("\n", open("-Desker.library=" + noLibrary));
        assertTrue(said.contains("cannot load " + noLibrary), said);

        String elsewhere = open("-Dos.name=Plan 9", "-Dos.arch=mips").get(0);
        assertTrue(elsewhere.contains("this jar has no io/esker/native/plan 9-mips/") && elsewhere.contains("esker.library"),
                elsewhere);

        String noRoom = open("-Djava.io.tmpdir=" + directory.resolve("none")).get(0);
        assertTrue(noRoom.contains("cannot copy") && noRoom.contains("java.io.tmpdir"), noRoom);
    }

    @Test
    void anotherLibraryIsNotTakenForOurs() throws Exception {
        // One that every JVM has.
        Path other = Path.of(System.getProperty("java.home"), "lib", System.mapLibraryName("zip"));
        String said = open("-Desker.library=" + other).get(0);
        assertTrue(said.contains("is not Esker's library for Java"), said);
    }

    /** Has classes of its own, with the library by the property for all loaders. */
    public static final class Loaders {
        public static void main(String[] arguments) throws Exception {
            useInSeveralLoaders(Path.of(arguments[0]));
            System.out.println("done");
        }
    }

    private static URL[] urls() throws IOException {
        List<URL> path = new ArrayList<>();
        for (String part : System.getProperty("java.class.path").split(File.pathSeparator)) {
            path.add(Path.of(part).toUri().toURL());
        }
        return path.toArray(URL[]::new);
    }

    /** Opens stores with the classes of two class loaders, and one with both. */
    private static void useInSeveralLoaders(Path directory) throws Exception {
        try (URLClassLoader one = new URLClassLoader(urls(), ClassLoader.getPlatformClassLoader());
                URLClassLoader two = new URLClassLoader(urls(), ClassLoader.getPlatformClassLoader())) {
            Class<?> first = one.loadClass(Esker.class.getName());
            Class<?> second = two.loadClass(Esker.class.getName());
            assertNotSame(first, second);
            AutoCloseable a = (AutoCloseable) first.getMethod("open", Path.class).invoke(null, directory.resolve("a"));
            AutoCloseable b = (AutoCloseable) second.getMethod("open", Path.class).invoke(null, directory.resolve("b"));
            try {
                second.getMethod("open", Path.class).invoke(null, directory.resolve("a"));
                throw new AssertionError("one store was opened twice");
            } catch (java.lang.reflect.InvocationTargetException e) {
                // The exception is of the class loader that threw it.
                assertEquals("LOCKED", e.getCause().getClass().getMethod("code").invoke(e.getCause()).toString());
                assertEquals(two, e.getCause().getClass().getClassLoader());
            }
            a.close();
            b.close();
        }
    }

    @Test
    void severalClassLoadersHaveItAtOnce() throws Exception {
        useInSeveralLoaders(directory);
        List<String> said = Tools.java(Loaders.class, List.of("-Desker.library=" + library()), directory.toString());
        assertEquals(List.of("done", "exit 0"), said);
    }

    /** Uses the package in a class loader of its own, and lets that go. */
    private WeakReference<ClassLoader> useAndForget(Path store) throws Exception {
        URLClassLoader loader = new URLClassLoader(urls(), ClassLoader.getPlatformClassLoader());
        Class<?> type = loader.loadClass(Esker.class.getName());
        // Left open: it is closed by a collection, and the library unloaded only then.
        Object db = type.getMethod("open", Path.class).invoke(null, store);
        Object keyspace = type.getMethod("keyspace").invoke(db);
        keyspace.getClass().getMethod("put", byte[].class, byte[].class).invoke(keyspace, Tools.key(1), Tools.value(1));
        return new WeakReference<>(loader);
    }

    @Test
    void aClassLoaderCanBeCollectedWithItsLibrary() throws Exception {
        for (int round = 0; round < 3; round++) {
            WeakReference<ClassLoader> loader = useAndForget(directory.resolve("store"));
            Tools.collectUntil(() -> loader.get() == null);
            assertEquals(null, loader.get(), "the class loader stayed");
        }
        try (Esker db = Tools.openAfterCollection(directory.resolve("store"))) {
            assertEquals("value 1", Tools.text(db.keyspace().get(Tools.key(1))));
        }
    }
}
