"""Pure core: AddOffsetsToTxn, API key 25, versions 0-4."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
]


class AddOffsetsToTxnRequest(Message, key=25, versions="0-4", flexible="3+"):
    """The request."""

    transactional_id: str = f.string()
    producer_id: int = f.int64()
    producer_epoch: int = f.int16()
    group_id: str = f.string()


class AddOffsetsToTxnResponse(Message, key=25, versions="0-4", flexible="3+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
