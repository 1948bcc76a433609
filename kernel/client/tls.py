"""Shell: the TLS context of a client from its `ssl.*` settings.

.. versionadded:: 0.1
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import ConfigError

if TYPE_CHECKING:
    from .settings import TlsClientSettings

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def client_context(settings: TlsClientSettings) -> ssl.SSLContext:
    """Return a context that trusts what the settings say, and shows the client's certificate if it has one.

    Raises:
        ConfigError: A PEM file or text is missing or cannot be read.
    """
    try:
        context = ssl.create_default_context(
            cafile=settings.truststore_location, cadata=settings.truststore_certificates
        )
        _load_key(context, settings)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the certificates of the ssl.* settings cannot be used: {error}",
            hint="ssl.truststore.location and ssl.keystore.location are PEM files",
        ) from error
    versions = sorted(_VERSIONS[name] for name in settings.enabled_protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if not settings.is_host_checked:
        context.check_hostname = False
    return context


def _load_key(context: ssl.SSLContext, settings: TlsClientSettings) -> None:
    # An empty password, not None: with None OpenSSL would ask at the terminal when the key is encrypted.
    password = settings.key_password or ""
    if settings.keystore_certificate_chain is not None and settings.keystore_key is not None:
        with tempfile.TemporaryDirectory(prefix="odradek-tls-") as folder:  # readable by this user alone
            path = Path(folder) / "keystore.pem"
            path.touch(mode=0o600)
            path.write_text(f"{settings.keystore_key}\n{settings.keystore_certificate_chain}\n", encoding="utf-8")
            context.load_cert_chain(path, password=password)
    elif settings.keystore_location is not None:
        context.load_cert_chain(settings.keystore_location, password=password)
