package io.esker.infinispan.suites;

import io.esker.infinispan.EskerStore;
import io.esker.infinispan.configuration.EskerStoreConfigurationBuilder;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.PersistenceConfigurationBuilder;
import org.infinispan.persistence.BaseNonBlockingStoreTest;
import org.infinispan.persistence.BaseStoreFunctionalTest;
import org.infinispan.persistence.MultiStoresFunctionalTest;
import org.infinispan.persistence.ParallelIterationTest;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.testng.annotations.AfterClass;
import org.testng.annotations.Test;

/** Infinispan's public suites for stores, unmodified, over the Esker store. */
public final class EskerSuites {
    private EskerSuites() {}

    private static String directoryOf(Class<?> suite) {
        return CommonsTestingUtil.tmpDirectory(suite);
    }

    private static EskerStoreConfigurationBuilder add(PersistenceConfigurationBuilder persistence) {
        return persistence.addStore(EskerStoreConfigurationBuilder.class);
    }

    /** Calls of the SPI, on a store that keeps segments apart. */
    @Test(groups = "unit", testName = "suites.EskerNonBlocking")
    public static class NonBlocking extends BaseNonBlockingStoreTest {
        @Override
        protected NonBlockingStore<Object, Object> createStore() {
            return new EskerStore<>();
        }

        @Override
        protected Configuration buildConfig(ConfigurationBuilder builder) {
            add(builder.persistence()).location(directoryOf(getClass()));
            return builder.build();
        }

        @AfterClass(alwaysRun = true)
        protected void removeDirectory() {
            Util.recursiveFileRemove(directoryOf(getClass()));
        }
    }

    /** The same without segments. */
    @Test(groups = "unit", testName = "suites.EskerNonBlockingUnsegmented")
    public static class NonBlockingUnsegmented extends NonBlocking {
        @Override
        protected Configuration buildConfig(ConfigurationBuilder builder) {
            add(builder.persistence()).location(directoryOf(getClass())).segmented(false);
            return builder.build();
        }
    }

    /** A cache over a store. */
    @Test(groups = "unit", testName = "suites.EskerFunctional")
    public static class Functional extends BaseStoreFunctionalTest {
        @Override
        protected PersistenceConfigurationBuilder createCacheStoreConfig(
                PersistenceConfigurationBuilder persistence, String cacheName, boolean preload) {
            add(persistence).preload(preload);
            return persistence;
        }
    }

    /** Two nodes, each with a store of its own. */
    @Test(groups = "unit", testName = "suites.EskerMultiStores")
    public static class MultiStores extends MultiStoresFunctionalTest<EskerStoreConfigurationBuilder> {
        @Override
        protected EskerStoreConfigurationBuilder buildCacheStoreConfig(PersistenceConfigurationBuilder persistence, String node) {
            return add(persistence).location(directoryOf(getClass()) + "/" + node);
        }

        @AfterClass(alwaysRun = true)
        protected void removeDirectory() {
            Util.recursiveFileRemove(directoryOf(getClass()));
        }
    }

    /** Iterations beside each other. */
    @Test(groups = "functional", testName = "suites.EskerIteration")
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
