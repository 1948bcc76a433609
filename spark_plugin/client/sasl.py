r"""Pure core: the SASL mechanisms: what to say first, and what to answer.

| mechanism | messages |
| --- | --- |
| PLAIN | `\0user\0password` |
| SCRAM-SHA-256, SCRAM-SHA-512 | see `scram` |
| OAUTHBEARER | `n,,\x01auth=Bearer TOKEN\x01\x01`; to a refusal, `\x01` |

*Source:* RFC 4616, RFC 5802, RFC 7628; KIP-43, KIP-84, KIP-255, KIP-342.

.. versionadded:: 0.1
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Final, Protocol

from .scram import SaslError, ScramClient

if TYPE_CHECKING:
    import random

    from .settings import SaslSettings

__all__ = ["BearerClient", "Mechanism", "PlainClient", "SaslError", "new_mechanism", "unsecured_token"]

_SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NONCE_BITS: Final = 192
_SEPARATOR: Final = "\x01"
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")


class Mechanism(Protocol):
    """One log-in; used once."""

    def first(self) -> bytes:
        """Return the first message."""
        ...

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the answer to the broker's message; None when it was the last one, and all is well.

        Raises:
            SaslError: It is not what the mechanism demands.
        """
        ...


class PlainClient:
    """User and password as they are: for TLS."""

    def __init__(self, username: str, password: str) -> None:
        if "\0" in username + password:
            raise SaslError("PLAIN takes no zero bytes in user or password")
        self._message = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        """Return everything."""
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        """Expect nothing more."""
        return None


class BearerClient:
    """A token that somebody else vouches for."""

    def __init__(self, token: str, extensions: tuple[tuple[str, str], ...] = ()) -> None:
        if _TOKEN.fullmatch(token) is None:
            raise SaslError("the token is empty, or has characters that no token has")
        for key, value in extensions:
            if key == "auth" or _EXTENSION_NAME.fullmatch(key) is None or _SEPARATOR in value:
                raise SaslError(f"the extension {key!r} is not allowed")
        pairs = "".join(f"{_SEPARATOR}{key}={value}" for key, value in extensions)
        self._message = f"n,,{_SEPARATOR}auth=Bearer {token}{pairs}{_SEPARATOR}{_SEPARATOR}".encode()

    def first(self) -> bytes:
        """Return everything."""
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        """Expect nothing; a refusal is acknowledged, upon which the broker says why."""
        return _SEPARATOR.encode() if challenge else None


def new_mechanism(sasl: SaslSettings, *, now_ms: int, random_source: random.Random) -> Mechanism:
    """Return a log-in with these credentials.

    Args:
        sasl: They; the mechanism is one of those above. A token in a file was read: `token` is set.
        now_ms: The wall clock, for tokens that are made here.
        random_source: For a nonce: one that nobody can foresee.

    Raises:
        SaslError: The credentials cannot be used.
    """
    if sasl.mechanism == "PLAIN":
        return PlainClient(sasl.username, sasl.password)
    if sasl.mechanism in _SCRAM_HASHES:
        nonce = base64.urlsafe_b64encode(random_source.randbytes(_NONCE_BITS // 8)).decode()
        hash_name = _SCRAM_HASHES[sasl.mechanism]
        return ScramClient(hash_name, sasl.username, sasl.password, nonce, sasl.extensions)
    return BearerClient(_token(sasl, now_ms), sasl.extensions)


def _token(sasl: SaslSettings, now_ms: int) -> str:
    if sasl.token is not None:
        return sasl.token.strip()
    return unsecured_token(dict(sasl.claims), now_ms=now_ms, life_s=sasl.token_life_s)


def unsecured_token(claims: dict[str, str | float], *, now_ms: int, life_s: int) -> str:
    """Return a token that nobody signed; brokers of developers take it.

    *Source:* RFC 7515, appendix A.5; `OAuthBearerUnsecuredLoginCallbackHandler`.
    """
    times: dict[str, str | float] = {"iat": now_ms / 1_000, "exp": now_ms / 1_000 + life_s}
    return f"{_base64({'alg': 'none'})}.{_base64(times | claims)}."


def _base64(value: dict[str, str] | dict[str, str | float]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")
