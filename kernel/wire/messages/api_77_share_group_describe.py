"""Pure core: ShareGroupDescribe, API key 77, versions 1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
]


class ShareGroupDescribeRequest(Message, key=77, versions="1", flexible="0+"):
    """The request."""

    group_ids: list[str] = f.strings()
    include_authorized_operations: bool = f.boolean()


class TopicPartitions(Message):
    """Shared by several fields of `ShareGroupDescribeResponse`."""

    topic_id: UUID = f.uuid()
    topic_name: str = f.string()
    partitions: list[int] = f.int32s()


class Assignment(Message):
    """Shared by several fields of `ShareGroupDescribeResponse`."""

    topic_partitions: list[TopicPartitions] = f.array(TopicPartitions)


class Member(Message):
    """An item of `DescribedGroup.members`."""

    member_id: str = f.string()
    rack_id: str | None = f.string(nullable="1+", default=None)
    member_epoch: int = f.int32()
    client_id: str = f.string()
    client_host: str = f.string()
    subscribed_topic_names: list[str] = f.strings()
    assignment: Assignment = f.struct(Assignment)


class DescribedGroup(Message):
    """An item of `ShareGroupDescribeResponse.groups`."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="1+", default=None)
    group_id: str = f.string()
    group_state: str = f.string()
    group_epoch: int = f.int32()
    assignment_epoch: int = f.int32()
    assignor_name: str = f.string()
    members: list[Member] = f.array(Member)
    authorized_operations: int = f.int32(default=-2147483648)


class ShareGroupDescribeResponse(Message, key=77, versions="1", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    groups: list[DescribedGroup] = f.array(DescribedGroup)
