package io.esker.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.assertFalse;
import static org.testng.Assert.assertTrue;

import io.esker.Esker;
import io.esker.Options;
import java.nio.file.Path;
import org.testng.annotations.Test;

/** How many entries there are, where a write fails while somebody counts. */
@Test(singleThreaded = true)
public class SegmentCountsTest {
    /** The count that ended behind the failure was taken for right, though the write that failed may be there. */
    public void aWriteThatFailsBesideACountMakesItCountAgain() throws Exception {
        Path directory = Caches.newDirectory();
        try (Esker esker = Esker.open(directory, new Options())) {
            SegmentCounts counts = SegmentCounts.take(esker, 2, false);
            counts.startCounting();
            counts.add(0, 5);
            counts.forget();
            counts.counted();
            assertFalse(counts.isKnown());
            counts.leave(esker);
            assertFalse(SegmentCounts.take(esker, 2, false).isKnown());

            counts.startCounting();
            counts.add(0, 6);
            counts.counted();
            assertTrue(counts.isKnown());
            counts.leave(esker);
            assertEquals(SegmentCounts.take(esker, 2, false).of(0), 6);
        }
        Caches.remove(directory);
    }
}
