"""Pure core: EndTxn, API key 26, versions 0-5."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "EndTxnRequest",
    "EndTxnResponse",
]


class EndTxnRequest(Message, key=26, versions="0-5", flexible="3+"):
    """The request."""

    transactional_id: str = f.string()
    producer_id: int = f.int64()
    producer_epoch: int = f.int16()
    committed: bool = f.boolean()


class EndTxnResponse(Message, key=26, versions="0-5", flexible="3+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    producer_id: int = f.int64("5+", default=-1, ignorable=True)
    producer_epoch: int = f.int16("5+", default=-1, ignorable=True)
