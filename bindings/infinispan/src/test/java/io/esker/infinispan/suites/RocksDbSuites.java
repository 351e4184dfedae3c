package io.esker.infinispan.suites;

import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.PersistenceConfigurationBuilder;
import org.infinispan.persistence.BaseNonBlockingStoreTest;
import org.infinispan.persistence.BaseStoreFunctionalTest;
import org.infinispan.persistence.MultiStoresFunctionalTest;
import org.infinispan.persistence.ParallelIterationTest;
import org.infinispan.persistence.rocksdb.RocksDBStore;
import org.infinispan.persistence.rocksdb.configuration.RocksDBStoreConfigurationBuilder;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.testng.annotations.AfterClass;
import org.testng.annotations.Test;

/** Infinispan's public suites for stores, unmodified, over Infinispan's own store over RocksDB, for comparison. */
public final class RocksDbSuites {
    private RocksDbSuites() {}

    private static String directoryOf(Class<?> suite) {
        return CommonsTestingUtil.tmpDirectory(suite);
    }

    private static RocksDBStoreConfigurationBuilder add(PersistenceConfigurationBuilder persistence) {
        return persistence.addStore(RocksDBStoreConfigurationBuilder.class);
    }

    private static RocksDBStoreConfigurationBuilder locate(
            Class<?> suite, PersistenceConfigurationBuilder persistence, String name) {
        String directory = directoryOf(suite) + "/" + name;
        return add(persistence).location(directory + "/data").expiredLocation(directory + "/expired");
    }

    /** Calls of the SPI, on a store that keeps segments apart. */
    @Test(groups = "unit", testName = "suites.RocksDbNonBlocking")
    public static class NonBlocking extends BaseNonBlockingStoreTest {
        @Override
        protected NonBlockingStore<Object, Object> createStore() {
            return new RocksDBStore<>();
        }

        @Override
        protected Configuration buildConfig(ConfigurationBuilder builder) {
            locate(getClass(), builder.persistence(), "store");
            return builder.build();
        }

        @AfterClass(alwaysRun = true)
        protected void removeDirectory() {
            Util.recursiveFileRemove(directoryOf(getClass()));
        }
    }

    /** The same without segments. */
    @Test(groups = "unit", testName = "suites.RocksDbNonBlockingUnsegmented")
    public static class NonBlockingUnsegmented extends NonBlocking {
        @Override
        protected Configuration buildConfig(ConfigurationBuilder builder) {
            locate(getClass(), builder.persistence(), "unsegmented").segmented(false);
            return builder.build();
        }
    }

    /** A cache over a store. */
    @Test(groups = "unit", testName = "suites.RocksDbFunctional")
    public static class Functional extends BaseStoreFunctionalTest {
        @Override
        protected PersistenceConfigurationBuilder createCacheStoreConfig(
                PersistenceConfigurationBuilder persistence, String cacheName, boolean preload) {
            add(persistence).preload(preload);
            return persistence;
        }
    }

    /** Two nodes, each with a store of its own. */
    @Test(groups = "unit", testName = "suites.RocksDbMultiStores")
    public static class MultiStores extends MultiStoresFunctionalTest<RocksDBStoreConfigurationBuilder> {
        @Override
        protected RocksDBStoreConfigurationBuilder buildCacheStoreConfig(
                PersistenceConfigurationBuilder persistence, String node) {
            return locate(getClass(), persistence, node);
        }

        @AfterClass(alwaysRun = true)
        protected void removeDirectory() {
            Util.recursiveFileRemove(directoryOf(getClass()));
        }
    }

    /** Iterations beside each other. */
    @Test(groups = "functional", testName = "suites.RocksDbIteration")
    public static class Iteration extends ParallelIterationTest {
        @Override
        protected void configurePersistence(ConfigurationBuilder builder) {
            add(builder.persistence());
        }

        @Override
        protected void teardown() {
            super.teardown();
            Util.recursiveFileRemove(directoryOf(getClass()));
        }
    }
}
