"""Records of consumer groups: Kafka's own are read and written, and lives like Kafka's write the same."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.kernel.api import NO_PRODUCER, run_at_once
from odradek.kernel.wire.messages.data_consumer_group_records import (
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from odradek.plugins.groups.consumer.group import ConsumerGroup
from odradek.plugins.groups.records import encode_record
from odradek.testing.shard_harness import LoggedRecord

from ..driven import CLIENT
from .driven_consumers import DrivenConsumers
from .kafkas_records import RECORDS, decoded, topic_views


@pytest.mark.parametrize(("key", "value"), RECORDS)
def test_kafkas_records_of_consumer_groups_are_written_again_byte_for_byte(key: bytes, value: bytes | None) -> None:
    assert (key, value) == encode_record(decoded(key, value))


def new_shard() -> DrivenConsumers:
    driven = DrivenConsumers(topics={})
    for view in topic_views():
        driven.broker.cluster.create(view.name, view.partitions_count, view.topic_id)
    return driven


def test_a_log_of_kafka_is_loaded() -> None:
    driven = new_shard()
    shard = driven.coordinator.new_shard(0, driven.harness)
    first_session_over = RECORDS.index((bytes.fromhex("000800016700026d31"), None))
    for offset, (key, value) in enumerate(RECORDS[:first_session_over]):
        shard.replay(decoded(key, value), offset, NO_PRODUCER)
    run_at_once(shard.loaded(driven.harness.now_ms))
    group = shard.context.groups["g"]
    assert isinstance(group, ConsumerGroup)

    assert {"m1", "s2"} == group.members.keys()
    assert (group.state_name, group.group_epoch, group.assignment_epoch) == ("Assigning", 5, 4)
    assert group.static_members == {"i": "s2"}

    for offset, (key, value) in enumerate(RECORDS[first_session_over:], first_session_over):
        shard.replay(decoded(key, value), offset, NO_PRODUCER)

    assert group.is_empty
    assert "gone" not in shard.context.groups
    assert {"g", "re", "re2", "up"} == shard.context.groups.keys()


def bare(key: bytes, value: bytes | None) -> Any:
    """Return a record without what a run has drawn: times, and the version of the metadata."""
    record = decoded(key, value)
    if isinstance(record.value, ConsumerGroupTargetAssignmentMetadataValue):
        record.value.assignment_timestamp = min(record.value.assignment_timestamp, 1)
    if isinstance(record.value, ConsumerGroupRegularExpressionValue):
        record.value.version = record.value.timestamp = 1
    for topics in ("topic_partitions", "assigned_partitions", "partitions_pending_revocation"):
        if hasattr(record.value, topics):
            # The order of topics is that of a table of Java's.
            getattr(record.value, topics).sort(key=lambda topic: topic.topic_id)
    return encode_record(record)


def live_like_g(driven: DrivenConsumers) -> None:
    """Do what the captured group `g` did."""

    def beat(name: str, epoch: int, **owned: range) -> None:
        driven.beat(name, epoch, topic_partitions=driven.partitions(owned) if owned else None)

    driven.enter("m1", "orders", rack_id="r1")
    beat("m1", 2, orders=range(4))
    driven.enter("m2", "payments", "orders", server_assignor="range")
    beat("m1", 2, orders=range(4))
    beat("m2", 3)
    beat("m1", 2, orders=range(2))
    beat("m2", 3)
    beat("m2", 3)
    driven.enter("s1", "orders", instance_id="i")
    driven.beat("s1", -2, instance_id="i")
    driven.enter("s2", "orders", instance_id="i")
    driven.beat("m2", -1)
    driven.harness.advance(45_000)


def live_like_re2(driven: DrivenConsumers) -> None:
    """Do what the captured group `re2` did: a subscription by regular expression."""
    driven.enter("m1", subscribed_topic_names=None, subscribed_topic_regex="pay.*|wide")
    driven.harness.advance(1)
    for epoch in (1, 2, 2, 2):
        driven.beat("m1", epoch)
    driven.beat("m1", 2, subscribed_topic_regex="")
    driven.beat("m1", -1)


def live_like_gone(driven: DrivenConsumers) -> None:
    """Do what the captured group `gone` did: it came and was deleted."""
    driven.enter("m1", "orders")
    driven.beat("m1", -1)
    driven.harness.run(lambda shard, _: shard.delete_groups(["g"]))


@pytest.mark.parametrize(("group", "live"), [("g", live_like_g), ("re2", live_like_re2), ("gone", live_like_gone)])
def test_a_life_writes_the_records_that_kafka_wrote(group: str, live: Any) -> None:
    driven = new_shard()
    live(driven)
    ours = [(entry.key, entry.value) for entry in driven.harness.log if isinstance(entry, LoggedRecord)]
    kafkas = [
        (renamed(key), None if value is None else value.replace(b"\x07golden", b"\x07" + CLIENT.encode()))
        for key, value in RECORDS
        if group_of(key) == group
    ]

    assert [bare(*record) for record in kafkas] == [bare(*record) for record in ours]


def group_of(key: bytes) -> str:
    size = int.from_bytes(key[2:4], "big")
    return key[4 : 4 + size].decode()


def renamed(key: bytes) -> bytes:
    """Return a key with the group called `g`."""
    size = int.from_bytes(key[2:4], "big")
    return key[:2] + b"\x00\x01g" + key[4 + size :]
