"""A test whose broker fails: kafka-python tries again, and finds its broker again after a crash."""

import pytest

# -- snippet faults --
from kafka import KafkaProducer

from odradek.kernel.testing.running_broker import RunningBroker


def test_the_producer_tries_again(fresh_odradek_broker: RunningBroker) -> None:
    broker = fresh_odradek_broker
    broker.create_topic("orders")
    fault = broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

    producer.send("orders", b"first").get(timeout=30)
    broker.kill()
    broker.start()
    producer.send("orders", b"second").get(timeout=30)
    producer.close()

    assert fault.met_count == 3
    assert [record.value for record in broker.records("orders")] == [b"first", b"second"]


# -- end of the snippet --

pytestmark = [
    pytest.mark.usefixtures("refused_sockets_are_collected"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
