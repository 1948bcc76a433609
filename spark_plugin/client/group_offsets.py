"""Pure core: OffsetCommit and OffsetFetch for groups without members: requests in any version, answers as offsets.

Offsets go by topics' names here, as they do up to version 9 of both APIs; version 10 would need topic ids, which a
committed offset of a deleted topic does not have.

*Source:* OffsetCommit, OffsetFetch of Kafka's protocol; KIP-447 (`require_stable`), KIP-709 (many groups).

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from odradek.kernel.wire.messages.api_08_offset_commit import OffsetCommitResponse
    from odradek.kernel.wire.messages.api_09_offset_fetch import OffsetFetchResponse

NAMES_VERSION_MAX: Final = 9
"""The last version of both APIs that goes by topics' names."""
STABLE_VERSION_MIN: Final = 7
"""From which version on OffsetFetch knows `require_stable`."""
_GROUPS_VERSION_MIN: Final = 8
ADVICE: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members of its own: commit to a group that nobody subscribes with",
    ErrorCode.ILLEGAL_GENERATION: "the group has members of its own: commit to a group that nobody subscribes with",
    ErrorCode.STALE_MEMBER_EPOCH: "the group has members of its own: commit to a group that nobody subscribes with",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "grant Read on the group",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "grant Read on the topic",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the text beside the offset is above offset.metadata.max.bytes",
}
"""What to do about a refusal."""


def commit_request(group: str, offsets: Mapping[TopicPartition, int]) -> OffsetCommitRequest:
    """Return the request that commits offsets of a group that has no members."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        item = OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata="")
        topics.setdefault(topic, []).append(item)
    return OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=items) for topic, items in topics.items()],
    )


def commit_failures(response: OffsetCommitResponse) -> Iterator[tuple[TopicPartition, ErrorCode]]:
    """Yield what was not committed, and why."""
    for topic in response.topics:
        for item in topic.partitions:
            if item.error_code:
                yield TopicPartition(topic.name, item.partition_index), error_code(item.error_code)


def fetch_request(
    group: str, partitions: Collection[TopicPartition], version: int, *, require_stable: bool
) -> OffsetFetchRequest:
    """Return the request for a group's offsets in a version, at most `NAMES_VERSION_MAX`."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    if version >= _GROUPS_VERSION_MIN:
        named = [OffsetFetchRequestTopics(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=named)], require_stable=require_stable
        )
    return OffsetFetchRequest(
        group_id=group,
        topics=[OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in topics.items()],
        require_stable=require_stable,
    )


def fetched_offsets(response: OffsetFetchResponse) -> tuple[ErrorCode, dict[TopicPartition, int]]:
    """Return the first error of an answer, and the offsets that are committed."""
    codes = [response.error_code, *(group.error_code for group in response.groups)]
    offsets: dict[TopicPartition, int] = {}
    answered: list[tuple[str, Any]] = [(topic.name, item) for topic in response.topics for item in topic.partitions]
    for group in response.groups:
        answered += [(topic.name, item) for topic in group.topics for item in topic.partitions]
    for name, item in answered:
        codes.append(item.error_code)
        if not item.error_code and item.committed_offset >= 0:
            offsets[TopicPartition(name, item.partition_index)] = item.committed_offset
    return error_code(next((code for code in codes if code), 0)), offsets
