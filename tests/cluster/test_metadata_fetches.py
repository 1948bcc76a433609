"""How the metadata log is asked for, and what answers mean."""

from __future__ import annotations

from uuid import UUID

import pytest

from odradek.kernel.cluster.metadata_fetches import Fetched, FetchedPart, LogEnd, MetadataFetcher
from odradek.kernel.cluster.metadata_fetches import read_fetch as read
from odradek.kernel.cluster.metadata_fetches import read_snapshot_part as read_part
from odradek.kernel.config.roles import ControllerAddress
from odradek.kernel.contracts.log_values import EpochEnd
from odradek.kernel.controller.snapshots import SnapshotId
from odradek.kernel.errors import CorruptionError, ErrorCode
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID
from odradek.kernel.wire.messages.api_01_fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.kernel.wire.messages.api_01_fetch import SnapshotId as FetchedSnapshotId
from odradek.kernel.wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotResponse,
    ResponsePartitionSnapshot,
    ResponseSnapshotId,
    ResponseTopicSnapshot,
)

DIRECTORY = UUID(int=9)
FETCHER = MetadataFetcher(
    replica_id=2, cluster_id="Odradek-cluster-000001", fetch_bytes=1000, snapshot_bytes=500, directory_id=DIRECTORY
)
LEADER = LeaderIdAndEpoch(leader_id=3, leader_epoch=7)
ENDPOINTS = {3: ControllerAddress("controller-3", 9093)}


def fetched(*partitions: PartitionData) -> FetchResponse:
    topic = FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=list(partitions))
    return FetchResponse(responses=[topic], node_endpoints=[NodeEndpoint(node_id=3, host="controller-3", port=9093)])


def test_a_fetch_says_who_asks_from_where_and_what_it_knows() -> None:
    request = FETCHER.fetch(LogEnd(50, 6, 48), 7, 500)
    part = request.topics[0].partitions[0]

    assert (request.cluster_id, request.max_wait_ms, request.max_bytes) == ("Odradek-cluster-000001", 500, 1000)
    assert request.replica_state is not None
    assert request.replica_state.replica_id == 2
    assert (part.fetch_offset, part.last_fetched_epoch, part.current_leader_epoch) == (50, 6, 7)
    assert (part.high_watermark, part.replica_directory_id) == (48, DIRECTORY)


def test_who_has_nothing_yet_asks_as_kafka_does() -> None:
    part = FETCHER.fetch(LogEnd(0), -1, 0).topics[0].partitions[0]

    assert (part.fetch_offset, part.last_fetched_epoch, part.current_leader_epoch, part.high_watermark) == (0, 0, 0, -1)


def test_a_fetch_of_a_snapshot_says_which_part() -> None:
    request = FETCHER.fetch_snapshot(SnapshotId(40, 5), 1000, 7)
    part = request.topics[0].partitions[0]

    assert (request.replica_id, request.max_bytes, part.replica_directory_id) == (2, 500, DIRECTORY)
    assert (part.snapshot_id.end_offset, part.snapshot_id.epoch, part.position) == (40, 5, 1000)
    assert part.current_leader_epoch == 7


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            PartitionData(high_watermark=9, current_leader=LEADER, records=memoryview(b"batches")),
            Fetched(leader_id=3, leader_epoch=7, endpoints=ENDPOINTS, high_watermark=9, records=memoryview(b"batches")),
        ),
        (
            PartitionData(error_code=6, high_watermark=-1, current_leader=LEADER),
            Fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER, 3, 7, ENDPOINTS),
        ),
        (
            PartitionData(
                high_watermark=9, current_leader=LEADER, diverging_epoch=EpochEndOffset(epoch=5, end_offset=30)
            ),
            Fetched(leader_id=3, leader_epoch=7, endpoints=ENDPOINTS, high_watermark=9, diverging=EpochEnd(5, 30)),
        ),
        (
            PartitionData(
                high_watermark=9, current_leader=LEADER, snapshot_id=FetchedSnapshotId(end_offset=30, epoch=5)
            ),
            Fetched(leader_id=3, leader_epoch=7, endpoints=ENDPOINTS, high_watermark=9, snapshot=(30, 5)),
        ),
        (PartitionData(), Fetched(endpoints=ENDPOINTS, high_watermark=0)),
    ],
    ids=["records", "not the leader", "diverging", "snapshot", "nothing"],
)
def test_an_answer_is_records_or_what_is_to_be_done_instead(part: PartitionData, expected: Fetched) -> None:
    assert read(fetched(part)) == expected


def test_an_answer_that_refuses_as_a_whole_says_why_alone() -> None:
    assert read(FetchResponse(error_code=104)) == Fetched(ErrorCode.INCONSISTENT_CLUSTER_ID)
    assert read_part(FetchSnapshotResponse(error_code=104)) == FetchedPart(ErrorCode.INCONSISTENT_CLUSTER_ID)


def test_a_part_of_a_snapshot_says_how_large_all_of_it_is() -> None:
    part = ResponsePartitionSnapshot(
        size=700, position=500, snapshot_id=ResponseSnapshotId(end_offset=30, epoch=5), unaligned_records=b"rest"
    )
    response = FetchSnapshotResponse(topics=[ResponseTopicSnapshot(name=METADATA_TOPIC, partitions=[part])])

    assert read_part(response) == FetchedPart(size_bytes=700, data=b"rest", endpoints={})


@pytest.mark.parametrize("partitions", [[], [PartitionData(), PartitionData()]])
def test_an_answer_about_anything_else_is_refused(partitions: list[PartitionData]) -> None:
    with pytest.raises(CorruptionError):
        read(fetched(*partitions))
    with pytest.raises(CorruptionError):
        read_part(FetchSnapshotResponse())
