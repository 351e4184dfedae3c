package io.esker.infinispan;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import org.infinispan.commons.io.ByteBufferImpl;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.persistence.spi.PersistenceException;

/**
 * What is stored as the value of an entry.
 *
 * <p>One byte of flags; the time of expiry when it expires; creation and last use when they are known; the lengths of both
 * kinds of metadata when there are any, and they; what is left is the marshalled value. Numbers have the most significant byte
 * first. The time of expiry comes first so that who only asks whether an entry is alive reads {@link #HEAD_BYTES} bytes and
 * unmarshals nothing.
 */
final class StoredEntry {
    /** Bytes in which flags and time of expiry are. */
    static final int HEAD_BYTES = 9;
    /** The time of expiry of what never expires. */
    static final long NEVER = -1;

    private static final int EXPIRES = 1;
    private static final int HAS_TIMES = 2;
    private static final int HAS_METADATA = 4;
    private static final int HAS_INTERNAL_METADATA = 8;
    private static final int HAS_VALUE = 16;
    private static final int ALL_FLAGS = 31;

    private StoredEntry() {}

    /** The time, in milliseconds, from which on the entry counts as expired, or {@link #NEVER}. */
    static long expiryOf(MarshallableEntry<?, ?> entry) {
        long expiryMs = entry.expiryTime();
        return expiryMs > 0 ? expiryMs : NEVER;
    }

    /** Whether something that expires then has expired now. */
    static boolean isExpired(long expiryMs, long nowMs) {
        return expiryMs != NEVER && expiryMs <= nowMs;
    }

    static byte[] encode(MarshallableEntry<?, ?> entry, long expiryMs) {
        var value = entry.getValueBytes();
        var metadata = entry.getMetadataBytes();
        var internal = entry.getInternalMetadataBytes();
        boolean hasTimes = entry.created() != -1 || entry.lastUsed() != -1;
        long bytes = 1L + (expiryMs != NEVER ? 8 : 0) + (hasTimes ? 16 : 0) + sizeOf(metadata) + sizeOf(internal)
                + (value == null ? 0 : value.getLength());
        if (bytes > Limits.MAX_VALUE_BYTES) {
            throw Limits.valueTooLong(bytes);
        }
        ByteBuffer stored = ByteBuffer.allocate((int) bytes);
        stored.put((byte) ((expiryMs != NEVER ? EXPIRES : 0) | (hasTimes ? HAS_TIMES : 0)
                | (metadata != null ? HAS_METADATA : 0) | (internal != null ? HAS_INTERNAL_METADATA : 0)
                | (value != null ? HAS_VALUE : 0)));
        if (expiryMs != NEVER) {
            stored.putLong(expiryMs);
        }
        if (hasTimes) {
            stored.putLong(entry.created()).putLong(entry.lastUsed());
        }
        putPart(stored, metadata);
        putPart(stored, internal);
        if (value != null) {
            stored.put(value.getBuf(), value.getOffset(), value.getLength());
        }
        return stored.array();
    }

    /** The time of expiry, from the first bytes of what is stored: all of it, or {@link #HEAD_BYTES} at least. */
    static long expiryOf(byte[] stored) {
        if (stored.length == 0 || (stored[0] & ~ALL_FLAGS) != 0) {
            throw malformed();
        }
        if ((stored[0] & EXPIRES) == 0) {
            return NEVER;
        }
        if (stored.length < HEAD_BYTES) {
            throw malformed();
        }
        return ByteBuffer.wrap(stored).getLong(1);
    }

    /** The entry of this key, which shares the bytes it was read from. */
    static <K, V> MarshallableEntry<K, V> decode(MarshallableEntryFactory<K, V> factory, Object key, byte[] stored) {
        long expiryMs = expiryOf(stored);
        try {
            ByteBuffer rest = ByteBuffer.wrap(stored);
            int flags = rest.get();
            if (expiryMs != NEVER) {
                rest.getLong();
            }
            boolean hasTimes = (flags & HAS_TIMES) != 0;
            long created = hasTimes ? rest.getLong() : -1;
            long lastUsed = hasTimes ? rest.getLong() : -1;
            ByteBufferImpl metadata = (flags & HAS_METADATA) != 0 ? takePart(rest) : null;
            ByteBufferImpl internal = (flags & HAS_INTERNAL_METADATA) != 0 ? takePart(rest) : null;
            ByteBufferImpl value = (flags & HAS_VALUE) != 0
                    ? ByteBufferImpl.create(stored, rest.position(), rest.remaining())
                    : null;
            return factory.create(key, value, metadata, internal, created, lastUsed);
        } catch (BufferUnderflowException | IllegalArgumentException e) {
            throw malformed();
        }
    }

    private static long sizeOf(org.infinispan.commons.io.ByteBuffer part) {
        return part == null ? 0 : 4L + part.getLength();
    }

    private static void putPart(ByteBuffer stored, org.infinispan.commons.io.ByteBuffer part) {
        if (part != null) {
            stored.putInt(part.getLength()).put(part.getBuf(), part.getOffset(), part.getLength());
        }
    }

    private static ByteBufferImpl takePart(ByteBuffer rest) {
        int length = rest.getInt();
        int start = rest.position();
        rest.position(start + length);
        return ByteBufferImpl.create(rest.array(), start, length);
    }

    private static PersistenceException malformed() {
        return new PersistenceException("An entry was not written by this version of the Esker cache store; its directory"
                + " belongs to another program, or to a newer version");
    }
}
