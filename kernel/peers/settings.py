"""Pure core: what reaching a broker needs to be told, whoever reaches it: times, buffers, certificates.

.. versionadded:: 0.1
"""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True, repr=False)
class TlsClientSettings:
    """How to speak TLS to brokers (`ssl.*`); kept out of reprs, since it holds keys.

    Attributes:
        truststore_type: JKS, PKCS12 or PEM; None: the file's content tells.
        truststore_location: A file; None with no certificates either: the system's authorities.
        truststore_password: Of that file, if it is not PEM.
        truststore_certificates: PEM text.
        keystore_type: As `truststore_type`.
        keystore_location: A file with key and chain.
        keystore_password: Of that file, if it is not PEM.
        keystore_certificate_chain: PEM text.
        keystore_key: PEM text.
        key_password: What the key is encrypted with.
        is_host_checked: Whether the certificate must carry the broker's host name.
        enabled_protocols: `TLSv1.2`, `TLSv1.3`.
    """

    truststore_type: str | None = None
    truststore_location: str | None = None
    truststore_password: str | None = None
    truststore_certificates: str | None = None
    keystore_type: str | None = None
    keystore_location: str | None = None
    keystore_password: str | None = None
    keystore_certificate_chain: str | None = None
    keystore_key: str | None = None
    key_password: str | None = None
    is_host_checked: bool = True
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """What every client needs to reach a cluster; times in milliseconds."""

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    rebootstraps: bool = True
    rebootstrap_trigger_ms: int = 300_000
    connections_max_idle_ms: int = 540_000
    setup_timeout_ms: int = 10_000
    setup_timeout_max_ms: int = 30_000
    send_buffer_bytes: int = 131_072
    receive_buffer_bytes: int = 65_536
    tls: TlsClientSettings | None = None
