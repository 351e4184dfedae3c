package io.esker;

import java.io.ByteArrayOutputStream;
import java.nio.file.FileSystems;
import java.nio.file.Path;

/** Paths as the bytes that the system knows them by, which need not be text. */
final class Paths {
    private Paths() {}

    /**
     * The bytes of a path. Its URI has each of them, as a character or as two digits; a string of it need not.
     *
     * @throws IllegalArgumentException for one of another file system than the machine's, an archive's for instance
     */
    static byte[] bytes(Path path) {
        if (path.getFileSystem() != FileSystems.getDefault()) {
            throw new IllegalArgumentException(
                    "a store is in a directory of the machine's file system, and not in " + path.toUri());
        }
        String uri = path.toAbsolutePath().toUri().getRawPath();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(uri.length());
        for (int at = 0; at < uri.length(); at++) {
            char c = uri.charAt(at);
            if (c == '%') {
                c = (char) Integer.parseInt(uri, at + 1, at + 3, 16);
                at += 2;
            }
            bytes.write(c);
        }
        return bytes.toByteArray();
    }
}
