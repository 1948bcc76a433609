"""Pure core: what the operator chose for the network, as frozen values.

The composition root fills these from the configuration; names of Kafka's keys stand beside each field.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

import attrs

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

UNLIMITED: Final = 2**31 - 1
"""Kafka's way to say that a count has no limit."""


class SecurityProtocol(Enum):
    """How a listener's connections are protected."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"


class LoopKind(Enum):
    """Which loop serves sockets: `odradek.network.loop`."""

    AUTO = "auto"
    EPOLL = "epoll"
    PORTABLE = "portable"


class ClientAuth(Enum):
    """Whether a TLS client shows a certificate: `ssl.client.auth`."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@frozen
class TlsSettings:
    """Kafka's `ssl.*` keys, as they stand in the configuration; `tls.server_context` makes a context of them.

    Attributes:
        keystore_type: `ssl.keystore.type`, where the operator set it; else the file's content tells.
        keystore_location: `ssl.keystore.location`: a file with the certificate chain and the private key.
        keystore_password: `ssl.keystore.password`.
        keystore_certificate_chain: `ssl.keystore.certificate.chain`: the chain itself, PEM, instead of a file.
        keystore_key: `ssl.keystore.key`: the private key itself, PEM, instead of a file.
        key_password: `ssl.key.password`.
        truststore_type: `ssl.truststore.type`, as `keystore_type`.
        truststore_location: `ssl.truststore.location`: a file with the authorities that sign clients.
        truststore_password: `ssl.truststore.password`.
        truststore_certificates: `ssl.truststore.certificates`: those authorities themselves, PEM.
        client_auth: `ssl.client.auth`.
        enabled_protocols: `ssl.enabled.protocols`, such as TLSv1.2.
    """

    keystore_type: str | None = None
    keystore_location: str | None = None
    keystore_password: str | None = attrs.field(default=None, repr=False)
    keystore_certificate_chain: str | None = None
    keystore_key: str | None = attrs.field(default=None, repr=False)
    key_password: str | None = attrs.field(default=None, repr=False)
    truststore_type: str | None = None
    truststore_location: str | None = None
    truststore_password: str | None = attrs.field(default=None, repr=False)
    truststore_certificates: str | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")


@frozen
class ListenerSettings:
    """One listener: where clients connect.

    Attributes:
        name: Its name in `listeners`, such as PLAINTEXT or INTERNAL.
        host: Address or host name to bind; empty means all addresses.
        port: Port to bind, 0 for any free one.
        security_protocol: How its connections are protected.
        tls: The certificates, when the protocol is SSL.
        frame_limit_bytes: The largest request taken at first, None for `request_limit_bytes`; lower where clients have
            to prove who they are (`sasl.server.max.receive.size`).
        goes_first: Whether what comes by it is taken before what comes by others at the same time: the controller's.
            Its connections count for themselves, and no `max.connections` holds for them.
        is_protected: Whether it is taken by beyond `max.connections`, for which others' clients are closed: that by
            which brokers reach each other, where there is another one.
    """

    name: str
    host: str
    port: int
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsSettings | None = None
    frame_limit_bytes: int | None = None
    goes_first: bool = False
    is_protected: bool = False


@frozen
class NetworkSettings:
    """Limits and buffers of all listeners.

    Attributes:
        listeners: At least one.
        loop: `odradek.network.loop`.
        connections_max: `max.connections`: beyond it the listeners of clients wait until one leaves.
        connections_per_ip_max: `max.connections.per.ip`: a connection beyond it is closed at once.
        connections_per_ip_overrides: `max.connections.per.ip.overrides`: address to count.
        connections_idle_ms_max: `connections.max.idle.ms`; negative: never.
        request_limit_bytes: `socket.request.max.bytes`.
        request_memory_bytes: `queued.max.request.bytes`: how much memory large requests of all connections may hold
            while they arrive; a connection beyond it waits unread. For Kafka's -1 (no limit) give this default.
        receive_buffer_bytes: `socket.receive.buffer.bytes` where the operator set it; -1 leaves it to the system, which
            adapts it: Kafka's own default, fixed, halves the throughput of large requests.
        send_buffer_bytes: `socket.send.buffer.bytes`, likewise.
        backlog: `socket.listen.backlog.size`.
        handshake_timeout_ms: How long a TLS handshake may take.
        drain_timeout_ms: How long a stopping broker waits for what is in flight.
    """

    listeners: tuple[ListenerSettings, ...]
    loop: LoopKind = LoopKind.AUTO
    connections_max: int = UNLIMITED
    connections_per_ip_max: int = UNLIMITED
    connections_per_ip_overrides: Mapping[str, int] = attrs.field(factory=dict)
    connections_idle_ms_max: int = 600_000
    request_limit_bytes: int = 104_857_600
    request_memory_bytes: int = 256 * 1024 * 1024
    receive_buffer_bytes: int = -1
    send_buffer_bytes: int = -1
    backlog: int = 50
    handshake_timeout_ms: int = 10_000
    drain_timeout_ms: int = 5_000
