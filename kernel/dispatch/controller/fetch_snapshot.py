"""Shell: FetchSnapshot (key 59): a snapshot of the metadata, in parts, for who begins where the log no longer does.

*Source:* KIP-630; Kafka's `KafkaRaftClient.handleFetchSnapshotRequest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import ErrorCode
from ...types import METADATA_TOPIC
from ...wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ResponsePartitionSnapshot,
    ResponseSnapshotId,
    ResponseTopicSnapshot,
)
from .asked_of_controller import is_of_another_cluster, leader_endpoints, wrong_epoch

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.feed_view import MetadataFeedView
    from ...wire.messages.api_59_fetch_snapshot import FetchSnapshotRequest, PartitionSnapshot

FIRST_VERSION_WITH_ENDPOINTS: Final = 1
FOUNDING: Final = (0, 0)
"""The snapshot of what a cluster was founded with: anybody founded gives it, leader or not, in whatever epoch."""
PART_BYTES_MAX: Final = 1 << 20
"""How much is read at once, as nobody is served meanwhile: what Kafka's nodes ask for."""


class FetchSnapshotHandler:
    """Answers FetchSnapshot of `__cluster_metadata-0`."""

    api_key = 59

    def __init__(self, *, feed: Callable[[], MetadataFeedView]) -> None:
        """Make the handler; `feed` returns the metadata log's snapshots."""
        self._feed = feed

    def handle(self, request: FetchSnapshotRequest, context: RequestContext) -> Answer:
        """Answer at once with as much as is asked for, at most, of one partition: who asks for more is refused."""
        feed = self._feed()
        if is_of_another_cluster(feed, request.cluster_id):
            return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
            return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
        topic, wanted = request.topics[0], request.topics[0].partitions[0]
        is_metadata = topic.name == METADATA_TOPIC and wanted.partition == 0
        part = (
            self._part(feed, request, wanted) if is_metadata else _refused(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        )
        has_endpoints = is_metadata and context.api_version >= FIRST_VERSION_WITH_ENDPOINTS
        return FetchSnapshotResponse(
            topics=[ResponseTopicSnapshot(name=topic.name, partitions=[part])],
            node_endpoints=leader_endpoints(feed, feed.leader_id, NodeEndpoint) if has_endpoints else [],
        )

    @staticmethod
    def _part(
        feed: MetadataFeedView, request: FetchSnapshotRequest, wanted: PartitionSnapshot
    ) -> ResponsePartitionSnapshot:
        answer = _refused(wanted, ErrorCode.NONE)
        answer.current_leader = LeaderIdAndEpoch(leader_id=feed.leader_id, leader_epoch=feed.leader_epoch)
        identifier, limit = wanted.snapshot_id, max(0, min(request.max_bytes, PART_BYTES_MAX))
        if (identifier.end_offset, identifier.epoch) != FOUNDING:
            error = wrong_epoch(feed, wanted.current_leader_epoch)
            if error is not ErrorCode.NONE:
                answer.error_code = error
                return answer
            # It has nothing of this log yet; but it is there, and its leader need not think that it is alone.
            feed.follower_fetch(request.replica_id, wanted.replica_directory_id, 0, 0)
        found = feed.snapshot_part(identifier.end_offset, identifier.epoch, max(wanted.position, 0), limit)
        if found is None:
            answer.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        elif not 0 <= wanted.position < found[0]:
            answer.error_code = ErrorCode.POSITION_OUT_OF_RANGE
        else:
            answer.size, answer.unaligned_records = found
        return answer

    def error_response(
        self, request: FetchSnapshotRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return FetchSnapshotResponse(error_code=code)


def _refused(wanted: PartitionSnapshot, code: ErrorCode) -> ResponsePartitionSnapshot:
    identifier = ResponseSnapshotId(end_offset=wanted.snapshot_id.end_offset, epoch=wanted.snapshot_id.epoch)
    return ResponsePartitionSnapshot(
        index=wanted.partition, error_code=code, snapshot_id=identifier, position=wanted.position, unaligned_records=b""
    )
