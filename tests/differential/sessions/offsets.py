"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..batches import GZIP, T0, batch, record, records
from ..transaction_talk import Producer

if TYPE_CHECKING:
    from ..conversation import Conversation, Fields


def _fields(topic: str, timestamp: int, *, partition: int = 0, replica_id: int = -1, **more: Any) -> Fields:
    asked = {"partition_index": partition, "timestamp": timestamp, **more}
    return {"replica_id": replica_id, "topics": [{"name": topic, "partitions": [asked]}], "timeout_ms": 5000}


def _fill(talk: Conversation, topic: str, codec: int = 0) -> None:
    """Produce offsets 0-2 at T0 + 0, 10, 20; 3-5 at T0 + 100, 90, 80; 6 at T0 + 15; 7-8 both at T0 + 100."""
    three = records(b"a", b"b", b"c", step_ms=10)
    back = [record(offset_delta=i, timestamp_delta=-10 * i) for i in range(3)]
    talk.produce(
        topic,
        batch(three, max_timestamp=T0 + 20, codec=codec),
        batch(back, base_timestamp=T0 + 100, codec=codec),
        batch(base_timestamp=T0 + 15, codec=codec),
        batch(records(b"x", b"y"), base_timestamp=T0 + 100, codec=codec),
    )


def list_offsets(talk: Conversation) -> None:
    """ListOffsets: special timestamps and real ones."""
    topic = talk.create("a")
    empty = talk.create("empty")
    _fill(talk, topic)
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, -100):
        talk.every("ListOffsets", _fields(topic, timestamp), note=f"timestamp {timestamp}")
    for timestamp in (-1, -3, -7, T0):
        talk.every("ListOffsets", _fields(talk.topic("none"), timestamp), note=f"unknown topic, timestamp {timestamp}")
        fields = _fields(topic, timestamp, partition=9, current_leader_epoch=99)
        talk.every("ListOffsets", fields, note=f"partition 9, timestamp {timestamp}")
        fields = _fields(topic, timestamp, current_leader_epoch=99)
        talk.every("ListOffsets", fields, note=f"epoch 99, timestamp {timestamp}")
    for timestamp in (-1, -2, -3, -4, -5, -6, 0, T0):
        talk.every(
            "ListOffsets", _fields(empty, timestamp), note=f"empty log, timestamp {timestamp}", versions=(1, 4, 11)
        )
    for distance in (-1, 0, 1, 10, 11, 15, 20, 21, 79, 80, 81, 90, 100, 101):
        fields = _fields(topic, T0 + distance)
        talk.every("ListOffsets", fields, note=f"timestamp T0 + {distance}", versions=(1, 4, 11))
    for timestamp in (0, 1, 2**63 - 1):
        talk.every("ListOffsets", _fields(topic, timestamp), note=f"timestamp {timestamp}", versions=(1, 11))
    for isolation in (1, 2, -1):
        for timestamp in (-1, -2, -3, T0 + 11):
            fields = {**_fields(topic, timestamp), "isolation_level": isolation}
            talk.every("ListOffsets", fields, note=f"isolation {isolation}, {timestamp - T0}", versions=(2, 11))
    for replica in (-2, 0, 1, 99):
        talk.every(
            "ListOffsets", _fields(topic, -1, replica_id=replica), note=f"replica id {replica}", versions=(1, 11)
        )
    for epoch in (0, 1, 99, -2):
        fields = _fields(topic, -1, current_leader_epoch=epoch)
        talk.every("ListOffsets", fields, note=f"current_leader_epoch {epoch}", versions=(4, 11))


def list_offsets_compressed(talk: Conversation) -> None:
    """ListOffsets looks into compressed batches; LogAppendTime has one timestamp a batch."""
    topic = talk.create("a")
    _fill(talk, topic, codec=GZIP)
    for timestamp in (T0 + 1, T0 + 11, T0 + 80, T0 + 81, T0 + 100, -3):
        talk.ask("ListOffsets", 7, _fields(topic, timestamp), note=f"gzip, {timestamp - T0}")
    stamped = talk.create("stamped", configs={"message.timestamp.type": "LogAppendTime"})
    _fill(talk, stamped)
    for timestamp in (0, T0 + 100):
        talk.ask("ListOffsets", 7, _fields(stamped, timestamp), note=f"LogAppendTime, {timestamp}")
    timeless = talk.create("timeless")
    talk.produce(timeless, batch(base_timestamp=-1), batch(base_timestamp=-1))
    for timestamp in (0, -3, -1):
        talk.ask("ListOffsets", 7, _fields(timeless, timestamp), note=f"records without a time, {timestamp}")


def list_offsets_errors(talk: Conversation) -> None:
    """ListOffsets of what does not exist."""
    topic = talk.create("a", partitions=2)
    for version in (1, 4, 6, 11):
        talk.ask("ListOffsets", version, _fields(talk.topic("none"), -1), note="unknown topic")
        talk.ask("ListOffsets", version, _fields(talk.topic("none"), T0), note="unknown topic, by time")
        for partition in (7, -1):
            talk.ask("ListOffsets", version, _fields(topic, -1, partition=partition), note=f"partition {partition}")
        talk.ask("ListOffsets", version, _fields("", -1), note="empty name")
        talk.ask("ListOffsets", version, _fields("a b", -1), note="bad name")
        twice = [{"partition_index": 0, "timestamp": -1}, {"partition_index": 0, "timestamp": -2}]
        fields = {"replica_id": -1, "topics": [{"name": topic, "partitions": twice}]}
        talk.ask("ListOffsets", version, fields, note="one partition twice")
        talk.ask("ListOffsets", version, {"replica_id": -1, "topics": []}, note="no topics")
        fields = {"replica_id": -1, "topics": [{"name": topic, "partitions": []}]}
        talk.ask("ListOffsets", version, fields, note="no partitions")
        both = [{"partition_index": 1, "timestamp": -1}, {"partition_index": 9, "timestamp": -1}]
        fields = {"replica_id": -1, "topics": [{"name": topic, "partitions": both}]}
        talk.ask("ListOffsets", version, fields, note="known and unknown partition")


def list_offsets_as_replica(talk: Conversation) -> None:
    """ListOffsets behind an open transaction: what a consumer sees, another replica, and who debugs."""
    topic = talk.create("a")
    talk.produce(topic, batch(records(b"a")))
    producer = Producer(talk, "t")
    producer.add(3, {topic: [0]}, note="begin")
    producer.produce(9, topic, b"b", note="of the transaction")
    for replica_id in (-1, -2, 0, 1):
        for isolation in (0, 1):
            for timestamp in (-1, -2, -3, -4, -5, T0, T0 + 99):
                fields = {**_fields(topic, timestamp, replica_id=replica_id), "isolation_level": isolation}
                note = f"replica {replica_id}, isolation level {isolation}, timestamp {timestamp}"
                talk.every("ListOffsets", fields, note=note, versions=(4, 9))
    producer.end(3, note="end", committed=False)


def offset_for_leader_epoch(talk: Conversation) -> None:
    """OffsetForLeaderEpoch."""
    topic = talk.create("a")
    talk.produce(topic, batch(records(b"a", b"b")))

    def fields(name: str, partition: int, asked: int, current: int = -1, replica_id: int = -1) -> Fields:
        wanted = {"partition": partition, "current_leader_epoch": current, "leader_epoch": asked}
        return {"replica_id": replica_id, "topics": [{"topic": name, "partitions": [wanted]}]}

    for epoch in (0, 1, 99, -1, -2):
        talk.every("OffsetForLeaderEpoch", fields(topic, 0, epoch), note=f"epoch {epoch}")
    for current in (0, 1, -2):
        asked = fields(topic, 0, 0, current)
        talk.every("OffsetForLeaderEpoch", asked, note=f"current_leader_epoch {current}")
    for replica in (-2, 0, 1):
        asked = fields(topic, 0, 0, replica_id=replica)
        talk.every("OffsetForLeaderEpoch", asked, note=f"replica id {replica}", versions=(3, 4))
    talk.every("OffsetForLeaderEpoch", fields(talk.topic("none"), 0, 0), note="unknown topic")
    talk.every("OffsetForLeaderEpoch", fields(topic, 7, 0), note="unknown partition")
    talk.every("OffsetForLeaderEpoch", fields("", 0, 0), note="empty name")
    talk.every("OffsetForLeaderEpoch", {"replica_id": -1, "topics": []}, note="no topics")
    empty = talk.create("empty")
    talk.every("OffsetForLeaderEpoch", fields(empty, 0, 0), note="empty log")


def delete_records(talk: Conversation) -> None:
    """DeleteRecords, and what is left."""
    topic = talk.create("a", partitions=2)
    talk.produce(topic, batch(records(b"a", b"b")), batch(records(b"c", b"d", b"e")))

    def fields(name: str, partition: int, offset: int) -> Fields:
        wanted = [{"partition_index": partition, "offset": offset}]
        return {"topics": [{"name": name, "partitions": wanted}], "timeout_ms": 5000}

    for offset in (0, -2, 6, 2**63 - 1):
        talk.every("DeleteRecords", fields(topic, 0, offset), note=f"before {offset}")
    for offset in (1, 3, 2, -1):
        talk.ask("DeleteRecords", 2, fields(topic, 0, offset), note=f"before {offset}")
        for timestamp in (-2, -1, T0, -3):
            talk.ask("ListOffsets", 7, _fields(topic, timestamp), note=f"then, timestamp {timestamp}")
        for at in (0, 3, 5):
            wanted = [{"partition": 0, "fetch_offset": at, "partition_max_bytes": 1000}]
            topics = [{"topic": topic, "partitions": wanted}]
            fetch = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1000, "topics": topics}
            talk.ask("Fetch", 11, fetch, note=f"then, fetch from {at}")
    talk.produce(topic, batch())
    talk.every("DeleteRecords", fields(talk.topic("none"), 0, 0), note="unknown topic")
    talk.every("DeleteRecords", fields(topic, 7, 0), note="unknown partition")
    talk.every("DeleteRecords", fields("", 0, 0), note="empty name")
    talk.every("DeleteRecords", {"topics": [], "timeout_ms": 0}, note="no topics")
    twice = [{"partition_index": 0, "offset": 6}, {"partition_index": 0, "offset": 0}]
    talk.ask("DeleteRecords", 2, {"topics": [{"name": topic, "partitions": twice}]}, note="one partition twice")
    both = [{"partition_index": 1, "offset": -1}, {"partition_index": 9, "offset": 0}]
    talk.ask("DeleteRecords", 2, {"topics": [{"name": topic, "partitions": both}]}, note="known and unknown partition")
    compacted = talk.create("compacted", configs={"cleanup.policy": "compact"})
    talk.ask("DeleteRecords", 2, fields(compacted, 0, 0), note="compacted topic")
    kept = talk.create("kept", configs={"cleanup.policy": ""})
    talk.produce(kept, batch(records(b"a", b"b")))
    for offset in (1, -1):
        talk.ask("DeleteRecords", 2, fields(kept, 0, offset), note=f"topic without a policy, before {offset}")
