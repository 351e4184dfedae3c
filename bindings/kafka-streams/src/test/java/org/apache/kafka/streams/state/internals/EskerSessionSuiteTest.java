package org.apache.kafka.streams.state.internals;

import io.esker.kafka.EskerStores;

import java.time.Duration;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka's suite for session stores, over Esker's. */
class EskerSessionSuiteTest extends AbstractSessionBytesStoreTest {
    /** What the suite expects where stores differ: segments on a disk, and sessions that can be found by their time alone. */
    @Override
    StoreType storeType() {
        return StoreType.RocksDBTimeOrderedSessionStoreWithIndex;
    }

    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retentionPeriod, Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.sessionStoreBuilder(
                EskerStores.persistentSessionStore("esker-sessions", Duration.ofMillis(retentionPeriod)), keySerde, valueSerde).build();
    }
}
