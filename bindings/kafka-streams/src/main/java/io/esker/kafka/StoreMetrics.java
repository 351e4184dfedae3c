package io.esker.kafka;

import io.esker.Esker;
import io.esker.Stats;

import java.util.function.ToLongFunction;

import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

/**
 * The metrics of a store, among those of Kafka Streams: group {@code stream-state-metrics}, with the tags {@code thread-id},
 * {@code task-id} and {@code <scope>-state-id}. Kafka Streams removes them with the store's others when it closes.
 */
final class StoreMetrics {
    /** Reading the statistics of a store takes some microseconds; gauges that are read together share one reading. */
    private static final long FRESH_NANOS = 1_000_000_000L;

    private final TaskStore store;
    private Stats stats;
    private long statsNanos;

    private StoreMetrics(TaskStore store) {
        this.store = store;
    }

    static void register(StateStoreContext context, TaskStore store, String scope) {
        StreamsMetricsImpl metrics = ProcessorContextUtils.metricsImpl(context);
        StoreMetrics source = new StoreMetrics(store);
        Registry registry = (name, description, gauge) -> metrics.addStoreLevelMutableMetric(
                context.taskId().toString(), scope, store.name(), name, description, Sensor.RecordingLevel.INFO, gauge);
        registry.add("esker-uncommitted-bytes", "Bytes of writes that wait on the heap for the next commit",
                (config, nowMs) -> store.bufferedBytes());
        registry.add("esker-open-iterators", "Iterators of Esker that are open", (config, nowMs) -> (long) store.openIterators());
        registry.add("esker-disk-bytes", "Bytes that the store takes on the disk", source.gauge(Stats::diskBytes));
        registry.add("esker-table-bytes", "Bytes of tables", source.gauge(Stats::tableBytes));
        registry.add("esker-log-bytes", "Bytes of the log", source.gauge(Stats::logBytes));
        registry.add("esker-pinned-bytes", "Bytes of files that only open iterators keep", source.gauge(Stats::pinnedBytes));
        registry.add("esker-memory-used-bytes", "Native memory in use", source.gauge(Stats::memoryUsedBytes));
        registry.add("esker-memory-budget-bytes", "Native memory the store was given", source.gauge(Stats::memoryBudgetBytes));
        registry.add("esker-bytes-written", "Bytes of keys and values written since the store was opened", source.gauge(Stats::bytesWritten));
        registry.add("esker-compaction-bytes-written", "Bytes written by flushes and compactions since the store was opened",
                source.gauge(Stats::compactionBytesWritten));
        registry.add("esker-compactions", "Compactions since the store was opened", source.gauge(Stats::compactions));
        registry.add("esker-write-stall-nanos", "Time for which writes were slowed or stopped since the store was opened",
                source.gauge(Stats::writeStallNanos));
    }

    private interface Registry {
        void add(String name, String description, Gauge<Long> gauge);
    }

    private Gauge<Long> gauge(ToLongFunction<Stats> value) {
        return (config, nowMs) -> {
            Stats now = stats();
            return now == null ? 0L : value.applyAsLong(now);
        };
    }

    private synchronized Stats stats() {
        Esker esker = store.esker();
        if (esker == null) return null;
        if (stats == null || System.nanoTime() - statsNanos > FRESH_NANOS) {
            try {
                stats = esker.stats();
            } catch (RuntimeException e) {
                return null; // closed in between: whoever reads metrics is not told by an error
            }
            statsNanos = System.nanoTime();
        }
        return stats;
    }
}
