"""Cleanup in a broker that serves: internal topics stay small, old records go, workers come and go."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.testing.running_broker import running_broker
from tests.plugins.groups.test_groups_read_by_kafka import dump, understood
from tests.waiting import until

from .broker_process import Client, batch_of
from .naive_log_reader import records_of
from .test_live_config import BROKER, TOPIC, alter
from .test_process import create, produce

QUICK = {
    "offsets.topic.num.partitions": 1,
    "log.cleaner.backoff.ms": 100,
    "log.retention.check.interval.ms": 100,
    "replica.high.watermark.checkpoint.interval.ms": 100,
}
INTERNAL = "__consumer_offsets"
SEGMENT_BYTES = 20_000


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def commit(client: Client, offset: int, *, group: str = "g") -> int:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m" * 100)
    request = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name="t", partitions=[part])], generation_id_or_member_epoch=-1
    )
    response = client.ask(request, 8)
    assert isinstance(response, OffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def create_with(client: Client, topic: str, **configs: str) -> tuple[int, str]:
    """Create a topic of one partition; configs are Kafka's keys with underscores; return error and its text."""
    named = {key.replace("_", "."): value for key, value in configs.items()}
    wanted = CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in named.items()],
    )
    response = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 5)
    assert isinstance(response, CreateTopicsResponse)
    return response.topics[0].error_code, response.topics[0].error_message or ""


def keyed(key: bytes, value: bytes) -> bytes:
    builder = BatchBuilder()
    builder.append(key, value, timestamp=time.time_ns() // 1_000_000)
    return bytes(builder.build())


def committed(client: Client) -> int:
    topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    response = client.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[topic])]), 8)
    assert isinstance(response, OffsetFetchResponse)
    topics = response.groups[0].topics
    return topics[0].partitions[0].committed_offset if topics else -1


def size_of(data_dir: Path, topic: str) -> int:
    """Return how large the segments of a topic's only partition are; one that goes meanwhile counts for nothing."""
    total = 0
    for path in (data_dir / f"{topic}-0").glob("*.log"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def find_coordinator(client: Client) -> None:
    client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)


def test_a_consumer_that_commits_for_ever_keeps_its_topic_small(data_dir: Path) -> None:
    with running_broker(QUICK, data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        find_coordinator(client)
        until(lambda: commit(client, 0) == ErrorCode.NONE, broker.check)
        assert alter(client, TOPIC, INTERNAL, "internal.segment.bytes", str(SEGMENT_BYTES)) == ErrorCode.NONE
        assert alter(client, TOPIC, INTERNAL, "file.delete.delay.ms", "0") == ErrorCode.NONE
        written = 0
        for offset in range(1_000):
            assert commit(client, offset) == ErrorCode.NONE
            written += 150
        until(lambda: size_of(data_dir, INTERNAL) < 2 * SEGMENT_BYTES, broker.check)
        assert written > 5 * SEGMENT_BYTES
        assert committed(client) == 999

    with running_broker(QUICK, data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        until(lambda: committed(client) == 999, broker.check)
        assert size_of(data_dir, INTERNAL) < 2 * SEGMENT_BYTES


@pytest.mark.interop
def test_kafka_understands_the_offsets_that_compaction_left(data_dir: Path) -> None:
    with running_broker(QUICK, data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        find_coordinator(client)
        until(lambda: commit(client, 0) == ErrorCode.NONE, broker.check)
        assert alter(client, TOPIC, INTERNAL, "internal.segment.bytes", str(SEGMENT_BYTES)) == ErrorCode.NONE
        assert alter(client, TOPIC, INTERNAL, "file.delete.delay.ms", "0") == ErrorCode.NONE
        for offset in range(300):
            assert commit(client, offset, group=f"g{offset % 3}") == ErrorCode.NONE
        until(lambda: size_of(data_dir, INTERNAL) < 2 * SEGMENT_BYTES, broker.check)
    segments = sorted((data_dir / f"{INTERNAL}-0").glob("*.log"))
    written = sum(len(records_of(segment)) for segment in segments)
    texts = [dump(segment) for segment in segments]
    found = [entry for text in texts for entry in understood(text)]

    assert len(segments) > 1
    assert written == len(found) < 200
    assert not any("isvalid: false" in text for text in texts)
    newest = {key["data"]["group"]: value["data"]["offset"] for key, value in found if str(key["type"]) == "1"}
    assert newest == {"g": 0, "g0": 297, "g1": 298, "g2": 299}


def test_a_damaged_segment_costs_its_partition_its_compaction_and_nothing_else(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compacted = {"cleanup_policy": "compact", "internal_segment_bytes": "1000", "min_cleanable_dirty_ratio": "0.01"}
    with running_broker(data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        for topic in ("bad", "good"):
            assert create_with(client, topic, **compacted, file_delete_delay_ms="0")[0] == ErrorCode.NONE
            for number in range(40):
                assert produce(client, topic, keyed(b"k", b"%099d" % number)) == (ErrorCode.NONE, number)
    segment = min((data_dir / "bad-0").glob("*.log"))
    damaged = bytearray(segment.read_bytes())
    damaged[-1] ^= 1
    segment.write_bytes(damaged)

    with running_broker(QUICK, data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        until(lambda: size_of(data_dir, "good") < 2_500, broker.check)
        until(lambda: "bad-0 is not compacted, and grows" in caplog.text, broker.check)
        assert produce(client, "bad", keyed(b"k", b"on it goes")) == (ErrorCode.NONE, 40)
        assert size_of(data_dir, "bad") > 4_000
    told = next(record.getMessage() for record in caplog.records if "bad-0 is not compacted" in record.getMessage())
    assert "CRC does not match" in told
    assert "tried again in an hour, or when its topic's cleanup settings, or the memory of log.cleaner, are" in told
    assert "see `odradek log dump`" in told


def test_an_altered_pause_of_the_cleaner_counts_at_once(data_dir: Path) -> None:
    compacted = {"cleanup_policy": "compact", "internal_segment_bytes": "1000", "min_cleanable_dirty_ratio": "0.01"}
    seldom = {**QUICK, "log.cleaner.backoff.ms": 3_600_000}
    with running_broker(seldom, data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        assert create_with(client, "t", **compacted, file_delete_delay_ms="0")[0] == ErrorCode.NONE
        for number in range(40):
            assert produce(client, "t", keyed(b"k", b"%099d" % number)) == (ErrorCode.NONE, number)
        assert alter(client, BROKER, "", "log.cleaner.backoff.ms", "100") == ErrorCode.NONE
        until(lambda: size_of(data_dir, "t") < 2_500, broker.check)


def test_records_go_when_their_time_is_over(data_dir: Path) -> None:
    with running_broker(QUICK, data_dir=data_dir) as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        assert produce(client, "t", batch_of(b"an old timestamp")) == (ErrorCode.NONE, 0)
        assert alter(client, TOPIC, "t", "file.delete.delay.ms", "0") == ErrorCode.NONE
        until(lambda: not size_of(data_dir, "t"), broker.check)
        assert produce(client, "t", batch_of(b"another")) == (ErrorCode.NONE, 1)
