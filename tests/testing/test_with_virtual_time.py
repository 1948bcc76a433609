"""Tests of what takes half an hour, or a week: the broker's time is advanced."""

# -- snippet time --
from kafka import KafkaConsumer, KafkaProducer

from odradek.testing.running_broker import running_broker


def test_a_transaction_that_nobody_ends_is_aborted() -> None:
    with running_broker(virtual_time=True) as broker:
        broker.create_topic("bills")
        biller = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="biller")
        biller.init_transactions()
        biller.begin_transaction()
        biller.send("bills", b"half a bill").get(timeout=30)
        other = KafkaProducer(bootstrap_servers=broker.bootstrap)
        other.send("bills", b"a bill").get(timeout=30)
        assert broker.records("bills", read_committed=True) == []  # what is open holds back what follows

        broker.advance("2m")  # transaction.timeout.ms is a minute

        assert [record.value for record in broker.records("bills", read_committed=True)] == [b"a bill"]
        other.close()
        biller.close(timeout=0)


def test_what_a_worker_does_not_finish_is_another_ones() -> None:
    with running_broker(virtual_time=True) as broker:
        broker.create_topic("tasks")
        one = KafkaConsumer("tasks", bootstrap_servers=broker.bootstrap, group_id="workers", client_id="one")
        one.poll(5_000)  # it has its partition, and from now on it hangs

        broker.advance("30m")  # it is connected: it counts as having just spoken, and stays a member
        broker.advance("1m", silent=["one"])  # session.timeout.ms is less: it is a member no longer

        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
        producer.send("tasks", b"a task").get(timeout=30)
        other = KafkaConsumer(
            "tasks", bootstrap_servers=broker.bootstrap, group_id="workers", auto_offset_reset="earliest"
        )
        assert next(other).value == b"a task"
        for client in (one, other, producer):
            client.close()


def test_what_is_a_week_old_is_deleted() -> None:
    with running_broker(virtual_time=True) as broker:
        broker.create_topic("news")
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
        producer.send("news", b"old", timestamp_ms=broker.now_ms()).get(timeout=30)
        broker.advance("8d")  # retention.ms is a week
        producer.send("news", b"new", timestamp_ms=broker.now_ms()).get(timeout=30)
        producer.close()

        assert [record.value for record in broker.records("news")] == [b"new"]


# -- end of the snippet --
