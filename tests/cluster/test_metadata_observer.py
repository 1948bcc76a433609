"""What a broker asks of the metadata log after an answer that was damaged in its middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import trio

from odradek.kernel.cluster.controller_nodes import ControllerNodes
from odradek.kernel.cluster.metadata_copy import MetadataCopy
from odradek.kernel.cluster.metadata_fetches import MetadataFetcher
from odradek.kernel.cluster.metadata_observer import MetadataObserver, ObserverSettings
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.controller.snapshots import SnapshotSettings
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.threads import Workers
from odradek.kernel.metadata.features import METADATA_VERSION_MAX
from odradek.kernel.metadata.records import FORMAT_VERSION, ConfigRecord, FormatRecord, MetadataRecord, encode_record
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import (
    KRaftVersionRange,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    VoterEndpoint,
    build_control_batch,
)
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID, TopicIdPartition
from odradek.kernel.wire.messages.api_01_fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import make_context

CLUSTER_ID = "Odradek-cluster-000001"
FORMAT = FormatRecord(format_version=FORMAT_VERSION, cluster_id=CLUSTER_ID)
CONFIG = ConfigRecord(resource_type=4, resource_name="", name="broker.rack", value="a")
SETTINGS = ObserverSettings(
    fetcher=MetadataFetcher(replica_id=2, cluster_id=CLUSTER_ID, fetch_bytes=1000, snapshot_bytes=1000),
    listener_name="CONTROLLER",
    timeout_ms=1000,
    snapshots=SnapshotSettings(bytes_between=1 << 20, interval_ms=0),
)


def batch(record: MetadataRecord, offset: int, epoch: int) -> bytes:
    builder = BatchBuilder(base_offset=offset, partition_leader_epoch=epoch)
    builder.append(None, encode_record(record, METADATA_VERSION_MAX), timestamp=0)
    return bytes(builder.build())


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes((data[-1] ^ 1,))


def answer(records: bytes, epoch: int) -> FetchResponse:
    partition = PartitionData(
        high_watermark=9,
        current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=epoch),
        records=memoryview(records),
    )
    topic = FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return FetchResponse(responses=[topic])


class Channel:
    """A channel to a controller that gives these answers; notes from where and after which epoch it is asked."""

    def __init__(self, answers: list[FetchResponse]) -> None:
        self._answers = answers
        self.fetches: list[tuple[int, int]] = []
        self.is_done = trio.Event()
        self.asked = ("broker-1", 9093)

    async def request_of_any(self, message: Any, *, timeout_ms: int) -> FetchResponse:
        partition = message.topics[0].partitions[0]
        self.fetches.append((partition.fetch_offset, partition.last_fetched_epoch))
        if len(self.fetches) > len(self._answers):
            self.is_done.set()
            await trio.sleep_forever()
        return self._answers[len(self.fetches) - 1]

    def confirm(self) -> None:
        """Nothing: there is one address."""

    async def rest(self) -> None:
        await trio.lowlevel.checkpoint()


def test_it_asks_on_from_what_it_has_in_the_epoch_of_that(tmp_path: Path) -> None:
    engine = MemoryEngine(make_context(tmp_path))
    engine.start()
    opened = engine.open_log(TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0), LogConfig())

    async def main() -> list[tuple[int, int]]:
        last = batch(CONFIG, 2, 2)
        answers = [
            answer(batch(FORMAT, 0, 1), 1),
            answer(batch(CONFIG, 1, 2) + damaged(last), 2),
            answer(last, 2),
        ]
        channel = Channel(answers)
        as_asked: Any = channel
        copy = MetadataCopy(opened, OsFiles(), Workers(SystemThreads(), 1))
        observer = MetadataObserver(copy, as_asked, SETTINGS, nodes=ControllerNodes(), clock=ManualClock())
        async with trio.open_nursery() as nursery:
            await nursery.start(observer.run)
            await channel.is_done.wait()
            assert (observer.image.offset, observer.image.epoch) == (2, 2)
            nursery.cancel_scope.cancel()
        return channel.fetches

    assert trio.run(main) == [(0, 0), (1, 1), (2, 2), (3, 2)]


def voters(*node_ids: int) -> KRaftVoters:
    ranges = KRaftVersionRange(min_supported_version=0, max_supported_version=1)
    return KRaftVoters(
        voters=[
            KRaftVoter(
                voter_id=each,
                voter_directory_id=UUID(int=each),
                endpoints=[
                    VoterEndpoint(name="OTHER", host="elsewhere", port=1),
                    VoterEndpoint(name="CONTROLLER", host=f"controller-{each}", port=9093),
                ],
                k_raft_version_feature=ranges,
            )
            for each in node_ids
        ]
    )


def test_who_keeps_the_metadata_is_known_from_the_log_also_after_a_restart(tmp_path: Path) -> None:
    engine = MemoryEngine(make_context(tmp_path))
    engine.start()
    opened = engine.open_log(TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0), LogConfig())
    worker = Workers(SystemThreads(), 1)
    named = [
        build_control_batch([voters(*ids)], timestamp=0, base_offset=at, partition_leader_epoch=1)
        for at, ids in ((1, (1,)), (2, (1, 2)))
    ]

    async def main() -> None:
        channel = Channel([answer(batch(FORMAT, 0, 1) + b"".join(map(bytes, named)), 1)])
        as_asked: Any = channel
        observer = MetadataObserver(
            MetadataCopy(opened, OsFiles(), worker), as_asked, SETTINGS, nodes=first, clock=ManualClock()
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(observer.run)
            await channel.is_done.wait()
            nursery.cancel_scope.cancel()

    first, second = ControllerNodes(), ControllerNodes()
    trio.run(main)
    never_asked: Any = Channel([])
    MetadataObserver(MetadataCopy(opened, OsFiles(), worker), never_asked, SETTINGS, nodes=second, clock=ManualClock())

    assert [*map(str, first.addresses())] == ["controller-1:9093", "controller-2:9093"]
    assert second.addresses() == first.addresses()


def test_who_keeps_the_metadata_is_known_when_a_snapshot_of_its_own_has_replaced_the_log(tmp_path: Path) -> None:
    engine = SegmentEngine(make_context(tmp_path))
    engine.start()
    opened = engine.open_log(TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0), LogConfig())
    worker = Workers(SystemThreads(), 1)
    copy = MetadataCopy(opened, OsFiles(), worker)
    named = build_control_batch([voters(1, 2)], timestamp=0, base_offset=1, partition_leader_epoch=1)
    for _ in copy.append_in_steps(memoryview(batch(FORMAT, 0, 1) + bytes(named) + batch(CONFIG, 2, 1))):
        pass
    trio.run(copy.write_snapshot, 0, 1)
    again = MetadataCopy(opened, OsFiles(), worker)
    image = again.load()
    start_offset = opened.log_start_offset
    engine.close({})

    assert (image.offset, start_offset) == (2, 3)
    assert again.voters == voters(1, 2)


def test_what_it_has_last_may_be_what_a_quorum_says_of_itself_which_has_an_epoch_too(tmp_path: Path) -> None:
    engine = MemoryEngine(make_context(tmp_path))
    engine.start()
    opened = engine.open_log(TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0), LogConfig())
    worker = Workers(SystemThreads(), 1)
    copy = MetadataCopy(opened, OsFiles(), worker)
    elected = build_control_batch([LeaderChange(leader_id=1)], timestamp=0, base_offset=1, partition_leader_epoch=2)
    for _ in copy.append_in_steps(memoryview(batch(FORMAT, 0, 1) + bytes(elected))):
        pass
    again = MetadataCopy(opened, OsFiles(), worker)
    image = again.load()

    assert (copy.end_offset, copy.last_epoch) == (2, 2)
    assert (again.end_offset, again.last_epoch) == (2, 2)
    assert (image.offset, image.epoch) == (0, 1)
