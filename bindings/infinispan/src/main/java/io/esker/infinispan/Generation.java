package io.esker.infinispan;

import io.esker.Esker;
import io.esker.Keyspace;

/** The pair of keyspaces that counts: the entries, and the rows that say when those expire that do. */
record Generation(Layout layout, Keyspace entries, Keyspace expiry) {
    static Generation openOrCreate(Esker esker, Layout layout) {
        return new Generation(layout, esker.openOrCreateKeyspace(layout.entriesName()),
                esker.openOrCreateKeyspace(layout.expiryName()));
    }
}
