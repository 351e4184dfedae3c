package io.esker.kafka;

import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;

/** What interactive queries need beside the dispatch of Kafka Streams itself. */
final class Queries {
    private Queries() {}

    /** Whether changelog records carry positions, which restoring takes over. */
    static boolean isConsistencyEnabled(StateStoreContext context) {
        return StreamsConfig.InternalConfig.getBoolean(
                context.appConfigs(), StreamsConfig.InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, false);
    }

    /** The answer of a store that knows no queries. */
    static <R> QueryResult<R> unknown(Query<R> query, QueryConfig config, StateStore store, Position position) {
        long start = System.nanoTime();
        synchronized (position) {
            QueryResult<R> result = QueryResult.forUnknownQueryType(query, store);
            if (config.isCollectExecutionInfo()) {
                result.addExecutionInfo("Handled in " + store.getClass() + " in " + (System.nanoTime() - start) + "ns");
            }
            result.setPosition(position.copy());
            return result;
        }
    }
}
