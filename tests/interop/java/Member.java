import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A group member of the Java client: options and events as {@code tests/interop/drivers/member_lines.py} says. */
public class Member {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>(Map.of("--protocol", "classic", "--assignor", "range", "--session", "3000"));
        for (int at = 3; at < arguments.length; at += 2) {
            options.put(arguments[at], arguments[at + 1]);
        }
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", "earliest");
        if (options.containsKey("--instance")) {
            settings.put("group.instance.id", options.get("--instance"));
        }
        if (options.get("--protocol").equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            settings.put("partition.assignment.strategy", ASSIGNORS.get(options.get("--assignor")));
            settings.put("session.timeout.ms", options.get("--session"));
            settings.put("heartbeat.interval.ms", 500);
        }
        AtomicBoolean isLeaving = new AtomicBoolean();
        Thread ending = new Thread(() -> {
            try {
                System.in.read();
            } catch (java.io.IOException error) {
                // The end of the input is the sign to leave, however it comes.
            }
            isLeaving.set(true);
        });
        ending.setDaemon(true);
        ending.start();
        boolean isPattern = options.getOrDefault("--subscribe", "topic").equals("pattern");
        Set<String> owned = Set.of();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            if (isPattern) {
                subscribeToPattern(consumer, arguments[2]);
            } else {
                consumer.subscribe(List.of(arguments[2]));
            }
            while (!isLeaving.get()) {
                ConsumerRecords<String, String> polled = consumer.poll(Duration.ofMillis(100));
                Set<String> now = consumer.assignment().stream().map(each -> each.topic() + ":" + each.partition()).collect(Collectors.toCollection(TreeSet::new));
                if (!now.equals(owned)) {
                    owned = now;
                    ObjectNode assigned = JSON.createObjectNode().put("event", "assigned");
                    ArrayNode partitions = assigned.putArray("partitions");
                    if (isPattern) {
                        owned.forEach(partitions::add);
                    } else {
                        consumer.assignment().stream().map(TopicPartition::partition).forEach(partitions::add);
                    }
                    say(assigned);
                }
                if (!polled.isEmpty()) {
                    ObjectNode read = JSON.createObjectNode().put("event", "records");
                    ArrayNode records = read.putArray("records");
                    for (ConsumerRecord<String, String> each : polled) {
                        records.addArray().add(each.partition()).add(each.offset()).add(each.value());
                    }
                    consumer.commitSync();
                    say(read);
                }
            }
        }
        say(JSON.createObjectNode().put("event", "left"));
        System.exit(0);
    }

    /** Subscribe to what the broker finds: a {@code SubscriptionPattern}, which the client of Kafka 3 does not have. */
    private static void subscribeToPattern(KafkaConsumer<String, String> consumer, String pattern) throws ReflectiveOperationException {
        Class<?> type = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
        KafkaConsumer.class.getMethod("subscribe", type).invoke(consumer, type.getConstructor(String.class).newInstance(pattern));
    }

    private static void say(ObjectNode event) {
        System.out.println(event);
        System.out.flush();
    }
}
