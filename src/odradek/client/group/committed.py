"""Pure core: offsets that groups commit: requests about them, and what the answers mean.

| code | a commit | a look-up |
| --- | --- | --- |
| COORDINATOR_LOAD_IN_PROGRESS, UNKNOWN_TOPIC_OR_PARTITION | again | again |
| UNKNOWN_TOPIC_ID | again, with new metadata | likewise |
| NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, REQUEST_TIMED_OUT | again, with another coordinator | likewise |
| REBALANCE_IN_PROGRESS | `RebalanceInProgressError`, and rejoin | |
| UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID | `CommitFailedError`: others may own the partitions | |
| STALE_MEMBER_EPOCH | again, after the next heartbeat | again |
| UNSTABLE_OFFSET_COMMIT | | again: a transaction is about to end |
| any other | the error itself | the error itself |

*Source:* `ConsumerCoordinator` and `CommitRequestManager` of Kafka 4.3; KIP-447, KIP-848.

.. versionadded:: 0.1
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import NO_EPOCH, ZERO_ID, TopicPartition
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

from ..cluster import COORDINATOR_MOVED
from ..errors import BrokerError, CommitFailedError, RebalanceInProgressError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .member import GroupMetadata

VERSION_WITHOUT_IDS: Final = 9
"""The last version of both APIs that names topics. Later ones give their ids only: of a topic that was made anew since,
nothing is committed by who read the old one, and nothing is found that belongs to that."""
NO_IDS: Final[Mapping[str, uuid.UUID]] = {}

_FIND: Final = COORDINATOR_MOVED | {ErrorCode.REQUEST_TIMED_OUT}
_AGAIN: Final = _FIND | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
MEMBERSHIP_REFUSALS: Final = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""Codes that tell the member something about its place in the group."""
_COMMIT_FAILED: Final = MEMBERSHIP_REFUSALS - {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.STALE_MEMBER_EPOCH}


@attrs.frozen
class OffsetAndMetadata:
    """An offset to commit, or one that was committed.

    Attributes:
        offset: The next record to be read.
        metadata: Any text.
        leader_epoch: Of the record before it; -1 when unknown.

    .. versionadded:: 0.1
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_EPOCH


@attrs.frozen
class Outcome:
    """What an answer means.

    Attributes:
        error: What went wrong; None for nothing. `retriable` tells whether the same request may succeed.
        code: The code behind it.
        must_find: Whether another coordinator must be found first.
    """

    error: ClientError | None = None
    code: ErrorCode = ErrorCode.NONE
    must_find: bool = False


def _grouped(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    topics: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition)
    return topics


def ids_of(topics: Iterable[str], topic_id: Callable[[str], uuid.UUID]) -> Mapping[str, uuid.UUID]:
    """Return the ids of topics; of none where one is unknown, for a request has ids or names."""
    ids = {topic: topic_id(topic) for topic in topics}
    return NO_IDS if ZERO_ID in ids.values() else ids


def commit_request(
    metadata: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    topic_ids: Mapping[str, uuid.UUID] = NO_IDS,
) -> OffsetCommitRequest:
    """Return the request that commits offsets; without ids it can be sent up to `VERSION_WITHOUT_IDS`."""
    return OffsetCommitRequest(
        group_id=metadata.group_id,
        generation_id_or_member_epoch=metadata.generation_id,
        member_id=metadata.member_id,
        group_instance_id=metadata.instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_ids.get(topic, ZERO_ID),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition.partition,
                        committed_offset=offsets[partition].offset,
                        committed_leader_epoch=offsets[partition].leader_epoch,
                        committed_metadata=offsets[partition].metadata,
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in _grouped(offsets).items()
        ],
    )


def commit_outcome(
    response: OffsetCommitResponse, group_id: str, topic_ids: Mapping[str, uuid.UUID] = NO_IDS
) -> Outcome:
    """Return what the answer means for the whole commit: the first code that is not one to try again, or that.

    Args:
        response: The answer.
        group_id: The group.
        topic_ids: As the request had them.
    """
    worst = Outcome()
    names = {topic_id: name for name, topic_id in topic_ids.items()}
    for topic in response.topics:
        name = topic.name or names.get(topic.topic_id, str(topic.topic_id))
        for item in topic.partitions:
            code = error_code(item.error_code)
            if code is ErrorCode.NONE:
                continue
            worst = _outcome(code, f"{name}-{item.partition_index}", group_id)
            if code not in _AGAIN:
                return worst
    return worst


def _outcome(code: ErrorCode, what: str, group_id: str) -> Outcome:
    detail = f"group {group_id!r}, {what}: {code.text}"
    error: ClientError
    if code is ErrorCode.REBALANCE_IN_PROGRESS:
        error = RebalanceInProgressError(code, f"{detail} Poll, then commit again.")
    elif code in _COMMIT_FAILED:
        error = CommitFailedError(
            code,
            f"{detail} The group has rebalanced, and others may own the partitions: the time between polls was longer "
            "than max.poll.interval.ms, or the member was taken for dead",
        )
    else:
        error = BrokerError(code, detail)
        error.retriable = code in _AGAIN
    return Outcome(error, code, code in _FIND)


def fetch_request(
    group_id: str,
    partitions: Iterable[TopicPartition] | None,
    member: GroupMetadata | None,
    topic_ids: Mapping[str, uuid.UUID] = NO_IDS,
) -> OffsetFetchRequest:
    """Return the request that looks committed offsets up; stable ones: open transactions are waited for.

    Args:
        group_id: The group.
        partitions: Which; None for all that the group has committed.
        member: A member of the consumer protocol, whose epoch is then checked.
        topic_ids: Of these topics; without them it can be sent up to `VERSION_WITHOUT_IDS`.
    """
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(
                name=topic,
                topic_id=topic_ids.get(topic, ZERO_ID),
                partition_indexes=[each.partition for each in many],
            )
            for topic, many in _grouped(partitions).items()
        ]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    if member is not None:
        group.member_id, group.member_epoch = member.member_id, member.generation_id
    return OffsetFetchRequest(groups=[group], require_stable=True)


def fetch_outcome(
    response: OffsetFetchResponse, group_id: str, topic_ids: Mapping[str, uuid.UUID] = NO_IDS
) -> tuple[Outcome, dict[TopicPartition, OffsetAndMetadata | None]]:
    """Return what the answer means, and the committed offsets; None where nothing is committed.

    Args:
        response: The answer.
        group_id: The group.
        topic_ids: As the request had them.
    """
    found: dict[TopicPartition, OffsetAndMetadata | None] = {}
    names = {topic_id: name for name, topic_id in topic_ids.items()}
    for group in response.groups:
        code = error_code(group.error_code)
        if code is not ErrorCode.NONE:
            return _outcome(code, "committed offsets", group_id), found
        for topic in group.topics:
            for item in topic.partitions:
                partition = TopicPartition(topic.name or names[topic.topic_id], item.partition_index)
                code = error_code(item.error_code)
                if code is not ErrorCode.NONE:
                    return _outcome(code, str(partition), group_id), found
                found[partition] = (
                    OffsetAndMetadata(item.committed_offset, item.metadata or "", item.committed_leader_epoch)
                    if item.committed_offset >= 0
                    else None
                )
    return Outcome(), found
