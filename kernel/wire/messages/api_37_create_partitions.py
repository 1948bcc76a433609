"""Pure core: CreatePartitions, API key 37, versions 0-3."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
]


class CreatePartitionsAssignment(Message):
    """An item of `CreatePartitionsTopic.assignments`."""

    broker_ids: list[int] = f.int32s()


class CreatePartitionsTopic(Message):
    """An item of `CreatePartitionsRequest.topics`."""

    name: str = f.string()
    count: int = f.int32()
    assignments: list[CreatePartitionsAssignment] | None = f.array(CreatePartitionsAssignment, nullable="0+")


class CreatePartitionsRequest(Message, key=37, versions="0-3", flexible="2+"):
    """The request."""

    topics: list[CreatePartitionsTopic] = f.array(CreatePartitionsTopic)
    timeout_ms: int = f.int32()
    validate_only: bool = f.boolean()


class CreatePartitionsTopicResult(Message):
    """An item of `CreatePartitionsResponse.results`."""

    name: str = f.string()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)


class CreatePartitionsResponse(Message, key=37, versions="0-3", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    results: list[CreatePartitionsTopicResult] = f.array(CreatePartitionsTopicResult)
