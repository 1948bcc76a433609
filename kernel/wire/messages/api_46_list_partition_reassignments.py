"""Pure core: ListPartitionReassignments, API key 46, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
]


class ListPartitionReassignmentsTopics(Message):
    """An item of `ListPartitionReassignmentsRequest.topics`."""

    name: str = f.string()
    partition_indexes: list[int] = f.int32s()


class ListPartitionReassignmentsRequest(Message, key=46, versions="0", flexible="0+"):
    """The request."""

    timeout_ms: int = f.int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = f.array(
        ListPartitionReassignmentsTopics, nullable="0+", default=None
    )


class OngoingPartitionReassignment(Message):
    """An item of `OngoingTopicReassignment.partitions`."""

    partition_index: int = f.int32()
    replicas: list[int] = f.int32s()
    adding_replicas: list[int] = f.int32s()
    removing_replicas: list[int] = f.int32s()


class OngoingTopicReassignment(Message):
    """An item of `ListPartitionReassignmentsResponse.topics`."""

    name: str = f.string()
    partitions: list[OngoingPartitionReassignment] = f.array(OngoingPartitionReassignment)


class ListPartitionReassignmentsResponse(Message, key=46, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    topics: list[OngoingTopicReassignment] = f.array(OngoingTopicReassignment)
