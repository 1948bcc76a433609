"""Tests of what takes half an hour, or a week: the broker's time is advanced."""

# -- snippet time --
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

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


def test_a_worker_that_hangs_loses_its_place() -> None:
    with running_broker(virtual_time=True) as broker:
        broker.create_topic("tasks")
        worker = KafkaConsumer("tasks", bootstrap_servers=broker.bootstrap, group_id="workers", client_id="worker-1")
        worker.poll(5_000, max_records=1)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)

        broker.advance("30m")  # it is connected: it counts as having just spoken
        assert len(admin.describe_groups(["workers"])["workers"]["members"]) == 1

        broker.advance("1m", silent=["worker-1"])  # session.timeout.ms is less
        assert admin.describe_groups(["workers"])["workers"]["members"] == []
        admin.close()
        worker.close(autocommit=False)


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
