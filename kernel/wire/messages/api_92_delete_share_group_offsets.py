"""Pure core: DeleteShareGroupOffsets, API key 92, versions 0."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsResponse",
]


class DeleteShareGroupOffsetsRequestTopic(Message):
    """An item of `DeleteShareGroupOffsetsRequest.topics`."""

    topic_name: str = f.string()


class DeleteShareGroupOffsetsRequest(Message, key=92, versions="0", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = f.array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponseTopic(Message):
    """An item of `DeleteShareGroupOffsetsResponse.responses`."""

    topic_name: str = f.string()
    topic_id: UUID = f.uuid()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)


class DeleteShareGroupOffsetsResponse(Message, key=92, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = f.array(DeleteShareGroupOffsetsResponseTopic)
