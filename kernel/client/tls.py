"""Shell: the TLS context of a client from its `ssl.*` settings.

.. versionadded:: 0.1
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..tls_keys import TLS_VERSIONS, load_key

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
        load_key(context, settings)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the certificates of the ssl.* settings cannot be used: {error}",
            hint="ssl.truststore.location and ssl.keystore.location are PEM files",
        ) from error
    versions = sorted(TLS_VERSIONS[name] for name in settings.enabled_protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if not settings.is_host_checked:
        context.check_hostname = False
    return context
