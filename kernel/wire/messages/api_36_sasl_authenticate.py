"""Pure core: SaslAuthenticate, API key 36, versions 0-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
]


class SaslAuthenticateRequest(Message, key=36, versions="0-2", flexible="2+"):
    """The request."""

    auth_bytes: bytes = f.binary()


class SaslAuthenticateResponse(Message, key=36, versions="0-2", flexible="2+"):
    """The response."""

    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    auth_bytes: bytes = f.binary()
    session_lifetime_ms: int = f.int64("1+", ignorable=True)
