"""A test whose broker fails: kafka-python tries again, and what was acknowledged outlives a crash."""

# -- snippet faults --
from kafka import KafkaProducer

from odradek.testing.running_broker import RunningBroker


def test_an_order_is_sent_although_the_broker_fails(fresh_odradek_broker: RunningBroker) -> None:
    broker = fresh_odradek_broker
    broker.create_topic("orders")
    fault = broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)

    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    producer.send("orders", b"an order").get(timeout=30)
    producer.close()
    broker.kill()
    broker.start()

    assert fault.met_count == 3
    assert [record.value for record in broker.records("orders")] == [b"an order"]


# -- end of the snippet --
