"""Pure core: who a port belongs to that does not answer as a Kafka broker does, and what to do about it.

.. versionadded:: 0.1
"""

from __future__ import annotations

import re
from typing import Final

ANSWER_BYTES_MAX: Final = 64 << 20
"""The first answer, to ApiVersions, is never so large: what announces more is no Kafka broker."""

SPEAKS_TLS: Final = "it speaks TLS: set security.protocol to SSL or SASL_SSL"
SPEAKS_HTTP: Final = "it speaks HTTP: this is no port of a Kafka broker"
NO_TLS: Final = "it does not speak TLS: set security.protocol to PLAINTEXT, or find its TLS port"
HANGS_UP: Final = (
    "it closed the connection instead of answering ApiVersions: it expects TLS or another security.protocol, or is no "
    "Kafka broker"
)
HANGS_UP_ON_TLS: Final = (
    "it closed the connection during the TLS handshake: it does not speak TLS (security.protocol), or does not take "
    "this client's certificate (ssl.keystore.location)"
)
_NO_TLS_REASONS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"})
"""How OpenSSL calls it, in its several versions."""
_TLS_RECORD: Final = re.compile(rb"[\x14-\x17]\x03[\x00-\x04]")
_TEXT: Final = re.compile(rb"[\x20-\x7e]{4,}")


def who_answered(first: bytes) -> str:
    """Return who speaks so; empty when nobody can tell.

    Args:
        first: The first bytes that came; four are enough for most.
    """
    if first.startswith(b"HTTP"):
        return SPEAKS_HTTP
    if _TLS_RECORD.match(first):
        return SPEAKS_TLS
    if text := _TEXT.match(first):
        return f"it says {text[0].decode('ascii')!r}: this is no port of a Kafka broker"
    return ""


def who_refused_tls(reason: str) -> str:
    """Return what a failed TLS handshake tells of the other side; empty when nothing.

    Args:
        reason: `ssl.SSLError.reason`; empty where the connection was closed.
    """
    if not reason:
        return HANGS_UP_ON_TLS
    return NO_TLS if reason in _NO_TLS_REASONS else ""
