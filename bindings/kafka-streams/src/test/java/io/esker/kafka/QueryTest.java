package io.esker.kafka;

import static io.esker.kafka.Fixture.bytes;
import static io.esker.kafka.Fixture.drain;
import static io.esker.kafka.Fixture.key;
import static io.esker.kafka.Fixture.open;
import static io.esker.kafka.Fixture.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.esker.KeyspaceStats;
import io.esker.RunStats;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.Metric;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.query.WindowRangeQuery;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Interactive queries, positions and metrics. */
class QueryTest {
    @TempDir
    Path directory;

    private static <R> R ask(StateStore store, Query<R> query) {
        QueryResult<R> result = store.query(query, PositionBound.unbounded(), new QueryConfig(true));
        assertTrue(result.isSuccess(), () -> result.getFailureMessage());
        assertFalse(result.getExecutionInfo().isEmpty());
        return result.getResult();
    }

    @Test
    void keysAndRangesAreFound() {
        KeyValueStore<Bytes, byte[]> store = Fixture.keyValue(directory, Map.of());
        for (String name : List.of("a", "b", "c")) store.put(key(name), bytes("of " + name));
        assertEquals("of b", text(ask(store, KeyQuery.<Bytes, byte[]>withKey(key("b")))));
        assertEquals(List.of("b=of b", "c=of c"), drain(ask(store, RangeQuery.<Bytes, byte[]>withLowerBound(key("b")))));
        assertEquals(List.of("b=of b", "a=of a"),
                drain(ask(store, RangeQuery.<Bytes, byte[]>withUpperBound(key("b")).withDescendingKeys())));
        assertEquals(List.of("c=of c", "b=of b", "a=of a"), drain(ask(store, RangeQuery.<Bytes, byte[]>withNoBounds().withDescendingKeys())));
        QueryResult<WindowStoreIterator<byte[]>> unknown = store.query(
                WindowKeyQuery.<Bytes, byte[]>withKeyAndWindowStartRange(key("a"), Instant.EPOCH, Instant.EPOCH),
                PositionBound.unbounded(), new QueryConfig(false));
        assertEquals(FailureReason.UNKNOWN_QUERY_TYPE, unknown.getFailureReason());
        store.close();
    }

    @Test
    void windowsAndSessionsAreFound() {
        WindowStore<Bytes, byte[]> windows = open(EskerStores.persistentWindowStore(
                "windows", Duration.ofMinutes(10), Duration.ofMinutes(1), false).get(), directory, Map.of());
        windows.put(key("a"), bytes("one"), 1000);
        windows.put(key("a"), bytes("two"), 2000);
        // In 4.3.1 this query exchanges its two times when it is made, and the typed store on top makes it anew and so turns them back.
        try (WindowStoreIterator<byte[]> found = ask(windows, WindowKeyQuery.<Bytes, byte[]>withKeyAndWindowStartRange(
                key("a"), Instant.ofEpochMilli(5000), Instant.ofEpochMilli(1500)))) {
            KeyValue<Long, byte[]> entry = found.next();
            assertEquals(2000L, entry.key);
            assertFalse(found.hasNext());
        }
        try (KeyValueIterator<Windowed<Bytes>, byte[]> found = ask(windows, WindowRangeQuery.<Bytes, byte[]>withWindowStartRange(
                Instant.ofEpochMilli(0), Instant.ofEpochMilli(1500)))) {
            assertEquals("one", text(found.next().value));
            assertFalse(found.hasNext());
        }
        windows.close();

        SessionStore<Bytes, byte[]> sessions = open(
                EskerStores.persistentSessionStore("sessions", Duration.ofMinutes(10)).get(), directory, Map.of());
        sessions.put(new Windowed<>(key("a"), new SessionWindow(5, 9)), bytes("session"));
        try (KeyValueIterator<Windowed<Bytes>, byte[]> found = ask(sessions, WindowRangeQuery.<Bytes, byte[]>withKey(key("a")))) {
            assertEquals("session", text(found.next().value));
        }
        sessions.close();
    }

    @Test
    void aBoundThatIsNotReachedIsSaidAndPositionsSurvive() {
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, Map.of());
        KeyValueStore<Bytes, byte[]> store = EskerStores.persistentKeyValueStore("store").get();
        store.init(context, store);
        context.setRecordContext(new ProcessorRecordContext(0, 41, 0, "input", new RecordHeaders()));
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(Fixture.CHANGELOG, 1L));
        store.close();

        store = Fixture.keyValue(directory, Map.of());
        assertEquals(Position.emptyPosition().withComponent("input", 0, 41), store.getPosition());
        PositionBound reached = PositionBound.at(Position.emptyPosition().withComponent("input", 0, 41));
        assertTrue(store.query(KeyQuery.<Bytes, byte[]>withKey(key("a")), reached, new QueryConfig(false)).isSuccess());
        PositionBound later = PositionBound.at(Position.emptyPosition().withComponent("input", 0, 42));
        assertEquals(FailureReason.NOT_UP_TO_BOUND,
                store.query(KeyQuery.<Bytes, byte[]>withKey(key("a")), later, new QueryConfig(false)).getFailureReason());
        store.close();
    }

    @Test
    void metricsTellWhatTheStoreTakes() {
        InternalMockProcessorContext<?, ?> context = Fixture.context(directory, Map.of());
        KeyValueStore<Bytes, byte[]> store = EskerStores.persistentKeyValueStore("store").get();
        store.init(context, store);
        assertEquals(0L, metric(context, "esker-disk-bytes"), "nothing was written yet");
        store.put(key("a"), new byte[1000]);
        assertTrue(metric(context, "esker-uncommitted-bytes") > 1000);
        store.commit(Map.of(Fixture.CHANGELOG, 1L));
        assertEquals(0L, metric(context, "esker-uncommitted-bytes"));
        assertTrue(metric(context, "esker-disk-bytes") > 0);
        assertEquals(EskerStreamsConfig.MEMORY_BYTES_DEFAULT, metric(context, "esker-memory-budget-bytes"));
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            assertTrue(all.hasNext());
            assertEquals(1L, metric(context, "esker-open-iterators"));
        }
        assertEquals(0L, metric(context, "esker-open-iterators"));
        assertTrue(store.approximateNumEntries() >= 1);
        store.close();
        assertEquals(0L, metric(context, "esker-disk-bytes"), "a closed store is no error");
    }

    @Test
    void deletesThatAreInTablesAreNotCounted() {
        List<RunStats> runs = List.of(new RunStats(1, 0, 0, 0, 0, 950, 900), new RunStats(1, 0, 0, 0, 0, 1000, 0));
        assertEquals(150 + 7 + 3, Table.approximateEntries(3, new KeyspaceStats("", 1, "", "none", 0, runs, 7, 0)));
        assertEquals(0, Table.approximateEntries(0, new KeyspaceStats("", 1, "", "none", 0, runs.subList(0, 1), 0, 0)));
    }

    private static long metric(InternalMockProcessorContext<?, ?> context, String name) {
        for (Metric metric : context.metrics().metrics().values()) {
            if (metric.metricName().name().equals(name)) return (Long) metric.metricValue();
        }
        throw new AssertionError("no metric " + name);
    }
}
