"""Shell: the TLS context of a client from its `ssl.*` settings.

.. versionadded:: 0.1
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from ..key_stores.loading import TLS_VERSIONS, load_key, load_trusted

if TYPE_CHECKING:
    from .settings import TlsClientSettings


def client_context(settings: TlsClientSettings) -> ssl.SSLContext:
    """Return a context that trusts what the settings say, and shows the client's certificate if it has one.

    Raises:
        ConfigError: A store or text is missing, contradicts another setting, or cannot be used; says what to do.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not load_trusted(context, settings):
        context = ssl.create_default_context()  # trusts whom the system trusts
    load_key(context, settings)
    versions = sorted(TLS_VERSIONS[name] for name in settings.enabled_protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if not settings.is_host_checked:
        context.check_hostname = False
    return context
