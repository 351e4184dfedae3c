package io.esker.kafka;

import static io.esker.kafka.Fixture.CHANGELOG;
import static io.esker.kafka.Fixture.EXACTLY_ONCE;
import static io.esker.kafka.Fixture.bytes;
import static io.esker.kafka.Fixture.key;
import static io.esker.kafka.Fixture.open;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.esker.Esker;

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
        try (Esker store = Esker.open(directory.resolve("esker").resolve("store"))) {
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

    /** Directories of before kinds were noted. Windows and sessions of one retention look alike. */
    @Test
    void withoutANotedKindKeyspacesTell() {
        for (Kept kept : Kept.values()) {
            boolean tells = kept == Kept.VALUES || kept == Kept.VERSIONS;
            make(kept);
            forgetKind();
            assertEquals(tells ? 41L : -4L, offsetOf(kept), kept.toString());
            assertEquals(tells, !keyspaces().isEmpty(), kept.toString());
            make(kept);
            assertEquals(41L, offsetOf(kept), kept.toString());
            forgetKind();
            Kept other = kept == Kept.VALUES ? Kept.WINDOWS : Kept.VALUES;
            assertEquals(-4L, offsetOf(other), kept + " as " + other);
        }
    }

    /** What it left beside records that are restored would be there for ever. */
    @Test
    void oneThatWasNotEmptiedToTheEndIsEmptiedAgain() {
        make(Kept.VERSIONS);
        try (Esker store = Esker.open(directory.resolve("esker").resolve("store"))) {
            new Commits(store).forget(store, false);
            store.dropKeyspace("latest.plain");
        }
        StateStore store = open(Kept.VERSIONS.store(), directory, Map.of());
        assertEquals(-4L, store.committedOffset(CHANGELOG));
        store.close();
        assertEquals(List.of(), keyspaces());
    }

    private void forgetKind() {
        try (Esker store = Esker.open(directory.resolve("esker").resolve("store"))) {
            store.keyspace("kafka.commits").delete(bytes("kind"));
        }
    }
}
