package io.esker.kafka;

import static io.esker.kafka.Fixture.CHANGELOG;
import static io.esker.kafka.Fixture.EXACTLY_ONCE;
import static io.esker.kafka.Fixture.bytes;
import static io.esker.kafka.Fixture.key;
import static io.esker.kafka.Fixture.open;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.esker.Esker;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A name that was one of a store of another kind: all of them have their directories in the same place, and some their segments too. */
class KindTest {
    private static final Duration RETENTION = Duration.ofMinutes(10);
    private static final long NOW = 1_760_000_000_000L;

    @TempDir
    Path directory;

    /** A store of one kind under the name that all have. */
    private enum Kept {
        WINDOWS, SESSIONS, VALUES, VERSIONS;

        StateStore store() {
            return switch (this) {
                case VALUES -> EskerStores.persistentTimestampedKeyValueStore("store").get();
                case VERSIONS -> new EskerVersionedStore("store", RETENTION.toMillis(), RETENTION.toMillis() / 2);
                case WINDOWS -> EskerStores.persistentWindowStore("store", RETENTION, RETENTION, false).get();
                case SESSIONS -> EskerStores.persistentSessionStore("store", RETENTION).get();
            };
        }

        @SuppressWarnings("unchecked") // as the kind says
        void put(StateStore store) {
            switch (this) {
                case VALUES -> ((KeyValueStore<Bytes, byte[]>) store).put(key("a"), bytes("12345678value"));
                case VERSIONS -> {
                    ((EskerVersionedStore) store).put(key("a"), bytes("one"), 1000);
                    ((EskerVersionedStore) store).put(key("a"), bytes("two"), 1001);
                }
                case WINDOWS -> ((WindowStore<Bytes, byte[]>) store).put(key("a"), bytes("value"), 0);
                case SESSIONS -> ((SessionStore<Bytes, byte[]>) store).put(new Windowed<>(key("a"), new SessionWindow(0, 1)), bytes("value"));
            }
        }
    }

    private void make(Kept kept) {
        StateStore store = open(kept.store(), directory, EXACTLY_ONCE);
        kept.put(store);
        store.commit(Map.of(CHANGELOG, 41L));
        store.close();
    }

    private Long offsetOf(Kept kept) {
        StateStore store = open(kept.store(), directory, EXACTLY_ONCE);
        try {
            return store.committedOffset(CHANGELOG);
        } finally {
            store.close();
        }
    }

    /** The keyspaces that hold something. */
    private List<String> keyspaces() {
        try (Esker store = Esker.open(own())) {
            return store.keyspaces().stream()
                    .filter(name -> !Commits.isReserved(name) && store.keyspace(name).entries().iterator().hasNext()).toList();
        }
    }

    /** It was taken for up to date, and read as empty, or as what it never held. */
    @Test
    void aStoreOfAnotherKindIsEmptiedAndRestored() {
        for (Kept before : Kept.values()) {
            for (Kept after : Kept.values()) {
                make(before);
                if (before == after) {
                    assertEquals(41L, offsetOf(after), before.toString());
                    assertNotEquals(List.of(), keyspaces(), before.toString());
                } else {
                    assertEquals(-4L, offsetOf(after), before + " as " + after + ": of no offset, so that it is restored");
                    assertEquals(List.of(), keyspaces(), before + " as " + after);
                    make(after);
                    assertEquals(41L, offsetOf(after), before + " as " + after + ": it is one of its own kind from then on");
                }
            }
        }
    }

    /** Directories of before kinds were noted. */
    @Test
    void withoutANotedKindKeyspacesAndKeysTell() {
        for (Kept kept : Kept.values()) {
            for (Kept after : Kept.values()) {
                make(kept);
                forgetKind();
                assertEquals(kept == after ? 41L : -4L, offsetOf(after), kept + " as " + after);
                assertEquals(kept == after, !keyspaces().isEmpty(), kept + " as " + after);
                make(after);
                assertEquals(41L, offsetOf(after), kept + " as " + after);
                make(kept);
            }
        }
    }

    /** Without a changelog nothing would give back what is emptied. */
    @Test
    void aStoreOfBeforeThatHasNoChangelogKeepsWhatItHolds() {
        for (Kept kept : Kept.values()) {
            StateStore store = open(kept.store(), directory, Map.of());
            kept.put(store);
            store.commit(Map.of());
            store.close();
            forgetKind();
            List<String> before = keyspaces();
            assertNotEquals(List.of(), before, kept.toString());
            open(kept.store(), directory, Map.of()).close();
            assertEquals(before, keyspaces(), kept.toString());
            empty();
        }
    }

    /** Where a key ends like the first half of a time, or a session's end like that of its start, the time may be at both places. */
    @Test
    void aKeyThatMayBeOfEitherKindDoesNotTell() {
        byte[] half = ByteBuffer.allocate(4).putInt((int) (NOW >>> 32)).array();
        long twice = (NOW >>> 32) * ((1L << 32) + 1);
        Bytes either = Bytes.wrap(half);
        for (Kept kept : List.of(Kept.WINDOWS, Kept.SESSIONS)) {
            Kept other = kept == Kept.WINDOWS ? Kept.SESSIONS : Kept.WINDOWS;
            for (Kept after : List.of(kept, other)) {
                empty();
                StateStore store = open(kept.store(), directory, EXACTLY_ONCE);
                if (store instanceof WindowStore<?, ?>) {
                    windows(store).put(either, bytes("value"), twice);
                } else {
                    sessions(store).put(new Windowed<>(either, new SessionWindow((NOW >>> 32) << 32, twice)), bytes("value"));
                }
                store.commit(Map.of(CHANGELOG, 41L));
                store.close();
                forgetKind();
                assertEquals(41L, offsetOf(after), kept + " as " + after + ": it does not tell");
                forgetKind();
                store = open(kept.store(), directory, EXACTLY_ONCE);
                if (store instanceof WindowStore<?, ?>) {
                    windows(store).put(key("other key"), bytes("value"), twice);
                } else {
                    sessions(store).put(new Windowed<>(key("other key"), new SessionWindow(twice - 9, twice + 1)), bytes("value"));
                }
                store.commit(Map.of(CHANGELOG, 42L));
                store.close();
                forgetKind();
                assertEquals(kept == after ? 42L : -4L, offsetOf(after), kept + " as " + after);
            }
        }
    }

    @Test
    void oneThatHoldsNothingIsKept() {
        for (Kept kept : Kept.values()) {
            empty();
            StateStore store = open(kept.store(), directory, EXACTLY_ONCE);
            store.commit(Map.of(CHANGELOG, 41L));
            store.close();
            forgetKind();
            assertEquals(41L, offsetOf(kept), kept.toString());
        }
        empty();
        make(Kept.WINDOWS);
        try (Esker store = Esker.open(own())) {
            for (String name : store.keyspaces()) {
                if (!name.startsWith("segment.")) continue;
                store.keyspace(name).entries().forEach(entry -> store.keyspace(name).delete(entry.key()));
            }
        }
        forgetKind();
        assertEquals(41L, offsetOf(Kept.WINDOWS));
    }

    /** A versioned store to which only deletions came has a history and nothing else. */
    @Test
    void aHistoryAloneIsOfVersions() {
        for (Kept after : List.of(Kept.VERSIONS, Kept.WINDOWS, Kept.SESSIONS)) {
            empty();
            EskerVersionedStore store = open((EskerVersionedStore) Kept.VERSIONS.store(), directory, EXACTLY_ONCE);
            store.put(key("a"), null, NOW);
            store.commit(Map.of(CHANGELOG, 41L));
            store.close();
            try (Esker stored = Esker.open(own())) {
                if (stored.keyspaces().contains("latest.plain")) stored.dropKeyspace("latest.plain");
            }
            forgetKind();
            assertEquals(after == Kept.VERSIONS ? 41L : -4L, offsetOf(after), "as " + after);
        }
    }

    /** What it left beside records that are restored would be there for ever. */
    @Test
    void oneThatWasNotEmptiedToTheEndIsEmptiedAgain() {
        make(Kept.VERSIONS);
        try (Esker store = Esker.open(own())) {
            new Commits(store).forget(store, false);
            store.dropKeyspace("latest.plain");
        }
        StateStore store = open(Kept.VERSIONS.store(), directory, Map.of());
        assertEquals(-4L, store.committedOffset(CHANGELOG));
        store.close();
        assertEquals(List.of(), keyspaces());
    }

    private void forgetKind() {
        try (Esker store = Esker.open(own())) {
            store.keyspace("kafka.commits").delete(bytes("kind"));
        }
    }

    private void empty() {
        if (Files.exists(own())) Esker.destroy(own());
    }

    private Path own() {
        return directory.resolve("esker").resolve("store");
    }

    @SuppressWarnings("unchecked") // as its kind says
    private static WindowStore<Bytes, byte[]> windows(StateStore store) {
        return (WindowStore<Bytes, byte[]>) store;
    }

    @SuppressWarnings("unchecked") // as its kind says
    private static SessionStore<Bytes, byte[]> sessions(StateStore store) {
        return (SessionStore<Bytes, byte[]>) store;
    }
}
