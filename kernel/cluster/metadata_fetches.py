"""Pure core: how the metadata log is fetched from a controller, and what the answers mean.

*Source:* KIP-595 (diverging epochs, who leads), KIP-630 (snapshots), KIP-853 (directories, endpoints), KIP-1166 (the
follower's high watermark); Kafka 4.3's `KafkaRaftClient`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from ..classes import frozen
from ..config.roles import ControllerAddress
from ..contracts.log_values import EpochEnd
from ..errors import CorruptionError, ErrorCode, error_code
from ..types import METADATA_TOPIC, METADATA_TOPIC_ID, NO_EPOCH, NO_OFFSET, ZERO_ID
from ..wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ..wire.messages.api_59_fetch_snapshot import FetchSnapshotRequest, PartitionSnapshot, TopicSnapshot
from ..wire.messages.api_59_fetch_snapshot import SnapshotId as WireSnapshotId
from .controller_nodes import NOBODY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..controller.snapshots import SnapshotId
    from ..wire.messages.api_01_fetch import FetchResponse
    from ..wire.messages.api_59_fetch_snapshot import FetchSnapshotResponse


class LogEnd(NamedTuple):
    """How far a log goes that follows another one.

    Attributes:
        offset: The next that is to come.
        epoch: Of the last batch, -1 without one.
        high_watermark: What is known to be committed, -1 where nothing is.
    """

    offset: int
    epoch: int = NO_EPOCH
    high_watermark: int = NO_OFFSET


@frozen
class MetadataFetcher:
    """Who fetches.

    Attributes:
        replica_id: The node.
        cluster_id: Of its cluster.
        fetch_bytes: `controller.quorum.fetch.max.bytes`.
        snapshot_bytes: `controller.quorum.fetch.snapshot.max.bytes`.
        directory_id: In which a controller's log lies; brokers' copies have none.
    """

    replica_id: int
    cluster_id: str
    fetch_bytes: int
    snapshot_bytes: int
    directory_id: UUID = ZERO_ID

    @classmethod
    def configured(cls, config: BrokerConfig, cluster_id: str, directory_id: UUID = ZERO_ID) -> MetadataFetcher:
        """Return what the configuration says of this node."""
        return cls(
            replica_id=config.node_id,
            cluster_id=cluster_id,
            fetch_bytes=config.get_int("controller.quorum.fetch.max.bytes"),
            snapshot_bytes=config.get_int("controller.quorum.fetch.snapshot.max.bytes"),
            directory_id=directory_id,
        )

    def fetch(self, end: LogEnd, leader_epoch: int, max_wait_ms: int) -> FetchRequest:
        """Return what asks for what follows.

        Args:
            end: How far this node's log goes.
            leader_epoch: The leader's, as far as this node knows it.
            max_wait_ms: How long the leader may wait for news.
        """
        partition = FetchPartition(
            current_leader_epoch=max(leader_epoch, 0),
            fetch_offset=end.offset,
            last_fetched_epoch=max(end.epoch, 0),
            partition_max_bytes=self.fetch_bytes,
            replica_directory_id=self.directory_id,
            high_watermark=end.high_watermark,
        )
        return FetchRequest(
            cluster_id=self.cluster_id,
            replica_state=ReplicaState(replica_id=self.replica_id),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=self.fetch_bytes,
            topics=[FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )

    def fetch_snapshot(self, identifier: SnapshotId, position: int, leader_epoch: int) -> FetchSnapshotRequest:
        """Return what asks for a part of a snapshot, from `position` on."""
        wanted = PartitionSnapshot(
            current_leader_epoch=leader_epoch,
            snapshot_id=WireSnapshotId(end_offset=identifier.end_offset, epoch=identifier.epoch),
            position=position,
            replica_directory_id=self.directory_id,
        )
        return FetchSnapshotRequest(
            cluster_id=self.cluster_id,
            replica_id=self.replica_id,
            max_bytes=self.snapshot_bytes,
            topics=[TopicSnapshot(name=METADATA_TOPIC, partitions=[wanted])],
        )


@frozen
class Fetched:
    """What an answer to a fetch says.

    Attributes:
        error: Why there is nothing else; NONE where there is.
        leader_id: Who leads according to it, -1 where it does not say.
        leader_epoch: The epoch that goes with it, -1 where it does not say.
        endpoints: Where controllers are, according to it.
        records: Batches, borrowed from the answer; empty where there is no news.
        high_watermark: What is committed.
        snapshot: What is to be fetched in the place of records, as end offset and epoch.
        diverging: Where the leader's log ended in the largest epoch up to this node's last one.
    """

    error: ErrorCode = ErrorCode.NONE
    leader_id: int = NOBODY
    leader_epoch: int = NO_EPOCH
    endpoints: Mapping[int, ControllerAddress] | None = None
    records: memoryview = memoryview(b"")
    high_watermark: int = NO_OFFSET
    snapshot: tuple[int, int] | None = None
    diverging: EpochEnd | None = None


def read_fetch(response: FetchResponse) -> Fetched:
    """Return what an answer says.

    Raises:
        CorruptionError: It is not about the metadata log.
    """
    if response.error_code:
        return Fetched(error_code(response.error_code))
    answer = _only_part(response.responses)
    leader, snapshot, diverging = answer.current_leader, answer.snapshot_id, answer.diverging_epoch
    return Fetched(
        error=error_code(answer.error_code),
        leader_id=NOBODY if leader is None else leader.leader_id,
        leader_epoch=NO_EPOCH if leader is None else leader.leader_epoch,
        endpoints=endpoints_of(response),
        records=memoryview(cast("memoryview", answer.records or b"")),
        high_watermark=answer.high_watermark,
        snapshot=None if snapshot is None or snapshot.end_offset < 0 else (snapshot.end_offset, snapshot.epoch),
        diverging=None if diverging is None else EpochEnd(diverging.epoch, diverging.end_offset),
    )


@frozen
class FetchedPart:
    """What an answer to FetchSnapshot says; `error`, `leader_id`, `leader_epoch` and `endpoints` as in `Fetched`.

    Attributes:
        size_bytes: Of the whole snapshot.
        data: The part.
    """

    error: ErrorCode = ErrorCode.NONE
    leader_id: int = NOBODY
    leader_epoch: int = NO_EPOCH
    endpoints: Mapping[int, ControllerAddress] | None = None
    size_bytes: int = 0
    data: bytes = b""


def read_snapshot_part(response: FetchSnapshotResponse) -> FetchedPart:
    """Return what an answer says.

    Raises:
        CorruptionError: It is not about the metadata log.
    """
    if response.error_code:
        return FetchedPart(error_code(response.error_code))
    part = _only_part(response.topics)
    leader = part.current_leader
    return FetchedPart(
        error=error_code(part.error_code),
        leader_id=NOBODY if leader is None else leader.leader_id,
        leader_epoch=NO_EPOCH if leader is None else leader.leader_epoch,
        endpoints=endpoints_of(response),
        size_bytes=part.size,
        data=bytes(cast("memoryview", part.unaligned_records)),
    )


def endpoints_of(response: Any) -> Mapping[int, ControllerAddress]:
    """Return where controllers are, according to an answer of a quorum's API."""
    return {each.node_id: ControllerAddress(each.host, each.port) for each in response.node_endpoints}


def _only_part(topics: list[Any]) -> Any:
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise CorruptionError("the controller did not answer about the metadata log, and about nothing else")
    return topics[0].partitions[0]
