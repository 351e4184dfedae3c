package io.esker;

import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * How many cursors and lent values of a store are still there: they keep its directory locked, also when it was closed, and
 * may be waiting for a collection only. Refers to no store.
 */
final class Held {
    /** Those of stores that were closed, as long as there are some. */
    private static final Set<Held> LEFT = ConcurrentHashMap.newKeySet();

    private final Path directory;
    private final AtomicInteger count = new AtomicInteger();
    private volatile boolean closed;

    Held(Path directory) {
        this.directory = directory.toAbsolutePath().normalize();
    }

    void add() {
        count.getAndIncrement();
    }

    void remove() {
        if (count.decrementAndGet() == 0) LEFT.remove(this);
    }

    /** Notes that the store was closed. */
    void close() {
        closed = true;
        LEFT.add(this);
        if (count.get() == 0) LEFT.remove(this);
    }

    private static boolean isHeld(Path directory) {
        Path path = directory.toAbsolutePath().normalize();
        return LEFT.stream().anyMatch(held -> held.closed && held.directory.equals(path));
    }

    /**
     * Opens a store, or does what nobody may have it open for. Where its directory is locked by what was left of one that was closed here, and that nobody can reach any
     * more, a collection lets it go: so a program that forgets to close a cursor can open its store again.
     */
    static <T> T afterCollection(Path directory, Supplier<T> open) {
        boolean interrupted = false;
        try {
            for (int wait = 1; ; wait *= 2) {
                boolean held = isHeld(directory);
                try {
                    return open.get();
                } catch (EskerException e) {
                    if (e.code() != EskerException.Code.LOCKED || !held || wait > 256) throw e;
                }
                System.gc();
                try {
                    Thread.sleep(wait);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) Thread.currentThread().interrupt();
        }
    }
}
