package io.esker;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Values that are lent as buffers. The slice in the library is freed when nobody can reach the buffer that was made over it;
 * what Java makes of a direct buffer keeps that.
 */
final class Lent {
    /** As the JVM bounds its own direct memory, which it cannot see grow here. */
    private static final long MOST_BYTES =
            Long.getLong("esker.lentBytes", Math.max(1L << 30, Runtime.getRuntime().maxMemory()));
    private static final AtomicLong BYTES = new AtomicLong();

    private Lent() {}

    /** Frees a slice. */
    private record Slice(long pointer, long bytes, Held held) implements Runnable {
        @Override
        public void run() {
            Native.freeSlice(pointer);
            held.remove();
            BYTES.getAndAdd(-bytes);
        }
    }

    /** The value of a key, lent; null when there is none. */
    static ByteBuffer get(long reader, byte[] key, Held held) {
        long[] lent = new long[3];
        if (!Native.lend(reader, key, key.length, lent)) return null;
        Slice slice = new Slice(lent[2], lent[1], held);
        held.add();
        boolean kept = false;
        BYTES.getAndAdd(slice.bytes);
        try {
            makeRoom(slice.bytes);
            ByteBuffer whole = Native.buffer(lent[0], slice.bytes);
            ByteBuffer readOnly = whole.asReadOnlyBuffer();
            Native.CLEANER.register(whole, slice);
            kept = true;
            Reader.keep(whole);
            return readOnly;
        } finally {
            if (!kept) slice.run();
        }
    }

    /** What was lent may be unreachable and not collected yet: then a collection makes room. */
    private static void makeRoom(long bytes) {
        if (BYTES.get() <= MOST_BYTES) return;
        boolean interrupted = false;
        try {
            for (int wait = 1; wait <= 256; wait *= 2) {
                System.gc();
                try {
                    Thread.sleep(wait);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
                if (BYTES.get() <= MOST_BYTES) return;
            }
        } finally {
            if (interrupted) Thread.currentThread().interrupt();
        }
        throw new OutOfMemoryError("no room to lend a value of " + bytes + " bytes: " + (BYTES.get() - bytes) + " of "
                + MOST_BYTES + " are lent, as the property esker.lentBytes allows; use get, or let buffers go");
    }
}
