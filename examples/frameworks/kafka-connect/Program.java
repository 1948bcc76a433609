import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.connect.cli.ConnectDistributed;

/**
 * Kafka Connect, distributed: a file becomes a topic exactly once, the topic a file, what cannot be read a dead letter.
 *
 * The connectors are made over REST, and their state is in topics of the broker. {@code Program BOOTSTRAP PREFIX}
 * creates topics of that prefix.
 */
public class Program {
    static final int COUNT = 40;
    static final Duration LIMIT = Duration.ofSeconds(120);
    static final HttpClient HTTP = HttpClient.newHttpClient();

    static Map<String, String> worker(String bootstrap, String prefix, Path folder) throws Exception {
        Map<String, String> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", prefix + "-workers");
        for (String kind : List.of("config", "offset", "status")) {
            settings.put(kind + ".storage.topic", prefix + "-" + kind);
            settings.put(kind + ".storage.replication.factor", "1");
        }
        settings.put("exactly.once.source.support", "enabled");
        settings.put("key.converter", "org.apache.kafka.connect.storage.StringConverter");
        settings.put("value.converter", "org.apache.kafka.connect.storage.StringConverter");
        settings.put("offset.flush.interval.ms", "500");
        settings.put("listeners", "http://127.0.0.1:0");
        settings.put("plugin.discovery", "only_scan");
        String files = Class.forName("org.apache.kafka.connect.file.FileStreamSourceConnector")
            .getProtectionDomain().getCodeSource().getLocation().getPath();
        settings.put("plugin.path", files);
        return settings;
    }

    static void put(URI rest, String name, String json) throws Exception {
        long end = System.nanoTime() + LIMIT.toNanos();
        HttpRequest request = HttpRequest.newBuilder(rest.resolve("/connectors/" + name + "/config"))
            .header("Content-Type", "application/json").PUT(HttpRequest.BodyPublishers.ofString(json)).build();
        while (true) {
            HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() / 100 == 2) {
                return;
            }
            // Until the worker has joined its group it says 409, or 503.
            if (System.nanoTime() > end) {
                throw new IllegalStateException("REST answers " + answer.statusCode() + ": " + answer.body());
            }
            Thread.sleep(200);
        }
    }

    static List<String> read(String bootstrap, String topic, int wanted) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "group.id", topic + "-readers",
            "auto.offset.reset", "earliest", "isolation.level", "read_committed");
        List<String> values = new ArrayList<>();
        long end = System.nanoTime() + LIMIT.toNanos();
        try (var reader = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            reader.subscribe(List.of(topic));
            while (values.size() < wanted) {
                if (System.nanoTime() > end) {
                    throw new IllegalStateException(topic + " has " + values);
                }
                reader.poll(Duration.ofMillis(500)).forEach(record -> values.add(record.value()));
            }
        }
        return values;
    }

    static void expect(Object found, Object wanted) {
        if (!found.equals(wanted)) {
            throw new IllegalStateException("found " + found + ", wanted " + wanted);
        }
    }

    static void waitForCopy(Path copy, List<String> lines) throws Exception {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (!Files.exists(copy) || Files.readAllLines(copy).size() < lines.size()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("the sink has not written " + copy);
            }
            Thread.sleep(200);
        }
        expect(Files.readAllLines(copy), lines);
    }

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String prefix = arguments[1];
        String topic = prefix + "-orders";
        Path folder = Files.createTempDirectory("connect");
        List<String> lines = IntStream.range(0, COUNT).mapToObj(number -> "{\"order\":" + number + "}").toList();
        Files.write(folder.resolve("in.txt"), lines);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        }
        URI rest = new ConnectDistributed().startConnect(worker(bootstrap, prefix, folder)).rest().serverUrl();
        put(rest, prefix + "-source", """
            {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1",
             "file": "%s/in.txt", "topic": "%s", "exactly.once.support": "required"}""".formatted(folder, topic));
        expect(read(bootstrap, topic, COUNT), lines);

        Map<String, Object> producing = Map.of("bootstrap.servers", bootstrap);
        try (var producer = new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, "not JSON")).get();
        }
        put(rest, prefix + "-sink", """
            {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1",
             "file": "%s/out.txt", "topics": "%s", "errors.tolerance": "all",
             "value.converter": "org.apache.kafka.connect.json.JsonConverter",
             "value.converter.schemas.enable": "false",
             "errors.deadletterqueue.topic.name": "%s-dead",
             "errors.deadletterqueue.topic.replication.factor": "1"}""".formatted(folder, topic, prefix));
        // The converter makes maps of the lines, and the sink writes what a map is as a string.
        List<String> written = lines.stream().map(line -> line.replace("\"", "").replace(":", "=")).toList();
        waitForCopy(folder.resolve("out.txt"), written);
        expect(read(bootstrap, prefix + "-dead", 1), List.of("not JSON"));
        System.out.println("ok");
        System.exit(0); // the worker's threads would keep the program
    }
}
