package io.esker;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Finds and loads the native library: the file that the property {@code esker.library} names, or the one in the jar.
 *
 * <p>The JVM takes a library's file for one class loader only. The one in the jar is copied to a file of its own each time,
 * so that several class loaders have it at once, and so is a file of the property that another class loader has taken.
 */
final class NativeLibrary {
    private static final String PROPERTY = "esker.library";
    private static final String VERSION = "0.1.0";

    private static boolean loaded;
    /** Why it could not be loaded. It is not tried again: what failed stays as it is in a process. */
    private static String failure;

    private NativeLibrary() {}

    /**
     * Loads the library, unless it is.
     *
     * @throws UnsatisfiedLinkError if that is not possible; the message says what was looked for, and the way out
     */
    static synchronized void load() {
        if (loaded) return;
        if (failure == null) {
            try {
                find();
                loaded = true;
                return;
            } catch (UnsatisfiedLinkError e) {
                failure = e.getMessage();
                throw e;
            }
        }
        throw new UnsatisfiedLinkError(failure);
    }

    private static void find() {
        String own = System.getProperty(PROPERTY);
        if (own == null) {
            extract();
        } else {
            loadOwn(Path.of(own).toAbsolutePath());
        }
        String version;
        try {
            version = new String(Native.version(), StandardCharsets.UTF_8);
        } catch (UnsatisfiedLinkError e) {
            throw failed((own == null ? "the library in the jar" : own) + " is not Esker's library for Java", e);
        }
        if (!version.equals(VERSION)) {
            throw failed("the library is of version " + version + ", and these classes are of " + VERSION
                    + "; take both of one version", null);
        }
    }

    private static void loadOwn(Path file) {
        if (!Files.isRegularFile(file)) {
            throw failed("there is no file " + file + ", which the property " + PROPERTY + " names; name "
                    + System.mapLibraryName("esker_java") + " there, or leave the property out to take the one in the jar", null);
        }
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError e) {
            if (!String.valueOf(e.getMessage()).contains("another classloader")) {
                throw failed("cannot load " + file + ", which the property " + PROPERTY + " names: " + e.getMessage(), e);
            }
            try (InputStream library = Files.newInputStream(file)) {
                loadCopy(library, file.toString());
            } catch (IOException io) {
                throw failed("cannot copy " + file + " for another class loader: " + io, io);
            }
        }
    }

    private static void extract() {
        String resource = "native/" + platform() + "/" + System.mapLibraryName("esker_java");
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw failed("this jar has no io/esker/" + resource + ", the library for this system; build it there "
                        + "(bindings/java/build.sh), or name one that you built in the property " + PROPERTY, null);
            }
            loadCopy(library, "io/esker/" + resource + " of the jar");
        } catch (IOException e) {
            throw failed("cannot read io/esker/" + resource + " of the jar: " + e, e);
        }
    }

    /** The system and the processor, as the names of resources have them. */
    static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        return (system.startsWith("mac") ? "macos" : system) + "-" + switch (processor) {
            case "amd64", "x86_64" -> "x86_64";
            case "aarch64", "arm64" -> "aarch64";
            default -> processor;
        };
    }

    /**
     * Loads a copy, in a new directory that nobody else can enter. It is removed at once: what is loaded stays mapped.
     */
    private static void loadCopy(InputStream library, String origin) {
        Path directory = null;
        Path file = null;
        try {
            directory = Files.createTempDirectory("esker-");
            file = directory.resolve(System.mapLibraryName("esker_java"));
            Files.copy(library, file);
            System.load(file.toAbsolutePath().toString());
        } catch (IOException e) {
            throw failed("cannot copy " + origin + " to a temporary file: " + e + "; " + wayOut(), e);
        } catch (UnsatisfiedLinkError e) {
            throw failed("cannot load a copy of " + origin + ": " + e.getMessage() + "; " + wayOut(), e);
        } finally {
            remove(file);
            remove(directory);
        }
    }

    private static String wayOut() {
        return "name another directory, where programs may be run from, in the property java.io.tmpdir, or the library itself "
                + "in the property " + PROPERTY;
    }

    private static void remove(Path path) {
        if (path == null) return;
        try {
            Files.deleteIfExists(path);
        } catch (IOException e) {
            path.toFile().deleteOnExit();
        }
    }

    private static UnsatisfiedLinkError failed(String what, Throwable cause) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError("Esker's native library: " + what);
        if (cause != null) error.initCause(cause);
        return error;
    }
}
