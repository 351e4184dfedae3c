package io.esker.infinispan;

import org.infinispan.persistence.spi.PersistenceException;

/** How large keys and values may be, and what is said about larger ones. */
final class Limits {
    /** Bytes that a marshalled value may have, with its metadata. */
    static final long MAX_VALUE_BYTES = 1L << 30;

    private Limits() {}

    static void checkKey(int bytes) {
        if (bytes > EntryKeys.MAX_KEY_BYTES) {
            throw new PersistenceException("A key of " + bytes
                    + " bytes (marshalled) cannot be stored: the Esker store takes up to " + EntryKeys.MAX_KEY_BYTES);
        }
    }

    static PersistenceException valueTooLong(long bytes) {
        return new PersistenceException("A value of " + bytes + " bytes (marshalled, with its metadata) cannot be stored:"
                + " the Esker store takes up to " + MAX_VALUE_BYTES);
    }
}
