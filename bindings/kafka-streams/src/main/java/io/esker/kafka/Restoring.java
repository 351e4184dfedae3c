package io.esker.kafka;

import io.esker.WriteBatch;

import java.util.Collection;
import java.util.function.Consumer;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Restores a batch of changelog records as one batch of the store. Batches, and no bulk load: records come in the order in which
 * they were written and not in that of their keys, and a task that moves away in the middle keeps what it has.
 */
final class Restoring {
    private Restoring() {}

    static void batch(TaskStore store, Collection<ConsumerRecord<byte[], byte[]>> records, Consumer<WriteBatch> filler) {
        ConsumerRecord<byte[], byte[]> last = null;
        for (ConsumerRecord<byte[], byte[]> record : records) last = record;
        if (last == null) return;
        store.restore(new TopicPartition(last.topic(), last.partition()), last.offset(), filler);
    }
}
