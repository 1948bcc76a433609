"""Shell: what a broker's and a client's TLS context share: Kafka's names of versions, and how a key is loaded."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

TLS_VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
"""Safe versions as `ssl.enabled.protocols` names them."""


class KeySettings(Protocol):
    """The `ssl.*` keys of a private key and its certificate chain."""

    @property
    def keystore_location(self) -> str | None:
        """A PEM file with both."""
        ...

    @property
    def keystore_certificate_chain(self) -> str | None:
        """The chain, PEM text, instead of a file."""
        ...

    @property
    def keystore_key(self) -> str | None:
        """The key, PEM text, instead of a file."""
        ...

    @property
    def key_password(self) -> str | None:
        """What the key is encrypted with."""
        ...


def load_key(context: ssl.SSLContext, settings: KeySettings) -> bool:
    """Load the private key and its certificates into a context; return whether there are any.

    Raises:
        OSError, ValueError: They cannot be read, or do not fit.
    """
    # An empty password, not None: with None OpenSSL would ask at the terminal when the key is encrypted.
    password = settings.key_password or ""
    if settings.keystore_certificate_chain is not None and settings.keystore_key is not None:
        with tempfile.TemporaryDirectory(prefix="odradek-tls-") as folder:  # readable by this user alone
            path = Path(folder) / "keystore.pem"
            path.touch(mode=0o600)
            path.write_text(f"{settings.keystore_key}\n{settings.keystore_certificate_chain}\n", encoding="utf-8")
            context.load_cert_chain(path, password=password)
        return True
    if settings.keystore_location is not None:
        context.load_cert_chain(settings.keystore_location, password=password)
        return True
    return False
