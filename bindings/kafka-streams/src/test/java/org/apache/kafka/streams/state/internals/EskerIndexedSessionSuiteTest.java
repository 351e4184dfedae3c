package org.apache.kafka.streams.state.internals;

import io.esker.kafka.EskerDslStoreSuppliers;

import java.time.Duration;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;

/** The same for those with an index by time, which the DSL is given where results are emitted as windows close. */
class EskerIndexedSessionSuiteTest extends AbstractSessionBytesStoreTest {
    @Override
    StoreType storeType() {
        return StoreType.RocksDBTimeOrderedSessionStoreWithIndex;
    }

    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retentionPeriod, Serde<K> keySerde, Serde<V> valueSerde) {
        DslSessionParams params = new DslSessionParams(
                "esker-indexed", Duration.ofMillis(retentionPeriod), EmitStrategy.onWindowClose(), DslStoreFormat.PLAIN);
        return Stores.sessionStoreBuilder(new EskerDslStoreSuppliers().sessionStore(params), keySerde, valueSerde).build();
    }
}
