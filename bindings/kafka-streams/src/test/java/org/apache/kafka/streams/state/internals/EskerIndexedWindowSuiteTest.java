package org.apache.kafka.streams.state.internals;

import io.esker.kafka.EskerDslStoreSuppliers;

import java.time.Duration;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** The same for those with an index by time, which the DSL is given where results are emitted as windows close. */
class EskerIndexedWindowSuiteTest extends AbstractWindowBytesStoreTest {
    @Override
    <K, V> WindowStore<K, V> buildWindowStore(
            long retentionPeriod, long windowSize, boolean retainDuplicates, Serde<K> keySerde, Serde<V> valueSerde) {
        DslWindowParams params = new DslWindowParams("esker-indexed", Duration.ofMillis(retentionPeriod), Duration.ofMillis(windowSize),
                retainDuplicates, EmitStrategy.onWindowClose(), false, DslStoreFormat.PLAIN);
        return Stores.windowStoreBuilder(new EskerDslStoreSuppliers().windowStore(params), keySerde, valueSerde).build();
    }
}
