package io.esker.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertNull;
import static org.testng.Assert.assertTrue;

import io.esker.infinispan.configuration.CompressionType;
import io.esker.infinispan.configuration.EskerStoreConfigurationBuilder;
import jakarta.transaction.TransactionManager;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.infinispan.Cache;
import org.infinispan.commons.util.IntSet;
import org.infinispan.commons.util.IntSets;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.eviction.EvictionStrategy;
import org.infinispan.expiration.impl.InternalExpirationManager;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.support.WaitNonBlockingStore;
import org.infinispan.test.TestingUtil;
import org.infinispan.transaction.TransactionMode;
import org.infinispan.transaction.lookup.EmbeddedTransactionManagerLookup;
import org.testng.annotations.AfterMethod;
import org.testng.annotations.BeforeMethod;
import org.testng.annotations.Test;

/** A cache over the store: eviction, passivation, expiry, purging, preloading, transactions, write-behind. */
@Test(singleThreaded = true)
public class BehaviourTest {
    private Path directory;

    @BeforeMethod
    public void makeDirectory() throws Exception {
        directory = Caches.newDirectory();
    }

    @AfterMethod(alwaysRun = true)
    public void removeDirectory() throws Exception {
        Caches.remove(directory);
    }

    private ConfigurationBuilder configuration() {
        ConfigurationBuilder cache = new ConfigurationBuilder();
        store(cache);
        return cache;
    }

    private EskerStoreConfigurationBuilder store(ConfigurationBuilder cache) {
        return cache.persistence().addStore(EskerStoreConfigurationBuilder.class).location(directory.toString());
    }

    private static WaitNonBlockingStore<String, String> storeOf(Cache<String, String> cache) {
        return TestingUtil.getFirstStoreWait(cache);
    }

    private static IntSet allSegments() {
        return IntSets.immutableRangeSet(256);
    }

    public void whatMemoryEvictsIsReadFromTheStore() throws Exception {
        ConfigurationBuilder small = configuration();
        small.memory().maxCount(10).whenFull(EvictionStrategy.REMOVE);
        try (DefaultCacheManager manager = Caches.open(small)) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            for (int i = 0; i < 500; i++) {
                cache.put("k" + i, "v" + i);
            }
            assertTrue(cache.getAdvancedCache().getDataContainer().size() <= 10);
            for (int i = 0; i < 500; i++) {
                assertEquals(cache.get("k" + i), "v" + i);
            }
            assertEquals(cache.size(), 500);
            assertEquals(cache.values().stream().count(), 500L);
        }
    }

    public void withPassivationAnEntryIsStoredWhenItLeavesMemory() throws Exception {
        ConfigurationBuilder passivating = configuration();
        passivating.memory().maxCount(10).whenFull(EvictionStrategy.REMOVE);
        passivating.persistence().passivation(true);
        try (DefaultCacheManager manager = Caches.open(passivating)) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            for (int i = 0; i < 8; i++) {
                cache.put("k" + i, "v" + i);
            }
            assertEquals(storeOf(cache).sizeWait(allSegments()), 0L);
            for (int i = 8; i < 200; i++) {
                cache.put("k" + i, "v" + i);
            }
            assertEquals(cache.size(), 200);
            long inMemory = cache.getAdvancedCache().getDataContainer().size();
            assertEquals(storeOf(cache).sizeWait(allSegments()), 200 - inMemory);
            for (int i = 0; i < 200; i++) {
                assertEquals(cache.get("k" + i), "v" + i);
            }
        }
        // What was in memory at the end is passivated then.
        try (DefaultCacheManager manager = Caches.open(passivating)) {
            assertEquals(manager.getCache(Caches.NAME).size(), 200);
        }
    }

    public void whatHasExpiredIsNeitherReadNorCountedAndLeavesTheStore() throws Exception {
        try (DefaultCacheManager manager = Caches.open(configuration())) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            cache.put("stays", "v");
            cache.put("lives long", "v", 1, TimeUnit.HOURS);
            for (int i = 0; i < 300; i++) {
                cache.put("k" + i, "v", 300, TimeUnit.MILLISECONDS);
                cache.put("idle" + i, "v", -1, TimeUnit.SECONDS, 300, TimeUnit.MILLISECONDS);
            }
            Thread.sleep(350);
            assertEquals(cache.size(), 2);
            assertNull(cache.get("k1"));
            assertNull(storeOf(cache).loadEntry("k2"));
            TestingUtil.extractComponent(cache, InternalExpirationManager.class).processExpiration();
            assertEquals(storeOf(cache).approximateSizeWait(allSegments()), 2L);
            assertEquals(storeOf(cache).purge().size(), 0);
            assertEquals(cache.get("lives long"), "v");
        }
    }

    public void purgeOnStartupEmptiesTheStoreAndItsAbsenceDoesNot() throws Exception {
        try (DefaultCacheManager manager = Caches.open(configuration())) {
            for (int i = 0; i < 3000; i++) {
                manager.getCache(Caches.NAME).put("k" + i, "v");
            }
        }
        try (DefaultCacheManager manager = Caches.open(directory, store -> store.preload(true))) {
            assertEquals(manager.getCache(Caches.NAME).getAdvancedCache().getDataContainer().size(), 3000);
        }
        try (DefaultCacheManager manager = Caches.open(directory, store -> store.purgeOnStartup(true))) {
            assertEquals(manager.getCache(Caches.NAME).size(), 0);
            manager.getCache(Caches.NAME).put("k", "v");
        }
        try (DefaultCacheManager manager = Caches.open(configuration())) {
            assertEquals(manager.getCache(Caches.NAME).size(), 1);
        }
    }

    public void aTransactionReachesTheStoreAsAWholeOrNotAtAll() throws Exception {
        ConfigurationBuilder transactional = new ConfigurationBuilder();
        transactional.transaction().transactionMode(TransactionMode.TRANSACTIONAL)
                .transactionManagerLookup(new EmbeddedTransactionManagerLookup());
        store(transactional).transactional(true);
        try (DefaultCacheManager manager = Caches.open(transactional)) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            TransactionManager transactions = cache.getAdvancedCache().getTransactionManager();
            cache.put("ash", "before");
            transactions.begin();
            cache.put("ash", "Fraxinus");
            cache.put("oak", "Quercus");
            transactions.rollback();
            assertEquals(cache.get("ash"), "before");
            assertNull(storeOf(cache).loadEntry("oak"));
            transactions.begin();
            cache.put("oak", "Quercus");
            cache.put("elm", "Ulmus", 1, TimeUnit.HOURS);
            cache.remove("ash");
            assertNull(storeOf(cache).loadEntry("oak"), "nothing is stored before the commit");
            transactions.commit();
            assertEquals(storeOf(cache).loadEntry("oak").getValue(), "Quercus");
            assertEquals(storeOf(cache).loadEntry("elm").getMetadata().lifespan(), 3_600_000L);
            assertNull(storeOf(cache).loadEntry("ash"));
        }
        try (DefaultCacheManager manager = Caches.open(transactional)) {
            assertEquals(manager.getCache(Caches.NAME).size(), 2);
        }
    }

    public void writeBehindWritesInTheEnd() throws Exception {
        ConfigurationBuilder behind = new ConfigurationBuilder();
        store(behind).async().enable();
        try (DefaultCacheManager manager = Caches.open(behind)) {
            for (int i = 0; i < 1000; i++) {
                manager.getCache(Caches.NAME).put("k" + i % 400, "v" + i);
            }
        }
        try (DefaultCacheManager manager = Caches.open(configuration())) {
            assertEquals(manager.getCache(Caches.NAME).size(), 400);
            assertEquals(manager.getCache(Caches.NAME).get("k399"), "v799");
            assertEquals(manager.getCache(Caches.NAME).get("k199"), "v999");
        }
    }

    public void clearRemovesFewAndMany() throws Exception {
        try (DefaultCacheManager manager = Caches.open(configuration())) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            for (int entries : new int[] {0, 10, 5000, 3}) {
                for (int i = 0; i < entries; i++) {
                    cache.put("k" + i, "v", i % 2 == 0 ? -1 : 1000, TimeUnit.SECONDS);
                }
                assertEquals(cache.size(), entries);
                cache.clear();
                assertEquals(cache.size(), 0);
                assertEquals(storeOf(cache).approximateSizeWait(allSegments()), 0L);
                assertNull(cache.get("k1"));
            }
        }
    }

    public void optionsThatChangeHowCallsAreMadeChangeNoResult() throws Exception {
        ConfigurationBuilder cramped = new ConfigurationBuilder();
        store(cramped).poolSize(2).stripes(1).writeSync(true).paranoidChecks(true).blockSize(8192)
                .writeBufferSize(1).lruBlockCache(0).compressionType(CompressionType.ZSTD);
        for (int round = 0; round < 2; round++) {
            try (DefaultCacheManager manager = Caches.open(cramped)) {
                Cache<String, String> cache = manager.getCache(Caches.NAME);
                List<CompletableFuture<?>> calls = new ArrayList<>();
                for (int i = 0; i < 500; i++) {
                    String key = "k" + i;
                    String value = "v".repeat(i) + round;
                    calls.add(cache.putAsync(key, value).thenCompose(before -> cache.getAsync(key))
                            .thenAccept(found -> assertEquals(found, value)));
                }
                CompletableFuture.allOf(calls.toArray(new CompletableFuture<?>[0])).get(60, TimeUnit.SECONDS);
                assertEquals(cache.size(), 500);
            }
        }
    }
}
