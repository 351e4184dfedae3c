package io.esker.infinispan;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Whether reads run in place: on the thread that asks, which Infinispan wants not to be blocked.
 *
 * <p>A read takes no lock, and a microsecond or two when its bytes are in memory, where handing it to a blocking thread and waiting
 * for the answer takes some thirty. Whether they are in memory nobody knows before. So reads run in place until one took so long that
 * it has waited for the device; those that begin in the next while are handed over, and then it is tried again. In each such while a
 * thread waits for the device once at most.
 */
final class InPlace {
    /** What a read from memory never takes, unless the machine is busy: it is then handed over in vain for a while, and no more. */
    static final long SLOW_NS = 200_000;
    /** For so long reads are handed over after a slow one. */
    static final long HANDED_OVER_NS = 100_000_000;

    private final LongSupplier clock;
    /** By the clock; reads that begin before are handed over. */
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

    /** Whether a read that begins now is to run in place. */
    boolean isAllowed(long nowNs) {
        return nowNs - againNs.get() >= 0;
    }

    /** A read that ran in place has ended. */
    void end(long beganNs) {
        long nowNs = clock.getAsLong();
        if (nowNs - beganNs >= SLOW_NS) againNs.set(nowNs + HANDED_OVER_NS);
    }
}
