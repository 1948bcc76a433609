import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.config.TopicBuilder;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * Spring Kafka: a listener with retry topics and a dead letter topic, whose answers another listener reads.
 *
 * {@code Program BOOTSTRAP PREFIX} creates topics of that prefix.
 */
public class Program {
    static final int COUNT = 12;
    static final int ATTEMPTS = 3;
    static final long LIMIT_S = 90;
    static final Map<String, Integer> TRIES = new ConcurrentHashMap<>();
    static final Map<String, String> BILLS = new ConcurrentHashMap<>();
    static final Map<String, String> DEAD = new ConcurrentHashMap<>();
    static final CountDownLatch LEFT = new CountDownLatch(COUNT);
    static String bootstrap;

    @Configuration
    @EnableKafka
    @EnableKafkaRetryTopic
    public static class Application {
        @Bean
        public KafkaAdmin admin() {
            return new KafkaAdmin(Map.of("bootstrap.servers", bootstrap));
        }

        @Bean
        public NewTopic orders() {
            return TopicBuilder.name(System.getProperty("prefix") + "-orders").partitions(2).replicas(1).build();
        }

        @Bean
        public NewTopic bills() {
            return TopicBuilder.name(System.getProperty("prefix") + "-bills").partitions(1).replicas(1).build();
        }

        @Bean
        public ProducerFactory<String, String> producers() {
            return new DefaultKafkaProducerFactory<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
        }

        @Bean
        public KafkaTemplate<String, String> template(ProducerFactory<String, String> producers) {
            return new KafkaTemplate<>(producers);
        }

        @Bean
        public ConsumerFactory<String, String> consumers() {
            return new DefaultKafkaConsumerFactory<>(
                Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest"),
                new StringDeserializer(), new StringDeserializer());
        }

        @Bean
        public ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory(
            ConsumerFactory<String, String> consumers, KafkaTemplate<String, String> template) {
            var factory = new ConcurrentKafkaListenerContainerFactory<String, String>();
            factory.setConsumerFactory(consumers);
            factory.setReplyTemplate(template);
            factory.setConcurrency(2);
            return factory;
        }

        @Bean
        public TaskScheduler scheduler() {
            return new ThreadPoolTaskScheduler();
        }

        @Bean
        public Biller biller() {
            return new Biller();
        }
    }

    /** Every third order fails once, and order 7 always. */
    public static class Biller {
        @RetryableTopic(attempts = "" + ATTEMPTS, backOff = @BackOff(delay = 200), kafkaTemplate = "template",
            numPartitions = "2", replicationFactor = "1", listenerContainerFactory = "kafkaListenerContainerFactory")
        @KafkaListener(topics = "${prefix}-orders", groupId = "${prefix}-billers")
        @SendTo("${prefix}-bills")
        public String bill(String order) {
            int number = Integer.parseInt(order);
            int tries = TRIES.merge(order, 1, Integer::sum);
            if (number == 7 || number % 3 == 0 && tries == 1) {
                throw new IllegalStateException("order " + order + " cannot be billed now");
            }
            return "bill of " + order;
        }

        @DltHandler
        public void bury(String order) {
            DEAD.put(order, order);
            LEFT.countDown();
        }

        @KafkaListener(topics = "${prefix}-bills", groupId = "${prefix}-readers")
        public void read(String bill) {
            BILLS.put(bill, bill);
            LEFT.countDown();
        }
    }

    static void expect(Object found, Object wanted) {
        if (!found.equals(wanted)) {
            throw new IllegalStateException("found " + found + ", wanted " + wanted);
        }
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        System.setProperty("prefix", arguments[1]);
        try (var context = new AnnotationConfigApplicationContext(Application.class)) {
            @SuppressWarnings("unchecked")
            KafkaTemplate<String, String> template = context.getBean("template", KafkaTemplate.class);
            for (int number = 0; number < COUNT; number++) {
                template.send(arguments[1] + "-orders", "" + number, "" + number).get();
            }
            if (!LEFT.await(LIMIT_S, TimeUnit.SECONDS)) {
                throw new IllegalStateException("tries " + TRIES + ", bills " + BILLS + ", dead " + DEAD);
            }
        }
        expect(List.copyOf(DEAD.keySet()), List.of("7"));
        expect(BILLS.size(), COUNT - 1);
        for (int number = 0; number < COUNT; number++) {
            expect(TRIES.get("" + number), number == 7 ? ATTEMPTS : number % 3 == 0 ? 2 : 1);
        }
        System.out.println("ok");
        System.exit(0);
    }
}
