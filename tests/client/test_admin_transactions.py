"""The admin client's calls about transactions, against a broker, through the blocking facade."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.client import BlockingAdmin, BlockingProducer, BrokerError, NewTopic, TopicPartition
from odradek.kernel.errors import ErrorCode
from odradek.testing.running_broker import RunningBroker, running_broker

HERE = TopicPartition("here", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        with BlockingAdmin({"bootstrap.servers": running.bootstrap}) as admin:
            admin.create_topic(NewTopic("here", 1))
        yield running


def test_a_transaction_is_listed_described_and_taken_over(broker: RunningBroker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap}
    with BlockingAdmin(settings) as admin, BlockingProducer({**settings, "transactional.id": "one"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("here", "value")
        (listed,) = admin.list_transactions(states=["Ongoing"], pattern="o.e", longer_than_ms=0)

        assert (listed.transactional_id, listed.state) == ("one", "Ongoing")
        assert admin.list_transactions(producer_ids=[listed.producer_id]) == [listed]
        described = admin.describe_transaction("one")

        assert (listed.producer_id, "Ongoing", (HERE,)) == (
            described.producer_id,
            described.state,
            described.partitions,
        )
        assert described.start_timestamp is not None
        admin.fence_producer("one")
        after = admin.describe_transaction("one")

        assert (after.state, after.partitions, after.start_timestamp) == ("Empty", (), None)
        assert after.producer_epoch > described.producer_epoch


def test_what_cannot_be_is_told(broker: RunningBroker) -> None:
    with BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        with pytest.raises(BrokerError) as unknown:
            admin.describe_transaction("nobody")
        with pytest.raises(BrokerError) as wrong:
            admin.list_transactions(pattern="(")
        with pytest.raises(BrokerError) as nowhere:
            admin.abort_transaction(TopicPartition("here", 9), producer_id=1, producer_epoch=0, coordinator_epoch=0)
        admin.abort_transaction(HERE, producer_id=77, producer_epoch=3, coordinator_epoch=5)
        with pytest.raises(BrokerError) as late:
            admin.abort_transaction(HERE, producer_id=77, producer_epoch=3, coordinator_epoch=4)

    assert [caught.value.code for caught in (unknown, wrong, nowhere, late)] == [
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ]
