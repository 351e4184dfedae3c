package io.esker.infinispan;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Locks that each stand for a part of all keys. Who writes an entry reads what was there before, to keep counts and expiry
 * index right, so two writes of one key must not overlap. Several are always locked in the order of their numbers, so that
 * nobody waits in a circle.
 */
final class Stripes {
    private final ReentrantLock[] locks;

    Stripes(int count) {
        locks = new ReentrantLock[count];
        Arrays.setAll(locks, i -> new ReentrantLock());
    }

    /** What is locked, until it is closed, by the thread that locked it. */
    interface Held extends AutoCloseable {
        @Override
        void close();
    }

    Held lock(byte[] entryKey) {
        ReentrantLock lock = locks[numberOf(entryKey)];
        lock.lock();
        return lock::unlock;
    }

    /** The same where nobody else has it; else null. */
    Held tryLock(byte[] entryKey) {
        ReentrantLock lock = locks[numberOf(entryKey)];
        return lock.tryLock() ? lock::unlock : null;
    }

    Held lock(Collection<byte[]> entryKeys) {
        BitSet numbers = new BitSet(locks.length);
        entryKeys.forEach(key -> numbers.set(numberOf(key)));
        return lock(numbers);
    }

    /** Locks out every write. */
    Held lockAll() {
        BitSet numbers = new BitSet(locks.length);
        numbers.set(0, locks.length);
        return lock(numbers);
    }

    private Held lock(BitSet numbers) {
        List<ReentrantLock> held = numbers.stream().mapToObj(i -> locks[i]).toList();
        held.forEach(ReentrantLock::lock);
        return () -> held.forEach(ReentrantLock::unlock);
    }

    private int numberOf(byte[] entryKey) {
        int hash = Arrays.hashCode(entryKey);
        return Math.floorMod(hash ^ hash >>> 16, locks.length);
    }
}
