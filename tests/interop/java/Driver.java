import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Driver of the Java client: JSON lines as {@code tests/interop/drivers/json_lines.py} says. */
public class Driver {
    private static final int LIMIT_S = 20;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String bootstrap;
    private final Admin admin;

    Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver(arguments[0]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("result", JSON.valueToTree(driver.run(JSON.readTree(line))));
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                answer.putObject("error").put("code", Errors.forException(cause).code()).put("text", text(cause));
            }
            say(answer);
        }
        System.exit(0);
    }

    private static String text(Throwable error) {
        return error.getCause() == null ? error.toString() : error + ", because of " + text(error.getCause());
    }

    private static void say(JsonNode answer) {
        System.out.println(answer);
        System.out.flush();
    }

    private Object run(JsonNode request) throws Exception {
        String topic = request.path("topic").asText();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        TopicPartition partition = new TopicPartition(topic, 0);
        switch (request.get("do").asText()) {
            case "produce":
                return produce(topic, request);
            case "consume":
                return consume(partition, request);
            case "create_topic":
                Map<String, String> configs = new LinkedHashMap<>();
                request.get("configs").fields().forEachRemaining(each -> configs.put(each.getKey(), each.getValue().asText()));
                NewTopic created = new NewTopic(topic, request.get("partitions").asInt(), (short) 1).configs(configs);
                return get(admin.createTopics(List.of(created)).all());
            case "list_topics":
                return new TreeSet<>(get(admin.listTopics().names()));
            case "describe_topic":
                return get(admin.describeTopics(List.of(topic)).allTopicNames()).get(topic).partitions().size();
            case "delete_topic":
                return get(admin.deleteTopics(List.of(topic)).all());
            case "create_partitions":
                return get(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(request.get("partitions").asInt()))).all());
            case "topic_configs":
                Map<String, String> found = new LinkedHashMap<>();
                for (ConfigEntry entry : get(admin.describeConfigs(List.of(resource)).all()).get(resource).entries()) {
                    found.put(entry.name(), entry.value());
                }
                return found;
            case "set_topic_config":
                ConfigEntry entry = new ConfigEntry(request.get("key").asText(), request.get("value").asText());
                return get(admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)))).all());
            case "offsets":
                return get(admin.listOffsets(Map.of(partition, spec(request.get("at")))).all()).get(partition).offset();
            case "delete_records":
                RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("before").asLong());
                return get(admin.deleteRecords(Map.of(partition, before)).lowWatermarks().get(partition)).lowWatermark();
            case "describe_cluster":
                DescribeClusterResult cluster = admin.describeCluster();
                List<Integer> ids = get(cluster.nodes()).stream().map(Node::id).toList();
                return Map.of("brokers", ids, "controller", get(cluster.controller()).id());
            default:
                throw new IllegalArgumentException(request.get("do").asText());
        }
    }

    private static <T> T get(Future<T> future) throws Exception {
        return future.get(LIMIT_S, TimeUnit.SECONDS);
    }

    private static OffsetSpec spec(JsonNode at) {
        if (at.isNumber()) {
            return OffsetSpec.forTimestamp(at.asLong());
        }
        return switch (at.asText()) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            default -> OffsetSpec.maxTimestamp();
        };
    }

    private List<Long> produce(String topic, JsonNode request) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "compression.type", request.get("compression").asText(),
            "acks", request.get("acks").asText(),
            "enable.idempotence", request.get("idempotent").asBoolean(),
            "max.request.size", request.get("max_request_bytes").asInt(),
            "linger.ms", 5);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (JsonNode each : request.get("records")) {
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                    topic, 0, each.get("timestamp").asLong(), toBytes(each.get("key")), toBytes(each.get("value")));
                for (JsonNode header : each.get("headers")) {
                    record.headers().add(header.get(0).asText(), toBytes(header.get(1)));
                }
                sent.add(producer.send(record));
            }
            producer.flush();
            List<Long> offsets = new ArrayList<>();
            for (Future<RecordMetadata> future : sent) {
                RecordMetadata metadata = get(future);
                offsets.add(metadata.hasOffset() ? metadata.offset() : null);
            }
            return offsets;
        }
    }

    private ArrayNode consume(TopicPartition partition, JsonNode request) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "enable.auto.commit", false,
            "auto.offset.reset", request.get("position").path("reset").asText("none"),
            "isolation.level", request.get("isolation").asText());
        int count = request.get("count").asInt();
        ArrayNode records = JSON.createArrayNode();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            takePosition(consumer, partition, request.get("position"));
            while (records.size() < count) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(records.size() + " of " + count + " records in time");
                }
                for (ConsumerRecord<byte[], byte[]> found : consumer.poll(Duration.ofMillis(100))) {
                    records.add(toJson(found));
                }
            }
        }
        return records;
    }

    private static void takePosition(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, JsonNode position) {
        if (position.has("offset")) {
            consumer.seek(partition, position.get("offset").asLong());
        } else if (position.has("timestamp")) {
            consumer.seek(partition, consumer.offsetsForTimes(Map.of(partition, position.get("timestamp").asLong())).get(partition).offset());
        } else if (position.asText().equals("beginning")) {
            consumer.seekToBeginning(List.of(partition));
        } else {
            consumer.seekToEnd(List.of(partition));
            consumer.position(partition);
            say(JSON.createObjectNode().put("event", "positioned"));
        }
    }

    private static ObjectNode toJson(ConsumerRecord<byte[], byte[]> found) {
        ObjectNode record = JSON.createObjectNode().put("offset", found.offset()).put("timestamp", found.timestamp());
        record.put("key", toText(found.key())).put("value", toText(found.value()));
        ArrayNode headers = record.putArray("headers");
        for (Header header : found.headers()) {
            headers.addArray().add(header.key()).add(toText(header.value()));
        }
        return record;
    }

    private static byte[] toBytes(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static String toText(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }
}
