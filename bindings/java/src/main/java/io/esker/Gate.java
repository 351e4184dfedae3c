package io.esker;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * Counts the calls that are under way in something that can be closed, so that whoever closes it can wait for them.
 *
 * <p>The count is spread over as many cells as there are processors, each on a cache line of its own, and a thread keeps to
 * one: calls of different threads do not slow each other down, as they would with one counter. A cell that is seen at 0
 * after {@code closed} was set can only be raised by callers that then see {@code closed}, and go.
 */
final class Gate {
    /** Longs from one cell to the next: two cache lines, which processors fetch together. */
    private static final int STRIDE = 16;
    private static final int CELLS =
            Integer.highestOneBit(Math.max(1, Math.min(64, 2 * Runtime.getRuntime().availableProcessors() - 1)));

    private final AtomicLongArray counts = new AtomicLongArray(CELLS * STRIDE);
    private final String what;
    private volatile boolean closed;

    /**
     * Makes an open one.
     *
     * @param what what it is the gate of, for messages
     */
    Gate(String what) {
        this.what = what;
    }

    /** Begins a call. Returns what {@link #exit} is to be given. */
    int enter() {
        int cell = ((int) Thread.currentThread().getId() & CELLS - 1) * STRIDE;
        counts.getAndIncrement(cell);
        if (closed) {
            counts.getAndDecrement(cell);
            throw failure();
        }
        return cell;
    }

    /** Ends a call. */
    void exit(int cell) {
        counts.getAndDecrement(cell);
    }

    boolean isClosed() {
        return closed;
    }

    void check() {
        if (closed) throw failure();
    }

    IllegalStateException failure() {
        return new IllegalStateException("the " + what + " was closed");
    }

    /** Lets nobody in any more. Who closes it does so under a lock. */
    void close() {
        closed = true;
    }

    /** Waits until the last call has ended. An interrupt does not end the wait, and stays set. */
    void drain() {
        for (int cell = 0; cell < counts.length(); cell += STRIDE) {
            for (int round = 0; counts.get(cell) != 0; round++) {
                if (round < 100) {
                    Thread.onSpinWait();
                } else if (Thread.currentThread().isInterrupted()) {
                    Thread.yield();
                } else {
                    LockSupport.parkNanos(50_000);
                }
            }
        }
    }
}
