"""What tests ask of a broker: topics, the records of a topic, the lag of a group."""

from __future__ import annotations

import threading

import pytest
import trio

from odradek.client import BlockingAdmin, BlockingProducer, OffsetAndMetadata, TopicPartition
from odradek.client.errors import BrokerError
from odradek.testing.running_broker import RunningBroker, running_broker

from ..broker.broker_process import Client, batch_of
from ..broker.test_process import produce


def commit(broker: RunningBroker, group: str, **offsets: int) -> None:
    with BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        of = {TopicPartition(topic, 0): OffsetAndMetadata(offset) for topic, offset in offsets.items()}
        admin.alter_group_offsets(group, of)


@pytest.fixture
def broker(odradek_broker: RunningBroker) -> RunningBroker:
    return odradek_broker


def test_a_topic_is_created_with_partitions_and_configs(broker: RunningBroker) -> None:
    broker.create_topic("made", partitions=3, configs={"cleanup.policy": "compact"})

    with BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        assert len(admin.describe_topic("made").partitions) == 3
    with pytest.raises(BrokerError, match="made"):
        broker.create_topic("made")


def test_records_are_all_that_a_topic_has(broker: RunningBroker) -> None:
    broker.create_topic("read", partitions=2)
    assert broker.records("read") == []
    with Client(broker.bootstrap) as client:
        produce(client, "read", batch_of(b"3", b"4"), partition=1)
        produce(client, "read", batch_of(b"1", b"2"), partition=0)

    found = [(record.partition, record.offset, record.value) for record in broker.records("read")]
    assert found == [(0, 0, b"1"), (0, 1, b"2"), (1, 0, b"3"), (1, 1, b"4")]


def test_records_of_an_aborted_transaction_are_left_out_on_request(broker: RunningBroker) -> None:
    broker.create_topic("settled")
    with BlockingProducer({"bootstrap.servers": broker.bootstrap, "transactional.id": "settler"}) as producer:
        producer.init_transactions()
        for ends in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.send("settled", ends.__name__)
            ends()

    assert [record.value for record in broker.records("settled", read_committed=True)] == [b"commit_transaction"]
    assert len(broker.records("settled")) == 2


def test_a_group_lags_by_what_it_has_not_committed(broker: RunningBroker) -> None:
    broker.create_topic("lagging", partitions=2)
    with Client(broker.bootstrap) as client:
        for partition in (0, 1):
            produce(client, "lagging", batch_of(b"1", b"2", b"3"), partition=partition)
    assert broker.lag("readers") == {}
    commit(broker, "readers", lagging=1)

    assert broker.lag("readers") == {TopicPartition("lagging", 0): 2}
    assert broker.lag("readers", topic="lagging") == {TopicPartition("lagging", 0): 2, TopicPartition("lagging", 1): 3}
    assert broker.lag("readers", topic="made") == dict.fromkeys([TopicPartition("made", n) for n in range(3)], 0)


def test_a_lag_is_waited_for(broker: RunningBroker) -> None:
    broker.create_topic("awaited")
    with Client(broker.bootstrap) as client:
        produce(client, "awaited", batch_of(b"1", b"2", b"3"))

    with pytest.raises(TimeoutError, match=r"group 'waiters' has committed nothing; a lag of 0 was waited for"):
        broker.wait_for_lag(0, group="waiters", timeout_s=0.01)
    commit(broker, "waiters", awaited=1)
    with pytest.raises(TimeoutError, match=r"group 'waiters' lags by awaited-0: 2"):
        broker.wait_for_lag(0, group="waiters", timeout_s=0.01)
    broker.wait_for_lag(2, group="waiters")
    late = threading.Timer(0.05, commit, [broker, "waiters"], {"awaited": 3})
    late.start()
    broker.wait_for_lag(0, group="waiters")
    late.join()


async def test_helpers_may_be_called_in_an_asynchronous_test(broker: RunningBroker) -> None:
    await trio.lowlevel.checkpoint()
    broker.create_topic("from-trio")

    assert broker.records("from-trio") == []


def test_no_fault_meets_a_helper() -> None:
    with running_broker() as broker:
        fault = broker.fail_next("*", "UNKNOWN_SERVER_ERROR", times=100)
        broker.create_topic("orders")

        assert broker.records("orders") == []
        assert fault.met_count == 0
