package io.esker.kafka.wordcount;

import io.esker.kafka.EskerDslStoreSuppliers;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;

/** One instance of the application. It says what it does on its standard output, a line each, and ends on SIGTERM. */
final class Instance {
    private Instance() {}

    static void run(String broker, String application, Path directory, String store) throws InterruptedException {
        AtomicLong processed = new AtomicLong();
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(Words.TOPIC, Consumed.with(Serdes.String(), Serdes.String()))
                .peek((word, one) -> processed.incrementAndGet())
                .groupByKey()
                .count()
                .toStream()
                .to(Words.counts(application), Produced.with(Serdes.String(), Serdes.Long()));

        KafkaStreams streams = new KafkaStreams(builder.build(), settings(broker, application, directory, store));
        Restored restored = new Restored();
        streams.setGlobalStateRestoreListener(restored);
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(60));
            System.out.println("closed after " + processed.get());
            ended.countDown();
        }));
        streams.start();
        while (!ended.await(200, TimeUnit.MILLISECONDS)) {
            System.out.println("processed " + processed.get() + " restored " + restored.records.get()
                    + " restores " + restored.ended.get() + " restore-ms " + restored.millis());
        }
    }

    private static Properties settings(String broker, String application, Path directory, String store) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, switch (store) {
            case "esker" -> EskerDslStoreSuppliers.class;
            case "rocksdb" -> BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class;
            default -> throw new IllegalArgumentException("no store: " + store);
        });
        // There is one broker; and an instance that is killed is noticed soon, and its transactions end.
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 3000);
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 500);
        properties.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 5000);
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        return properties;
    }

    /** Adds up what was restored, and for how long at least one store was being restored. */
    private static final class Restored implements StateRestoreListener {
        private final AtomicLong records = new AtomicLong();
        private final AtomicLong ended = new AtomicLong();
        private int running;
        private long beganNanos;
        private long nanos;

        @Override
        public synchronized void onRestoreStart(TopicPartition partition, String store, long startingOffset, long endingOffset) {
            if (running++ == 0) beganNanos = System.nanoTime();
            System.out.println("restore " + partition + " from " + startingOffset + " to " + endingOffset);
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long batchEndOffset, long restored) {
            records.addAndGet(restored);
        }

        @Override
        public synchronized void onRestoreEnd(TopicPartition partition, String store, long total) {
            ended.incrementAndGet();
            if (--running == 0) nanos += System.nanoTime() - beganNanos;
        }

        @Override
        public synchronized void onRestoreSuspended(TopicPartition partition, String store, long total) {
            if (--running == 0) nanos += System.nanoTime() - beganNanos;
        }

        synchronized long millis() {
            return nanos / 1_000_000;
        }
    }
}
