"""Pure core: InitProducerId, API key 22, versions 0-5."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "InitProducerIdRequest",
    "InitProducerIdResponse",
]


class InitProducerIdRequest(Message, key=22, versions="0-5", flexible="2+"):
    """The request."""

    transactional_id: str | None = f.string(nullable="0+")
    transaction_timeout_ms: int = f.int32()
    producer_id: int = f.int64("3+", default=-1)
    producer_epoch: int = f.int16("3+", default=-1)


class InitProducerIdResponse(Message, key=22, versions="0-5", flexible="2+"):
    """The response."""

    throttle_time_ms: int = f.int32(ignorable=True)
    error_code: int = f.int16()
    producer_id: int = f.int64(default=-1)
    producer_epoch: int = f.int16()
