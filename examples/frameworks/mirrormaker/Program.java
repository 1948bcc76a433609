import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.connect.mirror.MirrorMaker;

/**
 * MirrorMaker 2: a topic, its configuration and the offsets of a group are mirrored from one cluster to another.
 *
 * Both are the same broker under two names, so that one is enough. {@code Program BOOTSTRAP PREFIX} creates topics of
 * that prefix.
 */
public class Program {
    static final int COUNT = 50;
    static final long COMMITTED = 20;
    static final Duration LIMIT = Duration.ofSeconds(150);

    static Map<String, String> settings(String bootstrap, String prefix) {
        Map<String, String> settings = new HashMap<>();
        String here = prefix + "-here";
        String there = prefix + "-there";
        settings.put("clusters", here + "," + there);
        settings.put(here + ".bootstrap.servers", bootstrap);
        settings.put(there + ".bootstrap.servers", bootstrap);
        settings.put(here + "->" + there + ".enabled", "true");
        settings.put(there + "->" + here + ".enabled", "false");
        settings.put("topics", prefix + "-orders");
        settings.put("groups", prefix + "-billers");
        settings.put("sync.group.offsets.enabled", "true");
        for (String factor : List.of("replication.factor", "checkpoints.topic.replication.factor",
            "heartbeats.topic.replication.factor", "offset-syncs.topic.replication.factor",
            "offset.storage.replication.factor", "status.storage.replication.factor",
            "config.storage.replication.factor")) {
            settings.put(factor, "1");
        }
        settings.put("exactly.once.source.support", "enabled");
        settings.put("dedicated.mode.enable.internal.rest", "false");
        for (String interval : List.of("emit.checkpoints", "sync.group.offsets", "refresh.topics", "refresh.groups",
            "sync.topic.configs", "sync.topic.acls")) {
            settings.put(interval + ".interval.seconds", "1");
        }
        settings.put("offset.flush.interval.ms", "500");
        return settings;
    }

    static void prepare(Admin admin, String bootstrap, String topic, String group) throws Exception {
        NewTopic wanted = new NewTopic(topic, 1, (short) 1).configs(Map.of("retention.ms", "86400000"));
        admin.createTopics(List.of(wanted)).all().get();
        Map<String, Object> producing = Map.of("bootstrap.servers", bootstrap);
        try (var producer = new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < COUNT; number++) {
                ProducerRecord<String, String> record = new ProducerRecord<>(topic, "key " + number, "order " + number);
                record.headers().add("number", new byte[] {(byte) number});
                producer.send(record).get();
            }
        }
        Map<TopicPartition, OffsetAndMetadata> offsets =
            Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(COMMITTED));
        admin.alterConsumerGroupOffsets(group, offsets).all().get();
    }

    static void checkCopies(String bootstrap, String copy) throws Exception {
        Map<String, Object> reading = Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        Map<String, String> found = new TreeMap<>();
        long end = System.nanoTime() + LIMIT.toNanos();
        try (var reader = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            Set<TopicPartition> partitions = Set.of(new TopicPartition(copy, 0));
            reader.assign(partitions);
            reader.seekToBeginning(partitions);
            while (found.size() < COUNT) {
                if (System.nanoTime() > end) {
                    throw new IllegalStateException(found.size() + " of " + COUNT + " records were mirrored");
                }
                reader.poll(Duration.ofMillis(500)).forEach(record -> found.put(record.key(),
                    record.value() + "/" + record.headers().lastHeader("number").value()[0]));
            }
        }
        for (int number = 0; number < COUNT; number++) {
            if (!("order " + number + "/" + number).equals(found.get("key " + number))) {
                throw new IllegalStateException("mirrored: " + found);
            }
        }
    }

    static void waitForOffsets(Admin admin, String group, TopicPartition copy) throws Exception {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (true) {
            OffsetAndMetadata offset =
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(copy);
            if (offset != null && offset.offset() > 0 && offset.offset() <= COMMITTED) {
                return;
            }
            if (System.nanoTime() > end) {
                throw new IllegalStateException("the group's offset there is " + offset);
            }
            Thread.sleep(200);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String prefix = arguments[1];
        String topic = prefix + "-orders";
        String copy = prefix + "-here." + topic;
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            prepare(admin, bootstrap, topic, prefix + "-billers");
            MirrorMaker mirror = new MirrorMaker(settings(bootstrap, prefix));
            mirror.start();
            checkCopies(bootstrap, copy);
            waitForOffsets(admin, prefix + "-billers", new TopicPartition(copy, 0));
            mirror.stop();
        }
        System.out.println("ok");
        System.exit(0); // Connect's threads would keep the program
    }
}
