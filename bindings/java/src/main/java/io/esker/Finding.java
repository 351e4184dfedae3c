package io.esker;

import java.util.Optional;
import java.util.OptionalLong;

/**
 * Something that a verification or a repair found.
 *
 * @param file the file, named within the store's directory; empty when it is not about one
 * @param offset where in it, in bytes from its start; empty when it is about the file as a whole
 * @param firstKey the lowest key that it may be about
 * @param lastKey the highest key that it may be about
 * @param what what is wrong, or lost, in words
 */
public record Finding(
        String file, OptionalLong offset, Optional<byte[]> firstKey, Optional<byte[]> lastKey, String what) {
    /** All of it in one line. */
    @Override
    public String toString() {
        String place = offset.isPresent() ? file + " at byte " + offset.getAsLong() : file;
        return place.isEmpty() ? what : place + ": " + what;
    }
}
