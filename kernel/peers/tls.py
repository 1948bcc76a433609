"""Shell: the TLS context of a client from its `ssl.*` settings.

.. versionadded:: 0.1
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..machine.tls_keys import TLS_VERSIONS, load_key

if TYPE_CHECKING:
    from .settings import TlsClientSettings


def client_context(settings: TlsClientSettings) -> ssl.SSLContext:
    """Return a context that trusts what the settings say, and shows the client's certificate if it has one.

    Raises:
        ConfigError: A PEM file or text is missing or cannot be read.
    """
    try:
        context = ssl.create_default_context(
            cafile=settings.truststore_location, cadata=settings.truststore_certificates
        )
    except (OSError, ValueError) as error:
        raise _unusable("ssl.truststore", "certificates", settings.truststore_location, error) from error
    try:
        load_key(context, settings)
    except (OSError, ValueError) as error:
        raise _unusable("ssl.keystore", "key", settings.keystore_location, error) from error
    versions = sorted(TLS_VERSIONS[name] for name in settings.enabled_protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if not settings.is_host_checked:
        context.check_hostname = False
    return context


def _unusable(store: str, text_key: str, location: str | None, error: OSError | ValueError) -> ConfigError:
    """Return what is wrong with a file, or a text, of certificates: the errors of `ssl` name neither."""
    reason = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else ""
    told = f"{location}: {reason or error}" if location else f"{reason or error}"
    where = f"{store}.location" if location else f"{store}.{text_key}"
    return ConfigError(told, where=where, hint="it is to be PEM, and to fit the other ssl.* settings")
