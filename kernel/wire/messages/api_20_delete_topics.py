"""Pure core: DeleteTopics, API key 20, versions 1-6."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
]


class DeleteTopicState(Message):
    """An item of `DeleteTopicsRequest.topics`."""

    name: str | None = f.string(nullable="6+", default=None)
    topic_id: UUID = f.uuid()


class DeleteTopicsRequest(Message, key=20, versions="1-6", flexible="4+"):
    """The request."""

    topics: list[DeleteTopicState] = f.array(DeleteTopicState, "6+")
    topic_names: list[str] = f.strings("1-5", ignorable=True)
    timeout_ms: int = f.int32()


class DeletableTopicResult(Message):
    """An item of `DeleteTopicsResponse.responses`."""

    name: str | None = f.string(nullable="6+")
    topic_id: UUID = f.uuid("6+", ignorable=True)
    error_code: int = f.int16()
    error_message: str | None = f.string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Message, key=20, versions="1-6", flexible="4+"):
    """The response."""

    throttle_time_ms: int = f.int32(ignorable=True)
    responses: list[DeletableTopicResult] = f.array(DeletableTopicResult)
