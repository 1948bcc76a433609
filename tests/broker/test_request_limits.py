"""What the broker's own settings do to the answers that clients get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import encode_batch, read_header
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.kernel.wire.messages.api_75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from odradek.testing.running_broker import running_broker

from ..waiting import until
from .broker_process import Client, batch_of
from .test_process import create, fetch, produce

if TYPE_CHECKING:
    from collections.abc import Mapping

FULL_EPOCH = 0
"""Asks for a fetch session."""


def create_topic(
    client: Client, name: str, *, partitions: int = 1, factor: int = 1, configs: Mapping[str, str] | None = None
) -> tuple[int, str | None]:
    """Have a topic created; return what the controller says."""
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
    response = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 5)
    assert isinstance(response, CreateTopicsResponse)
    (result,) = response.topics
    return result.error_code, result.error_message


def fetch_once(client: Client, topic: str, **more: Any) -> FetchResponse:
    """Fetch once from the begin, with limits that take everything."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    response = client.ask(FetchRequest(topics=topics, max_bytes=1 << 24, **more), 11)
    assert isinstance(response, FetchResponse)
    return response


def records_bytes(response: FetchResponse) -> int:
    (part,) = response.responses[0].partitions
    assert type(part.records) is memoryview
    return len(part.records)


def test_an_answer_holds_no_more_than_the_broker_allows_whatever_a_client_takes() -> None:
    batch = batch_of(bytes(600))
    with running_broker({"fetch.max.bytes": 1500}) as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        for _ in range(4):
            produce(client, "t", batch)

        assert records_bytes(fetch_once(client, "t")) == 2 * len(batch)
        assert fetch(client, "t")[1] == 4


def test_a_client_does_not_wait_for_more_than_the_broker_allows() -> None:
    batch = batch_of(bytes(600))
    with running_broker({"fetch.max.bytes": 1024}) as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        for _ in range(2):
            produce(client, "t", batch)

        response = fetch_once(client, "t", min_bytes=1 << 20, max_wait_ms=600_000)

    assert records_bytes(response) == len(batch)


@pytest.mark.parametrize("slots", [0, 2])
def test_there_are_as_many_fetch_sessions_as_there_are_slots(slots: int) -> None:
    settings = {"max.incremental.fetch.session.cache.slots": slots}
    with running_broker(settings) as broker, Client(broker.bootstrap) as client:
        create(client, "t")

        sessions = [fetch_once(client, "t", session_epoch=FULL_EPOCH).session_id for _ in range(slots + 1)]

    assert 0 not in sessions[:slots]
    assert sessions[slots] == 0


def test_a_page_of_partitions_is_no_longer_than_the_broker_allows() -> None:
    def page(cursor: Cursor | None) -> tuple[list[int], int]:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name="t")], response_partition_limit=100, cursor=cursor
        )
        response = client.ask(request, 0)
        assert isinstance(response, DescribeTopicPartitionsResponse)
        next_index = response.next_cursor.partition_index if response.next_cursor else -1
        return [part.partition_index for part in response.topics[0].partitions], next_index

    with running_broker({"max.request.partition.size.limit": 3}) as broker, Client(broker.bootstrap) as client:
        assert create_topic(client, "t", partitions=5)[0] == ErrorCode.NONE

        assert page(None) == ([0, 1, 2], 3)
        assert page(Cursor(topic_name="t", partition_index=3)) == ([3, 4], -1)


def test_more_replicas_by_default_than_there_are_brokers_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    # Compared with Apache Kafka 4.3.1, with the same setting on one broker.
    refused = (
        "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because "
        "only 1 broker(s) are registered or some brokers have all their log directories cordoned."
    )
    automatic = MetadataRequest(topics=[MetadataRequestTopic(name="automatic")])
    with running_broker({"default.replication.factor": 2}) as broker, Client(broker.bootstrap) as client:
        assert create_topic(client, "t", factor=-1) == (ErrorCode.INVALID_REPLICATION_FACTOR, refused)
        assert create_topic(client, "t", factor=1)[0] == ErrorCode.NONE

        for _ in range(2):
            response = client.ask(automatic, 9)
            assert isinstance(response, MetadataResponse)
            assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            until(lambda: f"topic automatic was not created: {refused}" in caplog.text, broker.check)


def test_clients_are_told_the_brokers_rack() -> None:
    with running_broker({"broker.rack": "cellar"}) as broker, Client(broker.bootstrap) as client:
        metadata = client.ask(MetadataRequest(topics=[]), 9)
        cluster = client.ask(DescribeClusterRequest(), 0)

    assert isinstance(metadata, MetadataResponse)
    assert isinstance(cluster, DescribeClusterResponse)
    assert [each.rack for each in metadata.brokers] == ["cellar"]
    assert [each.rack for each in cluster.brokers] == ["cellar"]


def with_broken_records() -> bytes:
    """Return a batch whose header and CRC are right and whose records are not."""
    batch = batch_of(b"a", b"b")
    header = read_header(batch)
    return bytes(encode_batch(header, b"\xff" * (header.length_bytes - 61)))


COMPACTED = {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("mode", "has_kernel", "plain", "compacted"),
    [
        ("headers", True, ErrorCode.NONE, ErrorCode.NONE),
        ("full", False, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
        ("auto", True, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
        ("auto", False, ErrorCode.NONE, ErrorCode.INVALID_RECORD),
    ],
)
def test_records_are_looked_at_as_far_as_the_operator_says(
    monkeypatch: pytest.MonkeyPatch, mode: str, has_kernel: bool, plain: ErrorCode, compacted: ErrorCode
) -> None:
    monkeypatch.setattr("odradek.kernel.broker.metadata_follower.HAS_COMPILED_KERNEL", has_kernel)
    batch = with_broken_records()
    with running_broker({"odradek.produce.validation": mode}) as broker, Client(broker.bootstrap) as client:
        create_topic(client, "plain")
        create_topic(client, "compacted", configs=COMPACTED)

        assert produce(client, "plain", batch)[0] == plain
        assert produce(client, "compacted", batch)[0] == compacted
