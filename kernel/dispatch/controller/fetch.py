"""Shell: Fetch (key 1) on the controller's listener: the committed metadata log, for brokers that follow it.

*Source:* KIP-595 (Fetch of the metadata log), KIP-630 (snapshots); Kafka's `KafkaRaftClient.handleFetchRequest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import ErrorCode
from ...types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_ID
from ...wire.messages.api_01_fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from .news_waits import NewsWaits

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.feed_view import MetadataFeedView
    from ...wire.messages.api_01_fetch import FetchRequest

FIRST_VERSION_WITH_ENDPOINTS: Final = 16
ANSWER_BYTES_MAX: Final = 8 << 20


class MetadataFetchHandler:
    """Answers Fetch of `__cluster_metadata-0`."""

    api_key = 1

    def __init__(self, *, feed: Callable[[], MetadataFeedView], address: tuple[str, int]) -> None:
        """Make the handler; `feed` returns what is committed of the metadata log, `address` is the controller's."""
        self._feed = feed
        self._address = address
        self._waits = NewsWaits()

    async def handle_async(self, request: FetchRequest, context: RequestContext) -> Answer:
        """Answer at once where there is something, else when `NewsWaits` says. Cancelled: the broker is gone."""
        feed = self._feed()
        if request.cluster_id is not None and request.cluster_id != feed.image.cluster_id:
            return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        wanted = _wanted(request)
        if wanted is None:
            return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
        answer = self._refused(feed, wanted)
        if answer is None:
            replica_id = request.replica_state.replica_id if request.replica_state is not None else request.replica_id
            feed.note_fetch(replica_id, wanted.replica_directory_id, wanted.fetch_offset)
            with self._waits.wait(replica_id if replica_id in feed.image.brokers else None, request.max_wait_ms):
                await feed.wait_beyond(wanted.fetch_offset)
            answer = self._refused(feed, wanted)  # the log may begin later by now
        if answer is None:
            max_bytes = min(request.max_bytes, wanted.partition_max_bytes, ANSWER_BYTES_MAX)
            answer = _partition(feed, feed.batches(wanted.fetch_offset, max_bytes))
        topic = FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[answer])
        return FetchResponse(responses=[topic], node_endpoints=self._endpoints(feed, context))

    def _endpoints(self, feed: MetadataFeedView, context: RequestContext) -> list[NodeEndpoint]:
        if context.api_version < FIRST_VERSION_WITH_ENDPOINTS:
            return []
        host, port = self._address
        return [NodeEndpoint(node_id=feed.node_id, host=host, port=port)]

    @staticmethod
    def _refused(feed: MetadataFeedView, wanted: FetchPartition) -> PartitionData | None:
        """Return the answer to who asks for what cannot be read, None for others."""
        if wanted.fetch_offset < 0 or wanted.last_fetched_epoch < 0 or wanted.current_leader_epoch < 0:
            return _partition(feed, error=ErrorCode.INVALID_REQUEST)
        if wanted.current_leader_epoch != feed.leader_epoch:
            is_old = wanted.current_leader_epoch < feed.leader_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
            return _partition(feed, error=code)
        if wanted.fetch_offset < feed.start_offset:
            snapshot = feed.newest_snapshot()
            if snapshot is None:
                return _partition(feed, error=ErrorCode.UNKNOWN_SERVER_ERROR)
            return _partition(feed, snapshot_id=SnapshotId(end_offset=snapshot[0], epoch=snapshot[1]))
        epoch, end_offset = feed.end_of_epoch(wanted.last_fetched_epoch)
        is_ours = wanted.fetch_offset in {0, feed.start_offset} or epoch == wanted.last_fetched_epoch
        if not is_ours or wanted.fetch_offset > min(end_offset, feed.end_offset) > 0:
            end = EpochEndOffset(epoch=epoch, end_offset=max(min(end_offset, feed.end_offset), 0))
            return _partition(feed, diverging_epoch=end)
        return None

    def error_response(self, request: FetchRequest, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return FetchResponse(error_code=code)


def _wanted(request: FetchRequest) -> FetchPartition | None:
    """Return what is asked of the metadata log; None where anything else is asked for."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic, partition = request.topics[0], request.topics[0].partitions[0]
    is_metadata = topic.topic == METADATA_TOPIC if topic.topic_id == ZERO_ID else topic.topic_id == METADATA_TOPIC_ID
    return partition if is_metadata and partition.partition == 0 else None


def _partition(
    feed: MetadataFeedView,
    records: bytes = b"",
    *,
    error: ErrorCode = ErrorCode.NONE,
    snapshot_id: SnapshotId | None = None,
    diverging_epoch: EpochEndOffset | None = None,
) -> PartitionData:
    return PartitionData(
        error_code=error,
        high_watermark=feed.end_offset if error is ErrorCode.NONE else -1,
        log_start_offset=feed.start_offset,
        current_leader=LeaderIdAndEpoch(leader_id=feed.node_id, leader_epoch=feed.leader_epoch),
        snapshot_id=snapshot_id,
        diverging_epoch=diverging_epoch,
        aborted_transactions=[],
        records=records,
    )
