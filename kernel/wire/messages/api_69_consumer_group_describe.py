"""Pure core: ConsumerGroupDescribe, API key 69, versions 0-1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
]


class ConsumerGroupDescribeRequest(Message, key=69, versions="0-1", flexible="0+"):
    """The request."""

    group_ids: list[str] = f.strings()
    include_authorized_operations: bool = f.boolean()


class TopicPartitions(Message):
    """Shared by several fields of `ConsumerGroupDescribeResponse`."""

    topic_id: UUID = f.uuid()
    topic_name: str = f.string()
    partitions: list[int] = f.int32s()


class Assignment(Message):
    """Shared by several fields of `ConsumerGroupDescribeResponse`."""

    topic_partitions: list[TopicPartitions] = f.array(TopicPartitions)


class Member(Message):
    """An item of `DescribedGroup.members`."""

    member_id: str = f.string()
    instance_id: str | None = f.string(nullable="0+", default=None)
    rack_id: str | None = f.string(nullable="0+", default=None)
    member_epoch: int = f.int32()
    client_id: str = f.string()
    client_host: str = f.string()
    subscribed_topic_names: list[str] = f.strings()
    subscribed_topic_regex: str | None = f.string(nullable="0+", default=None)
    assignment: Assignment = f.struct(Assignment)
    target_assignment: Assignment = f.struct(Assignment)
    member_type: int = f.int8("1+", default=-1, ignorable=True)


class DescribedGroup(Message):
    """An item of `ConsumerGroupDescribeResponse.groups`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    group_id: str = f.string()
    group_state: str = f.string()
    group_epoch: int = f.int32()
    assignment_epoch: int = f.int32()
    assignor_name: str = f.string()
    members: list[Member] = f.array(Member)
    authorized_operations: int = f.int32(default=-2147483648)


class ConsumerGroupDescribeResponse(Message, key=69, versions="0-1", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    groups: list[DescribedGroup] = f.array(DescribedGroup)
