package io.esker;

import java.util.Iterator;

/**
 * An iterator that holds something of the store. It closes itself at the end, and when it fails; one that is left earlier is to be closed.
 *
 * @param <T> what it gives
 */
public interface CloseableIterator<T> extends Iterator<T>, AutoCloseable {
    /** Gives back what it holds. Afterwards there is no next element. */
    @Override
    void close();
}
