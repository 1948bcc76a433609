"""Pure core: the records of a consumer group, as operations write them.

Names and partitions are in ascending order, so that the same facts have the same bytes.

*Source:* the behaviour of Kafka 4.3's GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

import odradek.kernel.wire.messages.data_consumer_group_records as messages

from ..records import GroupRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .member import EpochsByPartition, Member, Target

NUMBER_OF: Final = attrgetter("int")
"""By what ids of topics are sorted: as they themselves compare, without a call for each two."""


def group(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of a group's epoch."""
    key = messages.ConsumerGroupMetadataKey(group_id=group_id)
    return GroupRecord(key, messages.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash))


def group_tombstone(group_id: str) -> GroupRecord:
    """Return the tombstone of a group."""
    return GroupRecord(messages.ConsumerGroupMetadataKey(group_id=group_id), None)


def partition_metadata_tombstone(group_id: str) -> GroupRecord:
    """Return the tombstone of what Kafka before 4.1 wrote about a group's topics."""
    return GroupRecord(messages.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member(group_id: str, member: Member) -> GroupRecord:
    """Return the record of what a member is."""
    return GroupRecord(
        messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        messages.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=member.classic,
        ),
    )


def member_tombstone(group_id: str, member_id: str) -> GroupRecord:
    """Return the tombstone of what a member is."""
    return GroupRecord(messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def target_metadata(group_id: str, epoch: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the epoch that a group's targets are for."""
    return GroupRecord(
        messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        messages.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def target_metadata_tombstone(group_id: str) -> GroupRecord:
    """Return the tombstone of the epoch that a group's targets are for."""
    return GroupRecord(messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def target(group_id: str, member_id: str, target: Target) -> GroupRecord:
    """Return the record of what a member shall have."""
    topics = [
        messages.TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
        for topic_id in sorted(target, key=NUMBER_OF)
    ]
    return GroupRecord(
        messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        messages.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics),
    )


def target_tombstone(group_id: str, member_id: str) -> GroupRecord:
    """Return the tombstone of what a member shall have."""
    return GroupRecord(messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def current(group_id: str, member: Member) -> GroupRecord:
    """Return the record of what a member has."""
    return GroupRecord(
        messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        messages.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_epoch,
            state=int(member.state),
            assigned_partitions=_topics(member.assigned),
            partitions_pending_revocation=_topics(member.revoking),
        ),
    )


def current_tombstone(group_id: str, member_id: str) -> GroupRecord:
    """Return the tombstone of what a member has."""
    return GroupRecord(messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def regex(group_id: str, pattern: str, topics: Iterable[str], version: int, timestamp_ms: int) -> GroupRecord:
    """Return the record of the topics that match a regular expression."""
    return GroupRecord(
        messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern),
        messages.ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp_ms),
    )


def regex_tombstone(group_id: str, pattern: str) -> GroupRecord:
    """Return the tombstone of the topics that match a regular expression."""
    return GroupRecord(messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def removal(group_id: str, member_id: str) -> tuple[GroupRecord, GroupRecord, GroupRecord]:
    """Return the tombstones of a member."""
    return (
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    )


def _topics(held: EpochsByPartition) -> list[messages.TopicPartitions]:
    topics = []
    for topic_id in sorted(held, key=NUMBER_OF):
        epoch_of = held[topic_id]
        partitions = sorted(epoch_of)
        epochs = [epoch_of[partition] for partition in partitions]
        topics.append(messages.TopicPartitions(topic_id=topic_id, partitions=partitions, assignment_epochs=epochs))
    return topics
