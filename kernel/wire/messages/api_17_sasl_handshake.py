"""Pure core: SaslHandshake, API key 17, versions 0-1."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
]


class SaslHandshakeRequest(Message, key=17, versions="0-1"):
    """The request."""

    mechanism: str = f.string()


class SaslHandshakeResponse(Message, key=17, versions="0-1"):
    """The response."""

    error_code: int = f.int16()
    mechanisms: list[str] = f.strings()
