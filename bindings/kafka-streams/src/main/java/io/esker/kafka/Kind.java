package io.esker.kafka;

import io.esker.CloseableIterator;
import io.esker.Entry;
import io.esker.Esker;

import java.nio.ByteBuffer;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** What a store keeps, by which its keyspaces and keys are made. */
enum Kind {
    VALUES, VERSIONS, WINDOWS, SESSIONS;

    /** How a store notes it. */
    String noted() {
        return name().toLowerCase(Locale.ROOT);
    }

    /**
     * What a store may keep that has noted nothing, as of before that was done: all kinds that its keyspaces and keys do not
     * contradict. Those with segments alone are told apart by keys, whose time has to be one of their segment.
     *
     * @param intervalMs how much time a segment of it holds, 0 where that is not known
     */
    static Set<Kind> possible(Esker esker, long intervalMs) {
        List<String> keyspaces = esker.keyspaces();
        if (keyspaces.stream().anyMatch(name -> name.startsWith("latest."))) return EnumSet.of(VERSIONS);
        if (keyspaces.stream().anyMatch(name -> name.startsWith("values."))) return EnumSet.of(VALUES);
        Set<Kind> possible = EnumSet.allOf(Kind.class);
        if (keyspaces.stream().allMatch(Commits::isReserved)) return possible;
        possible.remove(VALUES);
        if (intervalMs == 0) return possible;
        for (String keyspace : keyspaces) {
            Long id = Segments.idOf(keyspace);
            if (id != null) narrow(possible, esker, keyspace, id, intervalMs);
        }
        return possible;
    }

    /** Leaves of several kinds those that have a segment's keys. A key that is of none says nothing, and neither does one of all. */
    private static void narrow(Set<Kind> possible, Esker esker, String keyspace, long id, long intervalMs) {
        try (CloseableIterator<Entry> entries = esker.keyspace(keyspace).entries().iterator()) {
            while (possible.size() > 1 && entries.hasNext()) {
                Entry entry = entries.next();
                Set<Kind> has = EnumSet.copyOf(possible);
                has.removeIf(kind -> !kind.has(entry.key(), entry.value(), id, intervalMs));
                if (!has.isEmpty()) possible.retainAll(has);
            }
        }
    }

    /** Whether an entry may be one of this kind in the segment of that number. */
    private boolean has(byte[] key, byte[] value, long id, long intervalMs) {
        return switch (this) {
            case VALUES -> false;
            case VERSIONS -> key.length >= History.ADDED_KEY_BYTES
                    && ByteBuffer.wrap(key).getInt() == key.length - History.ADDED_KEY_BYTES
                    && isIn(value, 0, id, intervalMs);
            case WINDOWS -> isIn(key, key.length - Keys.WINDOW_SUFFIX_BYTES, id, intervalMs);
            case SESSIONS -> isIn(key, key.length - 2 * Long.BYTES, id, intervalMs);
        };
    }

    private static boolean isIn(byte[] bytes, int at, long id, long intervalMs) {
        return at >= 0 && at + Long.BYTES <= bytes.length && ByteBuffer.wrap(bytes).getLong(at) / intervalMs == id;
    }
}
