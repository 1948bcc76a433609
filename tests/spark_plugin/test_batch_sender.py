"""The sender's conversation with brokers: a few requests at a time, connections that break, leaders that move."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.spark_plugin.client import Client
from odradek.spark_plugin.writing.produce import ProduceCore
from odradek.spark_plugin.writing.sending import BatchSender
from odradek.spark_plugin.writing.write_settings import WriteSettings
from tests.spark_plugin.test_produce_core import Log, run_of


@attrs.define(eq=False)
class FakeBroker:
    """A broker, and a connection to it at the same time; `events` are what comes of the next requests."""

    node_id: int
    cluster: FakeCluster
    requests: deque[ProduceRequest] = attrs.field(factory=deque)
    in_flight_max: int = 0

    def version_of(self, message: type, version_max: int) -> int:
        """Speak what is asked for."""
        assert message is ProduceRequest
        return version_max

    def send(self, request: ProduceRequest, *, timeout_ms: int, version: int) -> None:
        """Take a request."""
        assert timeout_ms > 0
        self.cluster.versions.add(version)
        if self.cluster.next_event() == "send breaks":
            raise ConnectionFailedError("broken pipe")
        self.requests.append(request)
        self.in_flight_max = max(self.in_flight_max, len(self.requests))

    def receive(self, *, timeout_ms: int) -> ProduceResponse:
        """Answer the oldest request."""
        assert timeout_ms > 0
        event = self.cluster.next_event()
        request = self.requests.popleft()
        if event == "lost before":
            raise ConnectionFailedError("reset")
        response = ProduceResponse(responses=[])
        for topic in request.topic_data:
            answers = []
            for data in topic.partition_data:
                partition = TopicPartition(topic.name, data.index)
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                if event != "moved" and self.cluster.leaders[partition] == self.node_id:
                    code = self.cluster.logs[partition].append(cast("Any", DataOf(data.records)))
                answers.append(PartitionProduceResponse(index=data.index, error_code=code))
            response.responses.append(TopicProduceResponse(name=topic.name, partition_responses=answers))
        if event == "lost after":
            raise ConnectionFailedError("reset")
        return response


@attrs.frozen
class DataOf:
    """What `Log.append` looks at."""

    data: Any


@attrs.define
class FakeCluster:
    """What a sender asks of a client."""

    leaders: dict[TopicPartition, int]
    logs: dict[TopicPartition, Log]
    events: list[str] = attrs.field(factory=list)
    brokers: dict[int, FakeBroker] = attrs.field(factory=dict)
    leased: list[int] = attrs.field(factory=list)
    doubts_count: int = 0
    versions: set[int] = attrs.field(factory=set)
    time_ms: int = 0

    def next_event(self) -> str:
        """Return what happens next."""
        return self.events.pop(0) if self.events else ""

    def leader_of(self, partition: TopicPartition) -> int:
        """Return who leads."""
        return self.leaders[partition]

    def doubt_leaders(self) -> None:
        """Note that metadata is asked for."""
        self.doubts_count += 1

    def lease(self, node_id: int) -> FakeBroker:
        """Connect."""
        if self.next_event() == "no connection":
            raise ConnectionFailedError("refused")
        self.leased.append(node_id)
        broker = self.brokers.setdefault(node_id, FakeBroker(node_id, self))
        broker.requests.clear()
        return broker

    def release(self, broker: FakeBroker) -> None:
        """Take a connection back."""
        self.leased.remove(broker.node_id)

    def monotonic_ms(self) -> int:
        """Return the time."""
        return self.time_ms

    now_ms = monotonic_ms

    def sleep_ms(self, duration_ms: int) -> None:
        """Let time pass."""
        self.time_ms += duration_ms


PARTITIONS = [TopicPartition("t", number) for number in range(6)]


def cluster_of(*events: str) -> FakeCluster:
    leaders = {partition: partition.partition % 2 for partition in PARTITIONS}
    return FakeCluster(leaders, {partition: Log() for partition in PARTITIONS}, list(events))


def sender_of(cluster: FakeCluster, *, is_v2: bool = True, **changes: Any) -> BatchSender:
    settings = WriteSettings(compression=CompressionType.NONE, **changes)
    core = ProduceCore(settings=settings, now_ms=cluster.now_ms)
    core.producer_id, core.producer_epoch = 7, 0
    return BatchSender(client=cast("Client", cluster), core=core, clock=cluster, is_v2=is_v2)


def write(cluster: FakeCluster, sender: BatchSender) -> None:
    """Write ten values to each partition, and check that they are there."""
    values = [b"%d" % number * 30 for number in range(10)]
    for partition in PARTITIONS:
        sender.core.add(partition, run_of(values))
        sender.send()
    sender.flush()
    sender.close()

    assert [log.values for log in cluster.logs.values()] == [values] * len(PARTITIONS)
    assert cluster.leased == []


def test_batches_go_to_their_leaders_a_few_requests_at_a_time() -> None:
    cluster = cluster_of()
    write(cluster, sender_of(cluster, request_bytes=400, batch_bytes=400, in_flight_max=2))

    assert [broker.in_flight_max for broker in cluster.brokers.values()] == [2, 2]
    assert cluster.versions == {12}


def test_transactions_of_version_1_have_an_older_produce() -> None:
    cluster = cluster_of()
    write(cluster, sender_of(cluster, is_v2=False))

    assert cluster.versions == {11}


def test_whatever_breaks_batches_are_sent_again() -> None:
    for event in ("no connection", "send breaks", "lost before", "lost after", "moved"):
        doubts_count = 0
        for quiet in range(9):
            cluster = cluster_of(*[""] * quiet, event)
            write(cluster, sender_of(cluster, request_bytes=400, batch_bytes=400))

            doubts_count += cluster.doubts_count
        assert doubts_count, f"no request met {event!r}"


def test_a_leader_that_moves_is_found() -> None:
    cluster = cluster_of()
    sender = sender_of(cluster)
    sender.core.add(PARTITIONS[0], run_of([b"1"]))
    sender.send()
    cluster.leaders[PARTITIONS[0]] = 1
    sender.flush()
    sender.close()

    assert cluster.logs[PARTITIONS[0]].values == [b"1"]
    assert cluster.doubts_count == 1


def test_too_much_that_waits_holds_the_next_rows_up() -> None:
    cluster = cluster_of()
    sender = sender_of(cluster)
    for _ in range(12):
        sender.core.add(PARTITIONS[0], run_of([b"x" * 1_000_000]))
        sender.send()

    assert 2 <= len(cluster.logs[PARTITIONS[0]].values) < 12
    sender.flush()
    sender.close()
    assert len(cluster.logs[PARTITIONS[0]].values) == 12
