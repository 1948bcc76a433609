"""Pure core: RenewDelegationToken, API key 39, versions 1-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "RenewDelegationTokenRequest",
    "RenewDelegationTokenResponse",
]


class RenewDelegationTokenRequest(Message, key=39, versions="1-2", flexible="2+"):
    """The request."""

    hmac: bytes = f.binary()
    renew_period_ms: int = f.int64()


class RenewDelegationTokenResponse(Message, key=39, versions="1-2", flexible="2+"):
    """The response."""

    error_code: int = f.int16()
    expiry_timestamp_ms: int = f.int64()
    throttle_time_ms: int = f.int32()
