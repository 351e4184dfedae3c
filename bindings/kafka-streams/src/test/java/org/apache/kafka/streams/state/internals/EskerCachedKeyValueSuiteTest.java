package org.apache.kafka.streams.state.internals;

import io.esker.kafka.EskerStores;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** The same with the cache of Kafka Streams in front, which merges its entries with the store's. */
class EskerCachedKeyValueSuiteTest extends AbstractKeyValueStoreTest {
    @Override
    @SuppressWarnings("unchecked")
    protected <K, V> KeyValueStore<K, V> createKeyValueStore(StateStoreContext context) {
        KeyValueStore<K, V> store = Stores.keyValueStoreBuilder(
                        EskerStores.persistentKeyValueStore("cache-store"), (Serde<K>) context.keySerde(), (Serde<V>) context.valueSerde())
                .withCachingEnabled().build();
        store.init(context, store);
        return store;
    }
}
