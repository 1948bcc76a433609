"""What stands on disk of groups and transactions, read by a reader that knows nothing but Kafka's formats."""

from __future__ import annotations

from pathlib import Path

import trio

from odradek.client import Admin, Consumer, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from odradek.testing.running_broker import running_broker
from tests.waiting import PATIENCE_S

from .naive_log_reader import group_metadata, offset_commit, records_of, transaction_state

T0 = TopicPartition("t", 0)
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "log.message.timestamp.type": "CreateTime"}
EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 0, 1, 2, 4


def internal_records(data_dir: Path, topic: str) -> list[tuple[bytes, bytes | None]]:
    """Return all records of an internal topic, partition by partition."""
    segments = sorted(data_dir.glob(f"**/{topic}-*/*.log"))
    assert segments
    return [record for segment in segments for record in records_of(segment)]


async def live(bootstrap: str) -> None:
    """Be a member that commits, and then a producer with a transaction."""
    address = {"bootstrap.servers": bootstrap}
    group = {"group.id": "g", "group.instance.id": "i", "client.id": "c", "auto.offset.reset": "earliest"}
    async with Admin(address) as admin:
        await admin.create_topic(NewTopic("t", partitions_count=2))
    async with Producer({**address, "transactional.id": "x", "linger.ms": 0}) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send("t", "value", partition=0)
            await producer.send("t", "value", partition=1)
    async with Consumer({**address, **group, "enable.auto.commit": False, "session.timeout.ms": 12_000}) as consumer:
        consumer.subscribe(["t"])
        while len(consumer.assignment) < 2:
            await consumer.poll(timeout_ms=50)
        await consumer.commit({T0: OffsetAndMetadata(1, "so far")})


def test_groups_and_transactions_stand_on_disk_as_kafka_would_have_written_them(tmp_path: Path) -> None:
    with running_broker(SETTINGS, data_dir=tmp_path) as broker:

        async def limited() -> None:
            with trio.fail_after(PATIENCE_S):
                await live(broker.bootstrap)

        trio.run(limited)

    offsets: list[tuple[bytes, bytes]] = []
    groups: list[tuple[bytes, bytes]] = []
    for key, value in internal_records(tmp_path, "__consumer_offsets"):
        assert value is not None
        (offsets if key[:2] == b"\0\1" else groups).append((key, value))
    ((where, committed),) = (offset_commit(key, value) for key, value in offsets)
    assert where == ("g", "t", 0)
    assert (committed["offset"], committed["metadata"]) == (1, "so far")
    generations = [group_metadata(key, value) for key, value in groups]
    assert {group_id for group_id, _ in generations} == {"g"}
    told = generations[-1][1]
    assert (told["protocol_type"], told["generation"], told["protocol"]) == ("consumer", 1, "range")
    (member,) = told["members"]
    assert told["leader"] == member["member_id"]
    assert (member["instance_id"], member["client_id"], member["session_timeout"]) == ("i", "c", 12_000)
    assert member["client_host"] == "/127.0.0.1"
    assert member["assignment"].endswith(b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff")

    states = [transaction_state(key, value or b"") for key, value in internal_records(tmp_path, "__transaction_state")]
    assert {transactional_id for transactional_id, _ in states} == {"x"}
    statuses = [state["status"] for _, state in states]
    assert statuses[0] == EMPTY
    assert statuses[1:] == [ONGOING, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT]
    assert [state["partitions"] for _, state in states][2:] == [{"t": [0, 1]}, {"t": [0, 1]}, {}]
    assert [state["producer_epoch"] for _, state in states] == [0, 0, 0, 1, 1]
    assert len({state["producer_id"] for _, state in states}) == 1
