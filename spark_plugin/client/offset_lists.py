"""Pure core: ListOffsets: questions by leader, and what the answers say.

*Source:* ListOffsets of Kafka's protocol; KIP-79, KIP-405 (the special timestamps of tiered storage), KIP-734.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.types import CONSUMER_REPLICA_ID, IsolationLevel, TopicPartition
from odradek.kernel.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsResponse

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5

_VERSIONS_MIN: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL_TIMESTAMP: 8, LATEST_TIERED_TIMESTAMP: 9}
"""From which version on a special timestamp is understood."""
_COMMITTED_VERSION_MIN: Final = 2


class ListedOffset(NamedTuple):
    """An offset that was looked up.

    Attributes:
        offset: The offset; -1 where no record is as late as the timestamp asked for.
        timestamp: Of the record there, in milliseconds; -1 for the special timestamps.
    """

    offset: int
    timestamp: int


def list_offsets_request(
    wanted: Mapping[TopicPartition, int],
    epochs: Mapping[TopicPartition, int],
    *,
    is_read_committed: bool,
    timeout_ms: int,
) -> ListOffsetsRequest:
    """Return the question to one leader.

    Args:
        wanted: Its partitions and the timestamps asked for.
        epochs: Their leader epochs, so that a broker that was deposed says so; left out where unknown.
        is_read_committed: Whether "latest" is the last stable offset.
        timeout_ms: How long the broker may look into remote storage.
    """
    topics: dict[str, ListOffsetsTopic] = {}
    for partition, timestamp in wanted.items():
        topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic, partitions=[]))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=epochs.get(partition, -1),
                timestamp=timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=CONSUMER_REPLICA_ID,
        isolation_level=IsolationLevel.READ_COMMITTED if is_read_committed else IsolationLevel.READ_UNCOMMITTED,
        topics=list(topics.values()),
        timeout_ms=timeout_ms,
    )


def version_min(timestamps: frozenset[int], *, is_read_committed: bool) -> int:
    """Return the oldest version that can ask this; below, a broker would misunderstand."""
    lowest = max((_VERSIONS_MIN.get(timestamp, 1) for timestamp in timestamps), default=1)
    return max(lowest, _COMMITTED_VERSION_MIN) if is_read_committed else lowest


def listed_offsets(response: ListOffsetsResponse) -> Iterator[tuple[TopicPartition, ErrorCode, ListedOffset]]:
    """Yield what an answer says of each partition."""
    for topic in response.topics:
        for item in topic.partitions:
            yield (
                TopicPartition(topic.name, item.partition_index),
                error_code(item.error_code),
                ListedOffset(item.offset, item.timestamp),
            )
