package io.esker.infinispan;

import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertNotNull;
import static org.testng.Assert.assertTrue;

import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import org.infinispan.Cache;
import org.infinispan.distribution.ch.KeyPartitioner;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.persistence.spi.NonBlockingStore;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.Test;

/** Which reads run on the thread that asks. */
@Test(singleThreaded = true)
public class InPlaceTest {
    private long nowNs = Long.MAX_VALUE - 1_000; // the clock may begin anywhere, and run over

    private void read(InPlace inPlace, long tookNs) {
        long began = inPlace.nowNs();
        nowNs += tookNs;
        inPlace.end(began);
    }

    public void aSlowReadHandsThoseOfAWhileOver() {
        InPlace inPlace = new InPlace(() -> nowNs);
        assertTrue(inPlace.isAllowed(nowNs));
        read(inPlace, InPlace.SLOW_NS - 1);
        assertTrue(inPlace.isAllowed(nowNs));
        read(inPlace, InPlace.SLOW_NS);
        assertFalse(inPlace.isAllowed(nowNs));
        nowNs += InPlace.HANDED_OVER_NS - 1;
        assertFalse(inPlace.isAllowed(nowNs));
        nowNs++;
        assertTrue(inPlace.isAllowed(nowNs), "it is tried again");
        read(inPlace, InPlace.SLOW_NS);
        assertFalse(inPlace.isAllowed(nowNs), "and given up at once");
    }

    public void readsRunInPlaceUnlessCallsAreLimited() throws Exception {
        assertTrue(readsDoneAtOnce(0) > 0, "none of 1,000 reads ran in place");
        assertTrue(readsDoneAtOnce(2) < 1_000, "the limit on calls is not kept");
    }

    /** How many of 1,000 reads were over when the call returned. One that was handed over may be too, if this thread was held up. */
    private static int readsDoneAtOnce(int poolSize) throws Exception {
        Path directory = Caches.newDirectory();
        try (DefaultCacheManager manager = Caches.open(directory, store -> store.poolSize(poolSize))) {
            Cache<String, String> cache = manager.getCache(Caches.NAME);
            cache.put("ash", "Fraxinus");
            NonBlockingStore<String, String> store = TestingUtil.getFirstStore(cache);
            int segment = TestingUtil.extractComponent(cache, KeyPartitioner.class).getSegment("ash");
            int atOnce = 0;
            for (int i = 0; i < 1_000; i++) {
                CompletableFuture<?> read = store.load(segment, "ash").toCompletableFuture();
                if (read.isDone()) atOnce++;
                assertNotNull(read.join());
            }
            return atOnce;
        } finally {
            Caches.remove(directory);
        }
    }
}
