package io.esker.infinispan;

import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNotNull;
import static org.testng.Assert.assertTrue;

import io.esker.infinispan.configuration.EskerStoreConfigurationBuilder;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.infinispan.Cache;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.Test;

/** Which calls run on the thread that asks. */
@Test(singleThreaded = true)
public class InPlaceTest {
    private long nowNs = Long.MAX_VALUE - 1_000; // the clock may begin anywhere, and run over

    private void call(InPlace inPlace, long tookNs) {
        long began = inPlace.nowNs();
        nowNs += tookNs;
        inPlace.end(began);
    }

    public void aSlowCallHandsThoseOfAWhileOver() {
        InPlace inPlace = new InPlace(() -> nowNs);
        assertTrue(inPlace.isAllowed(nowNs));
        call(inPlace, InPlace.SLOW_NS - 1);
        assertTrue(inPlace.isAllowed(nowNs));
        call(inPlace, InPlace.SLOW_NS);
        assertFalse(inPlace.isAllowed(nowNs));
        nowNs += InPlace.REST_FOR_EACH * InPlace.SLOW_NS - 1;
        assertFalse(inPlace.isAllowed(nowNs));
        nowNs++;
        assertTrue(inPlace.isAllowed(nowNs), "it is tried again");
        call(inPlace, InPlace.SLOW_NS);
        assertFalse(inPlace.isAllowed(nowNs), "and given up at once");
        long began = inPlace.nowNs();
        call(inPlace, 50 * InPlace.SLOW_NS);
        long until = nowNs + InPlace.REST_FOR_EACH * 50 * InPlace.SLOW_NS;
        nowNs = began + InPlace.SLOW_NS;
        inPlace.end(began);
        assertFalse(inPlace.isAllowed(until - 1), "one that was not as slow does not shorten it");
        assertTrue(inPlace.isAllowed(until));
    }

    private interface Call {
        CompletionStage<?> begin(NonBlockingStore<String, String> store, int segment, MarshallableEntry<String, String> entry);
    }

    private static final Call LOAD = (store, segment, entry) -> store.load(segment, "ash");
    private static final Call WRITE = (store, segment, entry) -> store.write(segment, entry);
    private static final Call DELETE = (store, segment, entry) ->
            store.delete(segment, "ash").thenCompose(there -> store.write(segment, entry));

    public void callsRunInPlaceUnlessTheyAreLimited() throws Exception {
        for (Call call : List.of(LOAD, WRITE, DELETE)) {
            assertTrue(doneAtOnce(call, store -> { }) > 0, "none of 1,000 calls ran in place");
            assertTrue(doneAtOnce(call, store -> store.poolSize(2)) < 1_000, "the limit on calls is not kept");
        }
    }

    public void changesThatWaitForTheDeviceAreHandedOver() throws Exception {
        assertTrue(doneAtOnce(WRITE, store -> store.writeSync(true)) < 1_000, "they ran on the thread that asked");
    }

    public void longValuesAreHandedOver() throws Exception {
        assertTrue(doneAtOnce(WRITE, store -> { }, "x".repeat(100_000)) < 1_000, "they were copied on the thread that asked");
    }

    public void aChangeThatWouldWaitForAnotherIsHandedOver() throws Exception {
        Path directory = Caches.newDirectory();
        try (DefaultCacheManager manager = Caches.open(directory, store -> store.stripes(1))) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            EskerStore<String, String> store = TestingUtil.getFirstStore(cache);
            CompletableFuture<?>[] handedOver = new CompletableFuture<?>[1];
            Thread other;
            try (var held = store.table().tryLock(new byte[0])) {
                // On another thread: the lock is this one's.
                other = new Thread(() -> handedOver[0] = store.delete(0, "ash").toCompletableFuture());
                other.start();
                other.join(10_000);
                assertFalse(other.isAlive(), "it waits");
                assertFalse(handedOver[0].isDone());
            }
            handedOver[0].get(10, TimeUnit.SECONDS);
        } finally {
            Caches.remove(directory);
        }
    }

    /** How many of 1,000 calls were over when they returned. One that was handed over may be too, if this thread was held up. */
    private static int doneAtOnce(Call call, Consumer<EskerStoreConfigurationBuilder> settings) throws Exception {
        return doneAtOnce(call, settings, "Fraxinus");
    }

    private static int doneAtOnce(Call call, Consumer<EskerStoreConfigurationBuilder> settings, String value) throws Exception {
        Path directory = Caches.newDirectory();
        try (DefaultCacheManager manager = Caches.open(directory, settings)) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            cache.put("ash", value);
            NonBlockingStore<String, String> store = TestingUtil.getFirstStore(cache);
            int segment = TestingUtil.extractComponent(cache, KeyPartitioner.class).getSegment("ash");
            MarshallableEntry<String, String> entry = store.load(segment, "ash").toCompletableFuture().join();
            int atOnce = 0;
            for (int i = 0; i < 1_000; i++) {
                CompletableFuture<?> begun = call.begin(store, segment, entry).toCompletableFuture();
                if (begun.isDone()) atOnce++;
                begun.join();
            }
            assertNotNull(store.load(segment, "ash").toCompletableFuture().join());
            return atOnce;
        } finally {
            Caches.remove(directory);
        }
    }
}
