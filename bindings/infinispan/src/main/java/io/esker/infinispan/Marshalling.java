package io.esker.infinispan;

import java.io.IOException;
import org.infinispan.commons.marshall.Marshaller;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.persistence.spi.PersistenceException;

/** From Infinispan's keys and entries to the bytes of a table, and back. */
final class Marshalling<K, V> {
    private final Marshaller marshaller;
    private final MarshallableEntryFactory<K, V> entries;

    Marshalling(Marshaller marshaller, MarshallableEntryFactory<K, V> entries) {
        this.marshaller = marshaller;
        this.entries = entries;
    }

    /** The key to look for; null when it is too long for any entry to have it. */
    byte[] keyToFind(int segment, Object key) {
        try {
            byte[] marshalled = marshaller.objectToByteBuffer(key);
            return marshalled.length > EntryKeys.MAX_KEY_BYTES
                    ? null
                    : EntryKeys.entry(segment, marshalled, 0, marshalled.length);
        } catch (IOException e) {
            throw new PersistenceException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new PersistenceException(e);
        }
    }

    /** The key to write an entry under. */
    byte[] entryKey(int segment, MarshallableEntry<? extends K, ? extends V> entry) {
        var key = entry.getKeyBytes();
        Limits.checkKey(key.getLength());
        return EntryKeys.entry(segment, key.getBuf(), key.getOffset(), key.getLength());
    }

    @SuppressWarnings("unchecked")
    K key(byte[] entryKey) {
        return (K) unmarshal(EntryKeys.marshalledKey(entryKey));
    }

    Object unmarshal(byte[] marshalled) {
        try {
            return marshaller.objectFromByteBuffer(marshalled);
        } catch (IOException | ClassNotFoundException e) {
            throw new PersistenceException(e);
        }
    }

    /** An entry as it was stored; null for null. */
    MarshallableEntry<K, V> entry(Object key, byte[] stored) {
        return stored == null ? null : StoredEntry.decode(entries, key, stored);
    }
}
