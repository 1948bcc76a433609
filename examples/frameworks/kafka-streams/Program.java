import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams with exactly_once_v2: orders are joined with a table of customers, repartitioned by country, counted.
 *
 * The second run has no files of the first, so its stores come back from their changelog topics.
 * {@code Program BOOTSTRAP PREFIX} creates topics of that prefix.
 */
public class Program {
    static final int COUNT = 60;
    static final Duration LIMIT = Duration.ofSeconds(90);
    static final List<String> COUNTRIES = List.of("at", "cz", "pl");

    static StreamsBuilder topology(String prefix) {
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> customers =
            builder.table(prefix + "-customers", Consumed.with(Serdes.String(), Serdes.String()));
        builder.stream(prefix + "-orders", Consumed.with(Serdes.String(), Serdes.String()))
            .join(customers, (order, country) -> country)
            .map((customer, country) -> KeyValue.pair(country, country))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .count()
            .toStream()
            .mapValues(String::valueOf)
            .to(prefix + "-totals", Produced.with(Serdes.String(), Serdes.String()));
        return builder;
    }

    static Properties settings(String bootstrap, String prefix, Path stateDir) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, prefix + "-app");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.toString());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", 6000); // Streams does not leave its group: the second run waits for this
        return settings;
    }

    static void produce(String bootstrap, String topic, boolean areCustomers) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "linger.ms", 0);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < COUNT; number++) {
                String value = areCustomers ? COUNTRIES.get(number % COUNTRIES.size()) : "an order";
                producer.send(new ProducerRecord<>(topic, "customer " + number, value)).get();
            }
        }
    }

    /** Reads committed totals until each country has the one that is wanted; a total twice is a fault. */
    static void waitForTotals(KafkaConsumer<String, String> reader, Map<String, Integer> totals, int wanted) {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (!COUNTRIES.stream().allMatch(country -> totals.getOrDefault(country, 0) == wanted)) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("totals " + totals + ", wanted " + wanted + " each");
            }
            for (ConsumerRecord<String, String> record : reader.poll(Duration.ofMillis(200))) {
                int total = Integer.parseInt(record.value());
                if (total <= totals.getOrDefault(record.key(), 0) || total > wanted) {
                    throw new IllegalStateException(record.key() + " went from " + totals + " to " + total);
                }
                totals.put(record.key(), total);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String prefix = arguments[1];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            NewTopic customers = new NewTopic(prefix + "-customers", 3, (short) 1);
            NewTopic orders = new NewTopic(prefix + "-orders", 3, (short) 1);
            NewTopic totals = new NewTopic(prefix + "-totals", 1, (short) 1);
            admin.createTopics(List.of(customers, orders, totals)).all().get();
        }
        produce(bootstrap, prefix + "-customers", true);
        Map<String, Object> reading = Map.of("bootstrap.servers", bootstrap, "group.id", prefix + "-readers",
            "auto.offset.reset", "earliest", "isolation.level", "read_committed", "group.protocol", "consumer");
        Map<String, Integer> totals = new HashMap<>();
        try (var reader = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            reader.subscribe(List.of(prefix + "-totals"));
            for (int run = 1; run <= 2; run++) {
                produce(bootstrap, prefix + "-orders", false);
                Path stateDir = Files.createTempDirectory("streams");
                try (var streams = new KafkaStreams(topology(prefix).build(), settings(bootstrap, prefix, stateDir))) {
                    streams.start();
                    waitForTotals(reader, totals, run * COUNT / COUNTRIES.size());
                    streams.close(Duration.ofSeconds(20));
                    streams.cleanUp();
                }
            }
        }
        System.out.println("ok");
    }
}
