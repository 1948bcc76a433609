"""Produce, Fetch and what belongs to them over real segment files, without sockets, one turn at a time."""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection
from pathlib import Path
from typing import Any

from odradek.kernel.contracts.disk_work import DiskWork, do_now
from odradek.kernel.contracts.tiering import Tier
from odradek.kernel.contracts.transactions import Transactions
from odradek.kernel.dispatch.current_leaders import CurrentLeaders
from odradek.kernel.dispatch.fetch_session import FetchSessionCache
from odradek.kernel.dispatch.handlers.api_00_produce import ProduceHandler
from odradek.kernel.dispatch.handlers.api_01_fetch import FetchHandler
from odradek.kernel.dispatch.handlers.api_27_write_txn_markers import WriteTxnMarkersHandler
from odradek.kernel.dispatch.handlers.api_61_describe_producers import DescribeProducersHandler
from odradek.kernel.dispatch.produce_admission import AdmissionSettings, ProduceAdmission
from odradek.kernel.dispatch.replica_selection import ReplicaSelection
from odradek.kernel.dispatch.router import Router
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.network.connection import Connection
from odradek.kernel.partitions.marker_writer import LocalMarkerWriter
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.purgatory.delayed_operation import DelayedOperation
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimingWheel
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.reader import read_records
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tests.partitions.hosted import Hosted
from tests.partitions.local_replicas import KNOWN_BROKERS

from .memory_client import MemoryClient


class House:
    """Replicas with everything around them that Produce and Fetch need, and one client."""

    def __init__(self, directory: Path, transactions: Transactions | None = None, tier: Tier | None = None) -> None:
        self.hosted = Hosted(directory, on_progress=self.progressed, tier=tier)
        self.clock = self.hosted.clock
        self.wheel = TimingWheel(now_ms=self.clock.monotonic_ms())
        self.produces = Purgatory("Produce", self.wheel, on_error=fail)
        self.fetches = Purgatory("Fetch", self.wheel, on_error=fail)
        self.transactions = transactions
        self.verifies = True
        self.long_works: list[DiskWork] = []
        self.image = MetadataImage()
        self.selection = ReplicaSelection(None, lambda: self.image)
        self.leaders = CurrentLeaders(replicas=self.hosted.replicas, image=lambda: self.image, selection=self.selection)
        self.produce = ProduceHandler(
            replicas=self.hosted.replicas,
            writes=self.hosted.writes,
            purgatory=self.produces,
            clock=self.clock,
            admission=ProduceAdmission(
                transactions=lambda: self.transactions,
                settings=lambda: AdmissionSettings(verifies=self.verifies, retry_pause_ms=20, retry_ms_max=100),
                purgatory=self.produces,
                clock=self.clock,
            ),
            begin_long_work=self.long_works.append,
            leaders=self.leaders,
        )
        self.markers = LocalMarkerWriter(
            replicas=self.hosted.replicas,
            writes=self.hosted.writes,
            purgatory=self.produces,
            clock=self.clock,
            timeout_ms=lambda: 30_000,
            owner_of=lambda topic: None,
            want_turn=lambda: None,
        )
        self.router = Router(
            timer=lambda: 0.0,
            turn_enders=(self.markers.turn_ended, self.hosted.writes.write_staged, self.produce.turn_ended),
            on_connection_closed=self.connection_closed,
        )
        self.router.add(self.produce)
        self.sessions = FetchSessionCache(slots=10, random_source=random.Random(0))
        self.router.add(
            FetchHandler(
                replicas=self.hosted.replicas,
                sessions=self.sessions,
                purgatory=self.fetches,
                clock=self.clock,
                max_bytes=1 << 24,
                cold_wait_ms=lambda: 500,
                broker=KNOWN_BROKERS.get,
                leaders=self.leaders,
            )
        )
        self.router.add(WriteTxnMarkersHandler(writer=self.markers))
        self.router.add(DescribeProducersHandler(replicas=self.hosted.replicas))
        self.client = MemoryClient(self.router)

    def progressed(self, replicas: Collection[Replica]) -> None:
        self.produces.check(replicas)
        self.fetches.check(replicas)

    def connection_closed(self, connection: Connection) -> None:
        self.produces.cancel_for(connection)
        self.fetches.cancel_for(connection)

    def do_long_work(self) -> None:
        """Do what was left to a worker thread so far."""
        works, self.long_works[:] = self.long_works[:], []
        for work in works:
            do_now(work)

    def pass_time(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        for entry in self.wheel.advance(self.clock.monotonic_ms(), 1000):
            entry.expire()


def fail(operation: DelayedOperation, error: Exception) -> None:
    raise AssertionError(operation) from error


def batch(*values: bytes, **options: int) -> bytes:
    builder = BatchBuilder(**options)  # type: ignore[arg-type] # tests pass what fits
    for value in values:
        builder.append(None, value, timestamp=1_700_000_000_000)
    return bytes(builder.build())


def produce_request(
    *parts: tuple[int, bytes | None], topic: str = "t", acks: int = -1, timeout_ms: int = 1000
) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=records) for index, records in parts]
    return ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def produce_parts(answer: object) -> list[PartitionProduceResponse]:
    assert isinstance(answer, ProduceResponse)
    return [part for topic in answer.responses for part in topic.partition_responses]


def fetch_request(offset: int = 0, *, max_wait_ms: int = 500, min_bytes: int = 1, **more: Any) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=[FetchTopic(topic="t", partitions=[wanted])], **more
    )


def follower_request(topic_id: uuid.UUID, offset: int, *, broker_epoch: int = 10) -> FetchRequest:
    """What broker 2 asks of partition 0, from version 15 on, as the process that registered with this epoch."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        replica_state=ReplicaState(replica_id=2, replica_epoch=broker_epoch),
        max_wait_ms=0,
        topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])],
    )


def fetch_part(answer: object) -> PartitionData:
    assert isinstance(answer, FetchResponse)
    (topic,) = answer.responses
    (part,) = topic.partitions
    return part


def values(part: PartitionData) -> list[bytes]:
    assert type(part.records) is memoryview
    return [bytes(record.value or b"") for record in read_records(part.records)]
