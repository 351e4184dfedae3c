package io.esker.infinispan.bench;

import io.esker.infinispan.configuration.EskerStoreConfigurationBuilder;
import java.nio.file.Path;
import org.infinispan.commons.test.TestResourceTracker;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.dummy.DummyInMemoryStoreConfigurationBuilder;
import org.infinispan.persistence.rocksdb.configuration.RocksDBStoreConfigurationBuilder;

/** A container for each of the stores that are compared, each with its own defaults. */
final class Containers {
    static final String CACHE = "bench";
    /** So few entries stay in memory that reads come from the store. */
    private static final int IN_MEMORY = 100;

    private Containers() {}

    static DefaultCacheManager open(String store, Path directory) {
        GlobalConfigurationBuilder container = new GlobalConfigurationBuilder().nonClusteredDefault();
        container.jmx().disable();
        ConfigurationBuilder cache = new ConfigurationBuilder();
        cache.memory().maxCount(IN_MEMORY);
        switch (store) {
            case "esker" -> cache.persistence().addStore(EskerStoreConfigurationBuilder.class).location(directory.toString());
            case "rocksdb" -> cache.persistence().addStore(RocksDBStoreConfigurationBuilder.class)
                    .location(directory.resolve("data").toString())
                    .expiredLocation(directory.resolve("expired").toString());
            case "softindex" -> cache.persistence().addSoftIndexFileStore()
                    .dataLocation(directory.resolve("data").toString())
                    .indexLocation(directory.resolve("index").toString());
            // A map on the heap, by Infinispan's own tests: what a store that does nothing leaves of each row.
            case "memory" -> {
                TestResourceTracker.setThreadTestName(CACHE);
                cache.persistence().addStore(DummyInMemoryStoreConfigurationBuilder.class).storeName(directory.toString());
            }
            default -> throw new IllegalArgumentException("esker, rocksdb, softindex or memory, and not " + store);
        }
        DefaultCacheManager manager = new DefaultCacheManager(container.build());
        manager.defineConfiguration(CACHE, cache.build());
        manager.getCache(CACHE);
        return manager;
    }
}
