"""Pure core: ListOffsets: questions by leader, and what the answers say.

*Source:* ListOffsets of Kafka's protocol; KIP-79.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import UnsupportedVersionError
from odradek.kernel.types import CONSUMER_REPLICA_ID, NO_EPOCH, IsolationLevel, TopicPartition
from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.kernel.wire.special_timestamps import FIRST_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsResponse

_COMMITTED_VERSION_MIN: Final = 2


@attrs.frozen
class OffsetAndTimestamp:
    """An offset that was looked up.

    Attributes:
        offset: The offset; -1 where no record is as late as the timestamp asked for.
        timestamp: Of the record there, in milliseconds; -1 for the special timestamps.
        leader_epoch: Of the record there; -1 when unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int


def list_offsets_request(
    wanted: Mapping[TopicPartition, int],
    epochs: Mapping[TopicPartition, int],
    *,
    isolation_level: IsolationLevel,
    timeout_ms: int,
) -> ListOffsetsRequest:
    """Return the question to one leader.

    Args:
        wanted: Its partitions and the timestamps asked for.
        epochs: Their leader epochs, so that a broker that was deposed says so; left out where unknown.
        isolation_level: Whether "latest" is the high watermark or the last stable offset.
        timeout_ms: How long the broker may look into remote storage.
    """
    topics: dict[str, ListOffsetsTopic] = {}
    for partition, timestamp in wanted.items():
        topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic, partitions=[]))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=epochs.get(partition, NO_EPOCH),
                timestamp=timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=CONSUMER_REPLICA_ID,
        isolation_level=isolation_level,
        topics=list(topics.values()),
        timeout_ms=timeout_ms,
    )


def check_version(version: int, request: ListOffsetsRequest, address: str) -> None:
    """Make sure that a version can ask this; below, a broker would misunderstand.

    Args:
        version: The newest one that both sides know.
        request: The question.
        address: The broker's, for the error.

    Raises:
        UnsupportedVersionError: It cannot.
    """
    lowest = _COMMITTED_VERSION_MIN if request.isolation_level == IsolationLevel.READ_COMMITTED else 1
    for topic in request.topics:
        for item in topic.partitions:
            lowest = max(lowest, FIRST_VERSIONS.get(item.timestamp, 1))
    if version < lowest:
        raise UnsupportedVersionError(
            f"{address} answers ListOffsets up to version {version}; what is asked needs {lowest}"
        )


def listed_offsets(response: ListOffsetsResponse) -> Iterator[tuple[TopicPartition, ErrorCode, OffsetAndTimestamp]]:
    """Yield what an answer says of each partition."""
    for topic in response.topics:
        for item in topic.partitions:
            yield (
                TopicPartition(topic.name, item.partition_index),
                error_code(item.error_code),
                OffsetAndTimestamp(item.offset, item.timestamp, item.leader_epoch),
            )
