"""Pure core: ExpireDelegationToken, API key 40, versions 1-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "ExpireDelegationTokenRequest",
    "ExpireDelegationTokenResponse",
]


class ExpireDelegationTokenRequest(Message, key=40, versions="1-2", flexible="2+"):
    """The request."""

    hmac: bytes = f.binary()
    expiry_time_period_ms: int = f.int64()


class ExpireDelegationTokenResponse(Message, key=40, versions="1-2", flexible="2+"):
    """The response."""

    error_code: int = f.int16()
    expiry_timestamp_ms: int = f.int64()
    throttle_time_ms: int = f.int32()
