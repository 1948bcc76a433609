import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A transactional producer of the Java client: JSON lines as {@code tests/interop/drivers/transactor_lines.py} says. */
public class Transactor {
    private static final int BATCH = 25;
    private static final int LIMIT_S = 300;
    private static final int TIMEOUT_S = 20;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String bootstrap;
    private final String transactionalId;
    private KafkaProducer<String, String> producer;

    Transactor(String bootstrap, String transactionalId) {
        this.bootstrap = bootstrap;
        this.transactionalId = transactionalId;
    }

    public static void main(String[] arguments) throws Exception {
        Transactor transactor = new Transactor(arguments[0], arguments[1]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("result", JSON.valueToTree(transactor.run(JSON.readTree(line))));
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                answer.putObject("error").put("code", Errors.forException(cause).code()).put("text", cause.toString());
            }
            System.out.println(answer);
            System.out.flush();
        }
        System.exit(0);
    }

    private Object run(JsonNode request) throws Exception {
        switch (request.get("do").asText()) {
            case "begin":
                begin();
                return null;
            case "send":
                List<String> values = new ArrayList<>();
                request.get("values").forEach(each -> values.add(each.asText()));
                send(request.get("topic").asText(), values);
                return null;
            case "end":
                end(request.get("commit").asBoolean());
                return null;
            case "transform":
                return transform(request.get("group").asText(), request.get("source").asText(), request.get("target").asText(), request.get("end").asLong());
            default:
                throw new IllegalArgumentException(request.get("do").asText());
        }
    }

    private void begin() {
        takeId();
        producer.beginTransaction();
    }

    /** Take the transactional id; what was open under it is then aborted. */
    private void takeId() {
        if (producer == null) {
            KafkaProducer<String, String> made = new KafkaProducer<>(
                Map.of(
                    "bootstrap.servers", bootstrap,
                    "transactional.id", transactionalId,
                    "max.block.ms", TIMEOUT_S * 1000,
                    "reconnect.backoff.max.ms", 500),
                new StringSerializer(),
                new StringSerializer());
            try {
                made.initTransactions();
            } catch (RuntimeException error) {
                made.close(Duration.ZERO);
                throw error;
            }
            producer = made;
        }
    }

    private void send(String topic, List<String> values) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String value : values) {
            sent.add(producer.send(new ProducerRecord<>(topic, 0, null, value)));
        }
        producer.flush();
        for (Future<RecordMetadata> each : sent) {
            each.get(TIMEOUT_S, TimeUnit.SECONDS);
        }
    }

    private void end(boolean isCommit) {
        if (isCommit) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    private int transform(String group, String source, String target, long end) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", group,
            "enable.auto.commit", false,
            "max.poll.records", BATCH,
            "auto.offset.reset", "earliest",
            "isolation.level", "read_committed",
            "reconnect.backoff.max.ms", 500);
        int transactions = 0;
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            TopicPartition partition = new TopicPartition(source, 0);
            consumer.assign(List.of(partition));
            while (System.nanoTime() < deadline) {
                try {
                    if (transformSome(consumer, group, partition, target, end) >= end) {
                        return transactions;
                    }
                    transactions++;
                } catch (Exception error) {
                    System.err.println(error);
                    giveUp();
                }
            }
        }
        throw new IllegalStateException(transactions + " transactions in time");
    }

    private long transformSome(KafkaConsumer<String, String> consumer, String group, TopicPartition partition, String target, long end) throws Exception {
        // First: as long as another's transaction is open, where the group stands is not known.
        takeId();
        OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
        long position = committed == null ? 0 : committed.offset();
        if (position >= end) {
            return position;
        }
        consumer.seek(partition, position);
        List<ConsumerRecord<String, String>> found = consumer.poll(Duration.ofSeconds(5)).records(partition);
        if (found.isEmpty()) {
            throw new IllegalStateException("nothing was read");
        }
        begin();
        send(target, found.stream().map(each -> each.value() + "!").toList());
        OffsetAndMetadata next = new OffsetAndMetadata(found.get(found.size() - 1).offset() + 1);
        producer.sendOffsetsToTransaction(Map.of(partition, next), new ConsumerGroupMetadata(group));
        end(true);
        return position;
    }

    /** Abort, or begin anew where that is not possible: the transactional id stays. */
    private void giveUp() {
        if (producer == null) {
            return;
        }
        try {
            producer.abortTransaction();
        } catch (RuntimeException error) {
            System.err.println(error);
            producer.close(Duration.ZERO);
            producer = null;
        }
    }
}
