package io.esker.infinispan;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Whether calls of a kind run in place: on the thread that asks, which Infinispan wants not to be blocked.
 *
 * <p>A read of what is in memory takes a microsecond or two, and so does a write that does not wait for the device, where handing one
 * to a blocking thread and waiting for the answer takes some thirty. Which will be quick nobody knows before. So calls run in place
 * until one took so long that it has waited for something; those that begin in the next while are handed over, for {@value #REST_FOR_EACH}
 * times as long as it took, and then it is tried again.
 */
final class InPlace {
    /** What a call that waits for nothing never takes, unless the machine is busy: it is then handed over in vain for a while, and no more. */
    static final long SLOW_NS = 200_000;
    /** For so many times as long as a slow call took, calls are handed over. */
    static final long REST_FOR_EACH = 20;

    private final LongSupplier clock;
    /** By the clock; calls that begin before are handed over. */
    private final AtomicLong againNs;

    /**
     * @param clock nanoseconds, from any moment on
     */
    InPlace(LongSupplier clock) {
        this.clock = clock;
        this.againNs = new AtomicLong(clock.getAsLong());
    }

    long nowNs() {
        return clock.getAsLong();
    }

    /** Whether a call that begins now is to run in place. */
    boolean isAllowed(long nowNs) {
        return nowNs - againNs.get() >= 0;
    }

    /** A call that ran in place has ended. */
    void end(long beganNs) {
        long nowNs = clock.getAsLong();
        long tookNs = nowNs - beganNs;
        if (tookNs < SLOW_NS) return;
        // The later of two counts, on a clock that may run over.
        againNs.accumulateAndGet(nowNs + REST_FOR_EACH * tookNs, (one, other) -> one - other > 0 ? one : other);
    }
}
