"""Pure core: Envelope, API key 58, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "EnvelopeRequest",
    "EnvelopeResponse",
]


class EnvelopeRequest(Message, key=58, versions="0", flexible="0+"):
    """The request."""

    request_data: bytes = f.binary()
    request_principal: bytes | None = f.binary(nullable="0+")
    client_host_address: bytes = f.binary()


class EnvelopeResponse(Message, key=58, versions="0", flexible="0+"):
    """The response."""

    response_data: bytes | None = f.binary(nullable="0+", default=None)
    error_code: int = f.int16()
