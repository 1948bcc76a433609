import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A worker with Kafka's client for Java: entries, failed records and offsets are one transaction. */
public class RetryWorker {
    /** Stands in for work: a value says how often it fails. */
    static String work(String value, int attempt) {
        if (attempt < Integer.parseInt(value)) throw new IllegalStateException("no answer at attempt " + attempt);
        return "done " + value + " attempt " + attempt;
    }

    /** What a failed record is given back as: as it is, with its headers. */
    static ProducerRecord<String, String> givenBack(ConsumerRecord<String, String> record, String retryTopic, String reason) {
        var headers = record.headers().remove("odradek.retry.reason");
        if (!record.topic().equals(retryTopic)) {
            headers.add("odradek.retry.origin", (record.topic() + "/" + record.partition() + "/" + record.offset()).getBytes());
        }
        headers.add("odradek.retry.reason", reason.getBytes());
        return new ProducerRecord<>(retryTopic, record.partition(), record.key(), record.value(), headers);
    }

    public static void main(String[] arguments) {
        String bootstrap = arguments[0], topic = arguments[1], group = arguments[2];
        int count = Integer.parseInt(arguments[3]);
        String retryTopic = topic + "." + group + ".retry";
        Map<String, Object> consumes = Map.of("bootstrap.servers", bootstrap, "group.id", group, "auto.offset.reset", "earliest",
            "enable.auto.commit", false, "isolation.level", "read_committed");
        Map<String, Object> produces = Map.of("bootstrap.servers", bootstrap, "transactional.id", group + "-worker");
        try (var consumer = new KafkaConsumer<>(consumes, new StringDeserializer(), new StringDeserializer());
             var producer = new KafkaProducer<>(produces, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(topic, retryTopic));
            while (count > 0) {
                var records = consumer.poll(Duration.ofSeconds(1));
                if (records.isEmpty()) continue;
                List<String> done = new ArrayList<>();
                Map<TopicPartition, OffsetAndMetadata> offsets = new java.util.HashMap<>();
                producer.beginTransaction();
                for (var record : records) {
                    Header attempts = record.headers().lastHeader("odradek.retry.attempt");
                    int attempt = attempts == null ? 0 : Integer.parseInt(new String(attempts.value()));
                    try {
                        done.add(work(record.value(), attempt));
                    } catch (IllegalStateException error) {
                        producer.send(givenBack(record, retryTopic, error.getMessage()));
                    }
                    offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                done.forEach(System.out::println);
                count -= done.size();
            }
        }
    }
}
