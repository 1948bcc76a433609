"""A test of something that reads as a group, here by kafka-python."""

# -- snippet group --
from kafka import KafkaConsumer, KafkaProducer

from odradek.testing.running_broker import RunningBroker


def test_a_worker_goes_on_where_the_last_one_ended(odradek_broker: RunningBroker) -> None:
    producer = KafkaProducer(bootstrap_servers=odradek_broker.bootstrap)
    for number in range(10):
        producer.send("tasks", b"%d" % number, partition=0)
    producer.close()

    done = []
    for count in (4, 6):
        worker = KafkaConsumer(
            "tasks", bootstrap_servers=odradek_broker.bootstrap, group_id="workers", auto_offset_reset="earliest"
        )
        for _ in range(count):
            done.append(next(worker).value)
            worker.commit()
        worker.close()

    assert done == [b"%d" % number for number in range(10)]


# -- end of the snippet --
