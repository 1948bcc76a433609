"""Pure core: AllocateProducerIds, API key 67, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
]


class AllocateProducerIdsRequest(Message, key=67, versions="0", flexible="0+"):
    """The request."""

    broker_id: int = f.int32()
    broker_epoch: int = f.int64(default=-1)


class AllocateProducerIdsResponse(Message, key=67, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    producer_id_start: int = f.int64()
    producer_id_len: int = f.int32()
