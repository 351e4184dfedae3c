package io.esker.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNotNull;
import static org.testng.Assert.assertNull;
import static org.testng.Assert.assertTrue;
import static org.testng.Assert.expectThrows;

import io.esker.Esker;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.subscribers.TestSubscriber;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.infinispan.Cache;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.util.IntSets;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.AfterMethod;
import org.testng.annotations.BeforeMethod;
import org.testng.annotations.Test;

/** Opening and closing, and what goes wrong there and in calls: always Infinispan's own kind of error, and the store goes on. */
@Test(singleThreaded = true)
public class LifecycleTest {
    private static final byte[] LAYOUT = "layout".getBytes(StandardCharsets.US_ASCII);

    private Path directory;

    @BeforeMethod
    public void makeDirectory() throws Exception {
        directory = Caches.newDirectory();
    }

    @AfterMethod(alwaysRun = true)
    public void removeDirectory() throws Exception {
        Caches.remove(directory);
    }

    public void entriesAreThereAfterARestart() throws Exception {
        try (DefaultCacheManager first = open()) {
            first.getCache(Caches.NAME).put("ash", "Fraxinus");
        }
        try (DefaultCacheManager second = open()) {
            assertEquals(second.getCache(Caches.NAME).get("ash"), "Fraxinus");
            assertEquals(second.getCache(Caches.NAME).size(), 1);
        }
    }

    public void aDirectoryIsOpenOnlyOnce() throws Exception {
        try (DefaultCacheManager first = open()) {
            RuntimeException refused = expectThrows(RuntimeException.class, this::open);
            assertRefused(refused, "cannot be opened");
            first.getCache(Caches.NAME).put("ash", "Fraxinus");
            assertEquals(first.getCache(Caches.NAME).get("ash"), "Fraxinus");
        }
    }

    public void aDirectoryThatAnotherJvmHasOpenIsRefusedAndFreeWhenThatIsKilled() throws Exception {
        Process other = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp", System.getProperty("java.class.path"), Holder.class.getName(), directory.toString())
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try {
            BufferedReader said = other.inputReader();
            String line = said.readLine();
            while (line != null && !line.equals("open")) {
                line = said.readLine();
            }
            assertEquals(line, "open");
            assertRefused(expectThrows(RuntimeException.class, this::open), "cannot be opened");
        } finally {
            other.destroyForcibly().waitFor(20, TimeUnit.SECONDS);
        }
        try (DefaultCacheManager manager = open()) {
            assertEquals(manager.getCache(Caches.NAME).get("oak"), "Quercus");
        }
    }

    /** Opens a cache, says so, and waits to be killed. */
    public static final class Holder {
        private Holder() {}

        public static void main(String[] arguments) throws Exception {
            DefaultCacheManager manager = Caches.open(Path.of(arguments[0]));
            manager.getCache(Caches.NAME).put("oak", "Quercus");
            System.out.println("\nopen");
            new BufferedReader(new InputStreamReader(System.in)).readLine();
            manager.stop();
        }
    }

    /** All of it was taken for left over, and dropped. */
    public void entriesWithoutTheRecordOfTheirLayoutAreRefusedAndNotDropped() throws Exception {
        try (DefaultCacheManager manager = open()) {
            manager.getCache(Caches.NAME).put("ash", "Fraxinus");
        }
        byte[] layout;
        try (Esker store = Esker.open(own())) {
            layout = store.keyspace().get(LAYOUT);
            store.keyspace().delete(LAYOUT);
        }
        assertRefused(expectThrows(RuntimeException.class, this::open), "no record of its layout");
        try (Esker store = Esker.open(own())) {
            store.keyspace().put(LAYOUT, layout);
        }
        try (DefaultCacheManager manager = open()) {
            assertEquals(manager.getCache(Caches.NAME).get("ash"), "Fraxinus");
        }
        try (Esker store = Esker.open(own())) {
            store.keyspace().delete(LAYOUT);
        }
        try (DefaultCacheManager manager = Caches.open(directory, store -> store.purgeOnStartup(true))) {
            assertEquals(manager.getCache(Caches.NAME).size(), 0);
            manager.getCache(Caches.NAME).put("oak", "Quercus");
        }
        try (DefaultCacheManager manager = open()) {
            assertEquals(manager.getCache(Caches.NAME).get("oak"), "Quercus");
        }
    }

    /** A repair of a store that lost its manifest knows no names. */
    public void entriesInKeyspacesOfOtherNamesAreRefusedAndNotDropped() throws Exception {
        try (DefaultCacheManager manager = open()) {
            manager.getCache(Caches.NAME).put("ash", "Fraxinus");
        }
        try (Esker store = Esker.open(own())) {
            store.dropKeyspace("entries-1");
            store.dropKeyspace("expiry-1");
            store.createKeyspace("recovered-1").put(new byte[] {0, 0, 1}, new byte[] {16, 1});
        }
        assertRefused(expectThrows(RuntimeException.class, this::open), "recovered-1");
        try (Esker store = Esker.open(own())) {
            assertTrue(store.keyspaces().contains("recovered-1"));
        }
    }

    /** What is removed in any case need not be readable, and all of it is removed. */
    public void withPurgeWhatIsThereIsRemovedWhateverItIs() throws Exception {
        byte[] foreign = "foreign".getBytes(StandardCharsets.US_ASCII);
        byte[] key = "foreign key".getBytes(StandardCharsets.US_ASCII);
        for (byte[] record : List.of(new byte[] {2, 0, 0}, new byte[0], new byte[] {2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1})) {
            try (DefaultCacheManager manager = open()) {
                manager.getCache(Caches.NAME).put("ash", "Fraxinus");
            }
            try (Esker store = Esker.open(own())) {
                store.keyspace().put(LAYOUT, record);
                store.keyspace().put(key, foreign);
                store.createKeyspace("foreign").put(key, foreign);
            }
            assertRefused(expectThrows(RuntimeException.class, this::open), "newer version");
            checkPurged();
        }
        try (Esker store = Esker.open(own())) {
            store.keyspace().delete(LAYOUT);
            for (int i = 0; i < 3000; i++) {
                store.keyspace().put(("foreign " + i).getBytes(StandardCharsets.US_ASCII), new byte[1000]);
            }
        }
        assertRefused(expectThrows(RuntimeException.class, this::open), "no record of its layout");
        checkPurged();
    }

    private void checkPurged() throws Exception {
        try (DefaultCacheManager manager = Caches.open(directory, store -> store.purgeOnStartup(true))) {
            assertEquals(manager.getCache(Caches.NAME).size(), 0);
            manager.getCache(Caches.NAME).put("oak", "Quercus");
        }
        try (Esker store = Esker.open(own())) {
            assertEquals(new TreeSet<>(store.keyspaces()), new TreeSet<>(List.of("default", "entries-1", "expiry-1")));
            List<String> kept = new ArrayList<>();
            store.keyspace().entries().forEach(entry -> kept.add(new String(entry.key(), StandardCharsets.US_ASCII)));
            assertEquals(kept, List.of("counts", "layout"));
        }
        try (DefaultCacheManager manager = open()) {
            assertEquals(manager.getCache(Caches.NAME).get("oak"), "Quercus");
            assertEquals(manager.getCache(Caches.NAME).size(), 1);
        }
    }

    private Path own() {
        return directory.resolve(Caches.NAME).resolve("esker");
    }

    public void createIfMissingAndErrorIfExistsAreObeyed() throws Exception {
        assertRefused(expectThrows(RuntimeException.class,
                () -> Caches.open(directory, store -> store.createIfMissing(false))), "cannot be opened");
        open().stop();
        Caches.open(directory, store -> store.createIfMissing(false)).stop();
        assertRefused(expectThrows(RuntimeException.class,
                () -> Caches.open(directory, store -> store.errorIfExists(true))), "cannot be opened");
        open().stop();
    }

    public void theDirectoryOfAnotherProgramIsRefused() throws Exception {
        Path own = Files.createDirectories(own());
        Files.writeString(own.resolve("CURRENT"), "MANIFEST-000001\n");
        Files.writeString(own.resolve("MANIFEST-000001"), "not ours");
        assertRefused(expectThrows(RuntimeException.class, this::open), "cannot be opened");
        assertEquals(Files.readString(own.resolve("MANIFEST-000001")), "not ours");
    }

    private static void assertRefused(RuntimeException refused, String message) {
        String all = Caches.messages(refused);
        assertTrue(all.contains(CacheConfigurationException.class.getName()), all);
        assertTrue(all.contains(message), all);
        assertTrue(all.contains("Esker store of cache '" + Caches.NAME + "'"), all);
    }

    public void aWalkThatIsLeftOpenDoesNotKeepTheDirectoryLocked() throws Exception {
        DefaultCacheManager manager = open();
        Cache<String, String> cache = manager.getCache(Caches.NAME);
        for (int i = 0; i < 5000; i++) {
            cache.put("k" + i, "v" + i);
        }
        NonBlockingStore<String, String> store = TestingUtil.getFirstStore(cache);
        TestSubscriber<Object> reader = TestSubscriber.create(1);
        Flowable.fromPublisher(store.publishEntries(IntSets.immutableRangeSet(256), null, true)).subscribe(reader);
        reader.awaitCount(1);
        manager.stop();
        open().stop();
        assertTrue(reader.values().size() < 5000, "the walk was under way");
        reader.cancel();
    }

    public void threadsThatAreInterruptedInCallsDoNoHarm() throws Exception {
        try (DefaultCacheManager manager = open()) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            AtomicBoolean stop = new AtomicBoolean();
            AtomicInteger interrupted = new AtomicInteger();
            Thread worker = new Thread(() -> {
                for (int i = 0; !stop.get(); i++) {
                    try {
                        cache.put("k" + i % 100, "v");
                        cache.getAdvancedCache().withFlags(org.infinispan.context.Flag.SKIP_LOCKING).get("k" + i % 100);
                    } catch (RuntimeException e) {
                        assertInfinispans(e);
                    }
                    if (Thread.interrupted()) {
                        interrupted.incrementAndGet();
                    }
                }
            });
            worker.start();
            for (int i = 0; i < 200; i++) {
                worker.interrupt();
                Thread.sleep(1);
            }
            stop.set(true);
            worker.join(20_000);
            assertFalse(worker.isAlive(), "the worker hangs");
            assertTrue(interrupted.get() > 0, "nothing was interrupted");
            cache.put("after", "all");
            cache.getAdvancedCache().getDataContainer().clear();
            assertEquals(cache.get("after"), "all", "read from the store");
        }
    }

    private static void assertInfinispans(RuntimeException e) {
        assertTrue(e.getClass().getName().startsWith("org.infinispan."), Caches.messages(e));
    }

    public void aKeyThatIsTooLongIsRefusedAndIsNowhere() throws Exception {
        try (DefaultCacheManager manager = open()) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            String longKey = "k".repeat(70_000);
            assertNull(cache.get(longKey));
            assertFalse(cache.containsKey(longKey));
            assertNull(cache.remove(longKey));
            PersistenceException refused = expectThrows(PersistenceException.class, () -> cache.put(longKey, "v"));
            assertTrue(Caches.messages(refused).contains("65526"), Caches.messages(refused));
            String longest = "k".repeat(65_400);
            cache.put(longest, "v");
            cache.getAdvancedCache().getDataContainer().clear();
            assertEquals(cache.get(longest), "v");
        }
    }

    public void valuesOfAnySizeComeBack() throws Exception {
        try (DefaultCacheManager manager = open()) {
            Cache<String, byte[]> cache = manager.getCache(Caches.NAME);
            for (int size : List.of(0, 1, 100, 4096, 100_000, 5_000_000)) {
                byte[] value = new byte[size];
                java.util.Arrays.fill(value, (byte) size);
                cache.put("k" + size, value);
                cache.getAdvancedCache().getDataContainer().clear();
                assertEquals(cache.get("k" + size), value);
            }
        }
    }

    public void callsAfterStopAreRefused() throws Exception {
        DefaultCacheManager manager = open();
        NonBlockingStore<String, String> store = TestingUtil.getFirstStore(manager.getCache(Caches.NAME));
        manager.stop();
        Throwable refused = expectThrows(Throwable.class, () -> store.load(0, "k").toCompletableFuture().join());
        assertNotNull(refused.getMessage());
    }

    public void removingTheCacheRemovesItsDirectory() throws Exception {
        try (DefaultCacheManager manager = open()) {
            manager.getCache(Caches.NAME).put("ash", "Fraxinus");
            assertTrue(Files.isDirectory(own()));
            NonBlockingStore<Object, Object> store = TestingUtil.getFirstStore(manager.getCache(Caches.NAME));
            store.destroy().toCompletableFuture().join();
            assertFalse(Files.exists(own()));
        }
    }

    public void anotherNumberOfSegmentsKeepsAllEntries() throws Exception {
        for (int segments : List.of(256, 7, 60, 1)) {
            checkWithSegments(segments, true);
        }
        checkWithSegments(256, false);
        checkWithSegments(20, true);
        ConfigurationBuilder tooMany = configuration(70_000, true);
        assertRefused(expectThrows(RuntimeException.class, () -> Caches.open(tooMany)), "65536 segments");
    }

    private ConfigurationBuilder configuration(int segments, boolean segmented) {
        ConfigurationBuilder cache = new ConfigurationBuilder();
        cache.clustering().hash().numSegments(segments);
        cache.persistence().addStore(io.esker.infinispan.configuration.EskerStoreConfigurationBuilder.class)
                .location(directory.toString()).segmented(segmented);
        return cache;
    }

    private void checkWithSegments(int segments, boolean segmented) throws Exception {
        try (DefaultCacheManager manager = Caches.open(configuration(segments, segmented))) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            for (int i = 0; i < 300; i++) {
                cache.putIfAbsent("k" + i, "v" + i, i % 3 == 0 ? 1_000_000 : -1, TimeUnit.SECONDS);
                assertEquals(cache.get("k" + i), "v" + i);
            }
            assertEquals(cache.size(), 300);
        }
    }

    private DefaultCacheManager open() {
        return Caches.open(directory);
    }
}
