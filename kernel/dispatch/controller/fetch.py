"""Shell: Fetch (key 1) on the controller's listener: the metadata log, for other voters and for who observes it.

Voters read all that is appended, as a record is committed by their fetches; all others what is committed. A fetch
counts for its replica only when its log is the same as the leader's up to there.

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
from .asked_of_controller import is_of_another_cluster, leader_endpoints, wrong_epoch
from .news_waits import NewsWaits

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.feed_view import MetadataFeedView
    from ...wire.messages.api_01_fetch import FetchRequest

FIRST_VERSION_WITH_ENDPOINTS: Final = 17
ANSWER_BYTES_MAX: Final = 8 << 20


class MetadataFetchHandler:
    """Answers Fetch of `__cluster_metadata-0`: of other voters, and of who observes the quorum."""

    api_key = 1

    def __init__(self, *, feed: Callable[[], MetadataFeedView]) -> None:
        """Make the handler; `feed` returns the node's metadata log."""
        self._feed = feed
        self._waits = NewsWaits()

    async def handle_async(self, request: FetchRequest, context: RequestContext) -> Answer:
        """Answer at once where there is something, else when `NewsWaits` says. Cancelled: who asks is gone."""
        feed = self._feed()
        if is_of_another_cluster(feed, request.cluster_id):
            return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        wanted = _wanted(request)
        if wanted is None:
            return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
        replica_id = request.replica_state.replica_id if request.replica_state is not None else request.replica_id
        answer = _refused(feed, wanted)
        if answer is None:
            feed.follower_fetch(replica_id, wanted.replica_directory_id, wanted.fetch_offset, wanted.high_watermark)
            await self._wait_for_news(feed, replica_id, wanted, request.max_wait_ms, context)
            answer = _refused(feed, wanted)  # the log may begin later by now, and another may lead
        if answer is None:
            max_bytes = min(request.max_bytes, wanted.partition_max_bytes, ANSWER_BYTES_MAX)
            end_offset = feed.readable_end(replica_id, wanted.replica_directory_id)
            answer = _partition(feed, feed.batches(wanted.fetch_offset, end_offset, max_bytes))
        topic = FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[answer])
        has_endpoints = context.api_version >= FIRST_VERSION_WITH_ENDPOINTS
        endpoints = leader_endpoints(feed, feed.leader_id, NodeEndpoint) if has_endpoints else []
        return FetchResponse(responses=[topic], node_endpoints=endpoints)

    async def _wait_for_news(
        self,
        feed: MetadataFeedView,
        replica_id: int,
        wanted: FetchPartition,
        max_wait_ms: int,
        context: RequestContext,
    ) -> None:
        """Wait for records, for more that is committed where who asks said what it knows, or for another leader."""
        leader_epoch = feed.leader_epoch

        def is_news() -> bool:
            return (
                feed.readable_end(replica_id, wanted.replica_directory_id) > wanted.fetch_offset
                or feed.end_offset > wanted.high_watermark
                or feed.is_ending
                or not feed.is_leader
                or feed.leader_epoch != leader_epoch
            )

        async def wait() -> None:
            with self._waits.wait(replica_id if feed.is_member(replica_id) else None, max_wait_ms):
                while not is_news():
                    await feed.wait_changed()

        if not is_news():
            await context.wait_aside(wait)

    def error_response(self, request: FetchRequest, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return FetchResponse(error_code=code)


def _refused(feed: MetadataFeedView, wanted: FetchPartition) -> PartitionData | None:
    """Return the answer to who asks for what cannot be read, None for others."""
    if wanted.fetch_offset < 0 or wanted.last_fetched_epoch < 0 or wanted.current_leader_epoch < 0:
        return _partition(feed, error=ErrorCode.INVALID_REQUEST)
    error = wrong_epoch(feed, wanted.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return _partition(feed, error=error)
    if feed.needs_snapshot(wanted.last_fetched_epoch, wanted.fetch_offset):
        return _snapshot(feed)
    end = feed.diverges(wanted.last_fetched_epoch, wanted.fetch_offset)
    if end is None:
        return None
    return _partition(feed, diverging_epoch=EpochEndOffset(epoch=end.leader_epoch, end_offset=end.end_offset))


def _snapshot(feed: MetadataFeedView) -> PartitionData:
    """Return the answer to who has to begin with a snapshot."""
    snapshot = feed.newest_snapshot()
    if snapshot is None:
        return _partition(feed, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    return _partition(feed, snapshot_id=SnapshotId(end_offset=snapshot[0], epoch=snapshot[1]))


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
        current_leader=LeaderIdAndEpoch(leader_id=feed.leader_id, leader_epoch=feed.leader_epoch),
        snapshot_id=snapshot_id,
        diverging_epoch=diverging_epoch,
        aborted_transactions=[],
        records=records,
    )
