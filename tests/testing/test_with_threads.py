"""A test with threads: kafka-python, whose client blocks."""

# -- snippet threads --
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

from odradek.testing.running_broker import RunningBroker


def test_what_is_produced_is_consumed(odradek_broker: RunningBroker) -> None:
    producer = KafkaProducer(bootstrap_servers=odradek_broker.bootstrap)
    for number in range(10):
        producer.send("with-threads", b"%d" % number, partition=0)
    producer.close()

    consumer = KafkaConsumer(bootstrap_servers=odradek_broker.bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition("with-threads", 0)])
    values = [next(consumer).value for _ in range(10)]
    consumer.close()

    assert values == [b"%d" % number for number in range(10)]


# -- end of the snippet --
