package io.esker.kafka;

import io.esker.CloseableIterator;
import io.esker.Entry;
import io.esker.Esker;
import io.esker.Keyspace;
import io.esker.Range;
import io.esker.WriteBatch;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.apache.kafka.streams.state.internals.PositionSerde;

/**
 * What a store knows of its commits, in a keyspace beside its values: offsets by partition, the position, and whether the store is
 * ahead of them.
 */
final class Commits {
    private static final String KEYSPACE = "kafka.commits";
    private static final byte[] POSITION = bytes("position");
    private static final byte[] AHEAD = bytes("ahead");
    private static final byte[] OFFSETS = bytes("offset:");
    private static final byte[] INTERVAL = bytes("segment interval");
    private static final byte[] KIND = bytes("kind");
    private static final byte[] NOTHING = new byte[0];

    private final Keyspace keyspace;
    /** As stored; changed by whoever holds the store's lock. */
    private volatile boolean ahead;

    Commits(Esker esker) {
        keyspace = esker.openOrCreateKeyspace(KEYSPACE);
        ahead = keyspace.contains(AHEAD);
    }

    /** Whether a keyspace holds no values. */
    static boolean isReserved(String keyspace) {
        return keyspace.equals(KEYSPACE) || keyspace.equals("default");
    }

    /** How much time a segment of the store holds, in milliseconds; null where that was never noted. */
    Long intervalMs() {
        byte[] stored = keyspace.get(INTERVAL);
        return stored == null ? null : ByteBuffer.wrap(stored).getLong();
    }

    /** What the store keeps, as {@link Kind#noted}; empty while it is emptied, null where that was never noted. */
    String kind() {
        byte[] stored = keyspace.get(KIND);
        return stored == null ? null : new String(stored, StandardCharsets.UTF_8);
    }

    /** Notes what the store keeps, and the length of its segments, 0 where it has none. */
    void note(Kind kind, long intervalMs) {
        Long noted = intervalMs();
        if (intervalMs != 0 && (noted == null || noted != intervalMs)) {
            keyspace.put(INTERVAL, ByteBuffer.allocate(Long.BYTES).putLong(intervalMs).array());
        }
        if (!kind.noted().equals(kind())) keyspace.put(KIND, bytes(kind.noted()));
    }

    /**
     * Makes the store one whose values count for nothing, before they are dropped: one that is interrupted is ahead, of no offset, and
     * of no kind, so that it is emptied again.
     *
     * @param global whether it is a global store: those know no offset that stands for none
     */
    void forget(Esker esker, boolean global) {
        WriteBatch batch = new WriteBatch();
        try (CloseableIterator<Entry> stored = keyspace.entries(Range.prefix(OFFSETS)).iterator()) {
            while (stored.hasNext()) {
                byte[] key = stored.next().key();
                if (global) {
                    batch.delete(keyspace, key);
                } else {
                    // With no offset at all beside other stores of the task, Kafka would restore those too under exactly-once.
                    batch.put(keyspace, key, ByteBuffer.allocate(Long.BYTES).putLong(OffsetCheckpoint.OFFSET_UNKNOWN).array());
                }
            }
        }
        batch.delete(keyspace, POSITION);
        batch.delete(keyspace, INTERVAL);
        batch.put(keyspace, KIND, NOTHING);
        batch.put(keyspace, AHEAD, NOTHING);
        esker.write(batch);
        ahead = true;
    }

    /** The values are dropped: the store is a new one. */
    void forgotten() {
        keyspace.delete(AHEAD);
        ahead = false;
    }

    /** Whether the store holds writes that came after the offsets. */
    boolean isAhead() {
        return ahead;
    }

    Position position() {
        byte[] stored = keyspace.get(POSITION);
        return stored == null ? Position.emptyPosition() : PositionSerde.deserialize(ByteBuffer.wrap(stored));
    }

    Long offset(TopicPartition partition) {
        byte[] stored = keyspace.get(key(partition));
        return stored == null ? null : ByteBuffer.wrap(stored).getLong();
    }

    /** Adds a commit to a batch. */
    void add(WriteBatch batch, Map<TopicPartition, Long> offsets, Position position) {
        if (offsets.isEmpty()) {
            try (CloseableIterator<Entry> stored = keyspace.entries(Range.prefix(OFFSETS)).iterator()) {
                while (stored.hasNext()) batch.delete(keyspace, stored.next().key());
            }
        }
        offsets.forEach((partition, offset) -> {
            if (offset == null) {
                batch.delete(keyspace, key(partition));
            } else {
                addOffset(batch, partition, offset);
            }
        });
        addPosition(batch, position);
        if (ahead) batch.delete(keyspace, AHEAD);
    }

    /** Adds one offset and the position to a batch. */
    void addOffset(WriteBatch batch, TopicPartition partition, long offset, Position position) {
        addOffset(batch, partition, offset);
        addPosition(batch, position);
    }

    /** Adds the mark that the store is ahead, unless it is there. */
    void addAhead(WriteBatch batch) {
        if (!ahead) batch.put(keyspace, AHEAD, NOTHING);
    }

    /** A batch with a commit or with a mark was written. */
    void written(boolean ahead) {
        this.ahead = ahead;
    }

    private void addOffset(WriteBatch batch, TopicPartition partition, long offset) {
        batch.put(keyspace, key(partition), ByteBuffer.allocate(Long.BYTES).putLong(offset).array());
    }

    private void addPosition(WriteBatch batch, Position position) {
        ByteBuffer bytes = PositionSerde.serialize(position);
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        batch.put(keyspace, POSITION, copy);
    }

    private static byte[] key(TopicPartition partition) {
        byte[] name = bytes(partition.toString());
        return ByteBuffer.allocate(OFFSETS.length + name.length).put(OFFSETS).put(name).array();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
