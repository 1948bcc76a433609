"""Pure core: what is taken from a store, and what is said of one that cannot be used.

.. versionadded:: 0.1
"""

from __future__ import annotations

import base64
import textwrap
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence


A_KEY: Final = "one is needed: `keytool -list` shows what there is"
"""What to do about a store with no private key."""


class StoreError(ValueError):
    """A store cannot be used.

    Attributes:
        setting: What is wrong, as its key ends: `type`, `location`, `password` or `key.password`.
        reason: What is wrong with it.
        hint: What to do about it.
    """

    def __init__(self, setting: str, reason: str, hint: str) -> None:
        super().__init__(f"{reason} ({hint})")
        self.setting = setting
        self.reason = reason
        self.hint = hint


@attrs.frozen(repr=False)
class PrivateKeyEntry:
    """A private key that is open, with its certificates; never printed.

    Attributes:
        key: The key as PKCS #8, DER.
        chain: Its certificates, DER: its own first, each signed by the next; at least one.
    """

    key: bytes
    chain: Sequence[bytes]

    def pem(self) -> bytes:
        """Return the key and its certificates as OpenSSL takes them."""
        return _pem("PRIVATE KEY", self.key) + b"".join(_pem("CERTIFICATE", one) for one in self.chain)


def _pem(label: str, der: bytes) -> bytes:
    lines = textwrap.wrap(base64.b64encode(der).decode("ascii"), 64)
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", "")).encode("ascii")
