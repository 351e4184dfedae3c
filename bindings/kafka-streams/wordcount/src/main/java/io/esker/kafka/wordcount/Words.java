package io.esker.kafka.wordcount;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The words: what is sent, and what the counts must be then. Both come from one seed. */
final class Words {
    static final String TOPIC = "words";
    private static final long SEED = 20260101;

    private Words() {}

    /** Which word each record is. Small numbers are common, as some words are. */
    private static final class Choice {
        private final SplittableRandom random = new SplittableRandom(SEED);
        private final int words;

        Choice(int words) {
            this.words = words;
        }

        int next() {
            double at = random.nextDouble();
            return (int) (at * at * words);
        }
    }

    private static String word(int number) {
        return "word-" + number;
    }

    static String counts(String application) {
        return application + "-counts";
    }

    /** Makes the topic of words, and sends them. */
    static void produce(String broker, int partitions, int records, int words) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker))) {
            admin.createTopics(List.of(new NewTopic(TOPIC, partitions, (short) 1))).all().get();
        }
        Properties properties = new Properties();
        properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        properties.put(ProducerConfig.LINGER_MS_CONFIG, 20);
        properties.put(ProducerConfig.BATCH_SIZE_CONFIG, 1 << 18);
        AtomicReference<Exception> failed = new AtomicReference<>();
        Choice choice = new Choice(words);
        try (var producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < records && failed.get() == null; i++) {
                producer.send(new ProducerRecord<>(TOPIC, word(choice.next()), "1"), (sent, error) -> {
                    if (error != null) failed.compareAndSet(null, error);
                });
            }
        }
        if (failed.get() != null) throw failed.get();
        System.out.println("produced " + records + " records of " + words + " words");
    }

    /** Reads the committed counts until they are complete, and fails when one is wrong or they do not become complete in time. */
    static void check(String broker, String application, int records, int words, int seconds) {
        long[] expected = new long[words];
        Choice choice = new Choice(words);
        for (int i = 0; i < records; i++) expected[choice.next()]++;

        Properties properties = new Properties();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        properties.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        long[] counted = new long[words];
        long sum = 0;
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        try (var consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new LongDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(counts(application))
                    .forEach(info -> partitions.add(new TopicPartition(info.topic(), info.partition())));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (sum < records && System.nanoTime() < end) {
                for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(200))) {
                    int word = Integer.parseInt(record.key().substring("word-".length()));
                    if (record.value() < counted[word]) throw new IllegalStateException(record.key() + " went back from "
                            + counted[word] + " to " + record.value());
                    sum += record.value() - counted[word];
                    counted[word] = record.value();
                }
            }
            // What comes now is too much.
            for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofSeconds(2))) {
                int word = Integer.parseInt(record.key().substring("word-".length()));
                sum += record.value() - counted[word];
                counted[word] = record.value();
            }
        }
        int wrong = 0;
        for (int i = 0; i < words; i++) {
            if (counted[i] == expected[i]) continue;
            if (wrong++ < 5) System.out.println(word(i) + ": counted " + counted[i] + ", expected " + expected[i]);
        }
        System.out.println("counted " + sum + " of " + records + " records, " + wrong + " of " + words + " words wrong");
        if (wrong > 0 || sum != records) throw new IllegalStateException("the counts are wrong");
    }
}
